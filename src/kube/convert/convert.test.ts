import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { builtinFacts } from '../builtin.ts'
import { cloneJson, field, type JsonObject, parseJson, printJson, text } from '../json/json.ts'
import { apiVersion, type Resource } from '../resource.ts'
import { fromStored, readConverter, toStored } from './convert.ts'

/** Each line: an object a real kube-apiserver stored, as it served it in the other version, and after writing that back. */
const recorded = readFileSync(join(import.meta.dirname, 'testdata/conversions.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => parseJson(line) as JsonObject)

function resourceOf(identity: string): Resource {
  const found = builtinFacts().resources.find((one) => `${apiVersion(one)}/${one.resource}` === identity)
  assert.ok(found)
  return found
}

const hpaV1 = resourceOf('autoscaling/v1/horizontalpodautoscalers')
const hpaV2 = resourceOf('autoscaling/v2/horizontalpodautoscalers')
const eventsEvent = resourceOf('events.k8s.io/v1/events')
const coreEvent = resourceOf('v1/events')
const carrier = 'autoscaling.alpha.kubernetes.io/'

const object = (source: unknown) =>
  parseJson(typeof source === 'string' ? source : JSON.stringify(source)) as JsonObject

for (const record of recorded) {
  const name = `${text(record, 'resource')} ${text(record, 'name')}`
  const resource = resourceOf(text(record, 'resource'))
  const [stored, served, written] = ['stored', 'served', 'written'].map((key) => record.get(key) as JsonObject)
  assert.ok(stored && served && written)

  test(`[A5] ${name} is served as the real server serves it`, () => {
    const convert = readConverter(resource)
    assert.ok(convert)
    assert.equal(convert(Buffer.from(printJson(stored))).toString(), printJson(served))
    assert.equal(printJson(fromStored(resource, stored)), printJson(served))
  })

  test(`${name} is stored as the real server stores it`, () => {
    assert.equal(printJson(toStored(resource, served)), printJson(written))
  })

  test(`${name} is not changed by converting it`, () => {
    const before = [cloneJson(stored), cloneJson(served)].map(printJson)
    fromStored(resource, stored)
    toStored(resource, served)
    assert.deepEqual([stored, served].map(printJson), before)
  })
}

test('exactly the resources that are not stored as they are served have a converter', () => {
  for (const resource of builtinFacts().resources) {
    const differs = resource.writes !== undefined && resource.writes.storageVersion !== apiVersion(resource)
    assert.equal(readConverter(resource) !== undefined, differs, `${apiVersion(resource)}/${resource.resource}`)
    const any = object({ metadata: { name: 'a' }, message: 'b' })
    if (!differs) assert.equal(toStored(resource, fromStored(resource, any)), any)
    if (!differs) continue
    const named = object({ kind: resource.kind, apiVersion: apiVersion(resource), metadata: { name: 'a' } })
    const stored = toStored(resource, named)
    assert.equal(text(stored, 'apiVersion'), resource.writes?.storageVersion)
    assert.equal(text(fromStored(resource, stored), 'apiVersion'), apiVersion(resource))
    assert.equal([...stored.keys()].slice(0, 3).join(), 'kind,apiVersion,metadata')
  }
})

test('a custom resource of the same name is not converted', () => {
  const any = object({ note: 'a' })
  assert.equal(toStored({ ...eventsEvent, custom: true }, any), any)
  assert.equal(readConverter({ ...hpaV1, custom: true }), undefined)
})

test('fields nobody knows and the spelling of numbers are kept both ways', () => {
  const stored = object(
    '{"metadata":{"name":"a"},"spec":{"maxReplicas":1.0,"new":9007199254740993,"metrics":[{"type":"New","new":{"at":1e3}}]},"status":{"desiredReplicas":1,"fresh":{"b":1,"a":2}},"extra":[1.50]}',
  )
  const served = fromStored(hpaV1, stored)
  assert.equal(
    printJson(served),
    '{"metadata":{"name":"a","annotations":{"autoscaling.alpha.kubernetes.io/metrics":"[{\\"type\\":\\"New\\",\\"new\\":{\\"at\\":1e3}}]"}},"spec":{"maxReplicas":1.0,"new":9007199254740993},"status":{"currentReplicas":0,"desiredReplicas":1,"fresh":{"b":1,"a":2}},"extra":[1.50]}',
  )
  const back = toStored(hpaV1, served)
  assert.equal(printJson(back.get('extra') ?? null), '[1.50]')
  assert.equal(
    printJson(field(back, 'spec') ?? null),
    '{"maxReplicas":1.0,"metrics":[{"type":"New","new":{"at":1e3}}],"new":9007199254740993}',
  )
  const event = fromStored(eventsEvent, object('{"metadata":{},"count":12345678901234567890,"unheard":{"of":1.0}}'))
  assert.match(printJson(event), /"deprecatedCount":12345678901234567890,"unheard":\{"of":1\.0\}\}$/)
})

test('an annotation that cannot be read is as good as none, and goes', () => {
  const unreadable = ['junk', '5', '{}', '[{"type":5}]', '[5]', '[{"pods":{"targetAverageValue":"x"}}]']
  unreadable.push(
    '[{"resource":{"targetAverageUtilization":1.5}}]',
    '[{"resource":{"targetAverageUtilization":2147483648}}]',
  )
  for (const source of unreadable) {
    const annotations = { [`${carrier}metrics`]: source, [`${carrier}behavior`]: source, kept: 'yes' }
    const stored = toStored(hpaV1, object({ metadata: { annotations }, spec: { maxReplicas: 3 } }))
    assert.equal(
      printJson(stored),
      '{"metadata":{"annotations":{"kept":"yes"}},"spec":{"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":80}}}]},"status":{"desiredReplicas":0,"currentMetrics":null}}',
      source,
    )
  }
  const times = { [`${carrier}conditions`]: '[{"type":"A","lastTransitionTime":"yesterday"}]' }
  const stored = toStored(hpaV1, object({ metadata: { annotations: times } }))
  assert.equal(field(stored, 'status', 'conditions'), undefined)
})

test('annotations are read as Go reads them: names in any case, null is nothing', () => {
  const annotations = {
    [`${carrier}behavior`]:
      '{"scaledown":{"SELECTPOLICY":"Min","Policies":[{"type":"Pods","Value":1}],"Tolerance":null},"ScaleUp":null}',
    [`${carrier}metrics`]: 'null',
  }
  const spec = toStored(hpaV1, object({ metadata: { annotations }, spec: { targetCPUUtilizationPercentage: 7 } })).get(
    'spec',
  )
  assert.equal(
    printJson(field(spec, 'behavior') ?? null),
    '{"scaleDown":{"selectPolicy":"Min","policies":[{"type":"Pods","value":1,"periodSeconds":0}]}}',
  )
  const metrics = field(spec, 'metrics')
  assert.equal(Array.isArray(metrics) ? metrics.length : 0, 1)
})

test("a v2 object loses a client's carrying annotations, and nothing else", () => {
  const sent = object({
    metadata: { name: 'a', annotations: { b: '1', [`${carrier}metrics`]: '[]' }, finalizers: ['x/y'] },
  })
  assert.equal(
    printJson(toStored(hpaV2, sent)),
    '{"metadata":{"name":"a","annotations":{"b":"1"},"finalizers":["x/y"]}}',
  )
  const only = object({ metadata: { annotations: { [`${carrier}scale-up-tolerance`]: 'x' } } })
  assert.equal(printJson(toStored(hpaV2, only)), '{"metadata":{}}')
})

test('a stray field of the other version does not hide the right one', () => {
  const event = object({ metadata: {}, note: 'right', message: 'stray' })
  assert.equal(text(toStored(eventsEvent, event), 'message'), 'right')
  const without = toStored(eventsEvent, object({ metadata: {}, message: 'stray' }))
  assert.equal(without.get('message'), undefined)
  assert.equal(toStored(coreEvent, event), event)
})

test('what the other version always prints is filled in, and what it leaves out goes', () => {
  const stored = object({ metadata: {}, series: {}, count: 0, reportingInstance: '', related: null })
  assert.equal(
    printJson(fromStored(eventsEvent, stored)),
    '{"metadata":{},"eventTime":null,"series":{"count":0,"lastObservedTime":null},"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}',
  )
  const sent = object({ metadata: {}, series: { count: 0 }, deprecatedCount: 0 })
  assert.equal(
    printJson(toStored(eventsEvent, sent)),
    '{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"series":{"lastObservedTime":null},"reportingComponent":"","reportingInstance":""}',
  )
})

test('annotations that carry something stand where Go prints annotations, sorted', () => {
  const metadata = { name: 'a', labels: {}, annotations: { z: '1', a: '2' }, ownerReferences: [], managedFields: [] }
  const served = fromStored(hpaV1, object({ metadata, spec: { behavior: {} } }))
  assert.deepEqual(
    [...(served.get('metadata') as JsonObject).keys()],
    ['name', 'labels', 'annotations', 'ownerReferences', 'managedFields'],
  )
  const annotations = field(served, 'metadata', 'annotations') as JsonObject
  assert.deepEqual(
    [...annotations],
    [
      ['a', '2'],
      [`${carrier}behavior`, '{"ScaleUp":null,"ScaleDown":null}'],
      ['z', '1'],
    ],
  )
})
