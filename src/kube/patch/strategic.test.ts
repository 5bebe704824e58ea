import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { builtinSchemas } from '../builtin.ts'
import { equalJson, field, fromPlain, type Json, type JsonObject, parseJson, printJson, text } from '../json/json.ts'
import { StatusError } from '../status.ts'
import { mergeSchemaOf, type OpenApiSchema } from './mergeschema.ts'
import { applyPatch } from './patch.ts'
import type { MergeSchema } from './strategic.ts'

const schemas = builtinSchemas() as Record<string, OpenApiSchema>

function schemaOf(kind: string): MergeSchema {
  return mergeSchemaOf(schemas, `io.k8s.api.${kind === 'Deployment' ? 'apps' : 'core'}.v1.${kind}`)!
}

function patched(object: unknown, patch: unknown): JsonObject {
  const original = fromPlain(object) as JsonObject
  return applyPatch('strategic', original, fromPlain(patch), schemaOf(text(original, 'kind')))
}

function failing(object: unknown, patch: unknown): StatusError {
  try {
    patched(object, patch)
  } catch (error) {
    assert.ok(error instanceof StatusError, String(error))
    return error
  }
  throw new assert.AssertionError({ message: 'the patch was accepted' })
}

/** Results and errors are those of kubectl 1.36.3, `kubectl patch --local --type strategic`. */
const cases = parseJson(readFileSync(new URL('./testdata/strategic-patches.json', import.meta.url))) as JsonObject[]

for (const sample of cases) {
  test(`strategic patch as kubectl applies it: ${text(sample, 'name')}`, () => {
    const object = sample.get('object') as JsonObject
    const patch = sample.get('patch') as Json
    const inputs = printJson([object, patch])
    const error = sample.get('error')
    if (typeof error === 'string') {
      const { message } = failing(object, patch)
      assert.equal(message.trim(), error)
    } else {
      const result = patched(object, patch)
      assert.ok(equalJson(result, sample.get('result')!), printJson(result))
    }
    assert.equal(printJson([object, patch]), inputs, 'inputs are left alone')
  })
}

const pod = (spec: unknown, metadata: object = {}) => ({ kind: 'Pod', metadata: { name: 'p', ...metadata }, spec })

test('[A5] what a strategic patch does not touch keeps its order and spelling', () => {
  const original = parseJson(
    '{"kind":"Pod","spec":{"containers":[{"image":"i","name":"a","x":1.0}],"priority":9007199254740993},"a":1e3}',
  ) as JsonObject
  const patch = parseJson(
    '{"spec":{"containers":[{"name":"a","image":"j"}]},"metadata":{"generation":9007199254740995}}',
  )
  assert.equal(
    printJson(applyPatch('strategic', original, patch, schemaOf('Pod'))),
    '{"kind":"Pod","spec":{"containers":[{"image":"j","name":"a","x":1.0}],"priority":9007199254740993},"a":1e3,' +
      '"metadata":{"generation":9007199254740995}}',
  )
})

test('merge keys beyond 2^53 are told apart, and 80 is not 80.0', () => {
  const service = parseJson('{"kind":"Service","spec":{"ports":[{"port":9007199254740993},{"port":80}]}}') as JsonObject
  const patch = parseJson('{"spec":{"ports":[{"port":9007199254740992,"name":"x"}]}}')
  const ports = field(applyPatch('strategic', service, patch, schemaOf('Service')), 'spec', 'ports')
  assert.equal(printJson(ports!), '[{"port":9007199254740992,"name":"x"},{"port":9007199254740993},{"port":80}]')
  assert.match(
    failing({ kind: 'Pod', metadata: { finalizers: [1] } }, parseJson('{"metadata":{"finalizers":[1.0]}}')).message,
    /^list element types are not identical/,
  )
})

test('under $setElementOrder a new element takes the slot a deletion freed', () => {
  const result = patched(pod({ containers: [{ name: 'c' }, { name: 'a' }, { name: 'e' }, { name: 'd' }] }), {
    spec: {
      '$setElementOrder/containers': [{ name: 'e' }, { name: 'b' }],
      containers: [{ name: 'b' }, { name: 'a', $patch: 'delete' }],
    },
  })
  const containers = field(result, 'spec', 'containers') as Json[]
  assert.deepEqual(
    containers.map((container) => text(container, 'name')),
    ['c', 'e', 'd', 'b'],
  )
})

test('an object with the strategy replace is not merged', () => {
  const budget = fromPlain({ spec: { minAvailable: 1, selector: { matchLabels: { a: '1' }, matchExpressions: [] } } })
  const patch = fromPlain({ spec: { selector: { matchLabels: { b: '2' } } } })
  const schema = mergeSchemaOf(schemas, 'io.k8s.api.policy.v1.PodDisruptionBudget')!
  const result = applyPatch('strategic', budget as JsonObject, patch, schema)
  assert.equal(printJson(result), '{"spec":{"minAvailable":1,"selector":{"matchLabels":{"b":"2"}}}}')
})

test('kinds of failure: 400 for a malformed directive, 422 for lists of lists, 500 for the rest', () => {
  const code = (object: unknown, patch: unknown) => {
    const { status } = failing(object, patch)
    return [status.code, status.reason]
  }
  assert.deepEqual(code(pod({}), { spec: { $setElementOrder: [] } }), [400, 'BadRequest'])
  assert.deepEqual(code(pod({}), { spec: { $deleteFromPrimitiveList: [] } }), [400, 'BadRequest'])
  assert.deepEqual(code(pod({ strategy: {} }), { spec: { $retainKeys: 1 } }), [400, 'BadRequest'])
  assert.deepEqual(code(pod({}, { finalizers: [['a']] }), { metadata: { finalizers: ['b'] } }), [422, 'Invalid'])
  assert.deepEqual(code(pod({ containers: [] }), { spec: { containers: [{ image: 'x' }] } }), [500, undefined])
})

test('without a schema there is no strategic merge', () => {
  const error = new Map<string, Json>()
  assert.throws(() => applyPatch('strategic', error, new Map()), {
    message: 'strategic merge patch format is not supported',
  })
})

test('the patch body must be an object; null changes nothing', () => {
  const object = fromPlain(pod({})) as JsonObject
  assert.throws(() => applyPatch('strategic', object, [], schemaOf('Pod')), {
    message: 'json: cannot unmarshal array into Go value of type map[string]interface {}',
  })
  assert.ok(equalJson(applyPatch('strategic', object, null, schemaOf('Pod')), object))
})

test('a schema step reads references, lists, keys and strategies', () => {
  const podSchema = schemaOf('Pod')
  const spec = podSchema.property('spec')!
  assert.equal(spec.name, 'PodSpec')
  const volumes = spec.property('volumes')!
  assert.equal(volumes.mergeKey, 'name')
  assert.deepEqual(volumes.strategies, ['merge', 'retainKeys'])
  assert.equal(volumes.element()!.name, 'Volume')
  assert.equal(podSchema.property('metadata')!.property('labels')!.name, 'map')
  assert.equal(spec.property('constructor'), undefined)
  assert.equal(spec.element(), undefined)
  assert.equal(mergeSchemaOf(schemas, 'no.such.Type'), undefined)
})
