import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { configMap, deleted, notFound, partial, tokenRequest } from './protobuf/messages.test-support.ts'
import { replyVersion } from './replies.ts'

const json = 'application/json'
const protobuf = 'application/vnd.kubernetes.protobuf'
const uid = 'a2377650-7b97-46c9-b3cb-3c564afe7ba7'
const metadata = `"metadata":{"name":"t1","namespace":"pbwork","uid":"${uid}","resourceVersion":"368"}`
const object = `{"kind":"ConfigMap","apiVersion":"v1",${metadata}}\n`
const table = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"400"},"columnDefinitions":[],"rows":[{"cells":["t1",0],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",${metadata}}}]}\n`
const gone = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"t1","kind":"configmaps","uid":"${uid}"}}\n`
const of = { name: 't1', namespace: 'pbwork', uid }

function told(contentType: string | undefined, bytes: Buffer | string) {
  return replyVersion(contentType, Buffer.from(bytes as string))
}

test('[A7] an object in JSON, also indented and custom', () => {
  assert.deepEqual(told(json, object), { kind: 'ConfigMap', ...of, version: 368 })
  assert.deepEqual(told(json, JSON.stringify(JSON.parse(object), undefined, 2)), {
    kind: 'ConfigMap',
    ...of,
    version: 368,
  })
  const custom = `{"aaa":{"kind":"x"},"apiVersion":"example.com/v1","kind":"Odd",${metadata},"status":"Failure"}`
  assert.deepEqual(told('application/json; charset=utf-8', custom), { kind: 'Odd', ...of, version: 368 })
})

test('[A7] the forms that carry only metadata', () => {
  assert.deepEqual(told(json, table), { kind: 'Table', ...of, version: 368 })
  const bare = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",${metadata}}`
  assert.deepEqual(told(json, bare), { kind: 'PartialObjectMetadata', ...of, version: 368 })
})

test('[A7] protobuf', () => {
  const cm = { name: 'cm', namespace: 'pbwork', uid: '60172ed7-69ea-4a47-b738-f9ac3672da85' }
  assert.deepEqual(told(protobuf, configMap), { kind: 'ConfigMap', ...cm, version: 311 })
  assert.deepEqual(told(protobuf, partial), { kind: 'PartialObjectMetadata', ...of, version: 370 })
  assert.deepEqual(told(protobuf, deleted), { kind: 'Status', ...cm, namespace: '', version: undefined })
  assert.equal(told(protobuf, tokenRequest)?.version, undefined)
  assert.equal(told(protobuf, notFound), undefined)
})

test('[A7] a deletion that is done names what is gone', () => {
  assert.deepEqual(told(json, gone), { kind: 'Status', ...of, namespace: '', version: undefined })
})

test('what does not tell is undefined', () => {
  const answers: [string | undefined, string][] = [
    [undefined, object],
    ['application/yaml', 'kind: Pod'],
    ['text/plain', 'log line'],
    [json, ''],
    [json, '[]'],
    [json, 'null'],
    [json, object.slice(0, -2)],
    [json, '{}'],
    [json, '{"kind":"Pod","metadata":null}'],
    [json, '{"kind":"Pod","metadata":{}}'],
    [json, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[${object}]}`],
    [json, gone.replace('Success', 'Failure')],
    [json, gone.replace(/,"details".*}/, '}')],
    [json, gone.replace(/"details".*}/, '"details":null}')],
    [json, table.replace(/"rows":.*]/, '"rows":[]')],
    [json, table.replace(/"rows":.*]/, '"rows":null')],
    [json, table.replace(/"object":.*}}}/, '"object":null}')],
    [json, table.replace('"rows":[', `"rows":[{"cells":[],"object":${object}},`)],
    [protobuf, object],
    [json, configMap.toString('latin1')],
  ]
  for (const [contentType, text] of answers) assert.equal(told(contentType, text), undefined, text)
  assert.equal(told(json, object.replace('"368"', '"abc"'))?.version, undefined)
  assert.equal(told(json, object.replace('"368"', '"99999999999999999999"'))?.version, undefined)
})

test('no bytes make it throw', () => {
  const edit = fc.tuple(fc.nat(), fc.constantFrom(0, 1, 3), fc.uint8Array({ maxLength: 4 }))
  const sample = fc.constantFrom(object, table, gone).map((text) => Buffer.from(text))
  fc.assert(
    fc.property(
      fc.oneof(sample, fc.constantFrom(configMap, deleted)),
      fc.array(edit, { maxLength: 3 }),
      (bytes, edits) => {
        const damaged = [...bytes]
        for (const [at, removed, added] of edits) damaged.splice(at % damaged.length, removed, ...added)
        for (const contentType of [json, protobuf]) replyVersion(contentType, Buffer.from(damaged))
      },
    ),
    { numRuns: 3000 },
  )
})
