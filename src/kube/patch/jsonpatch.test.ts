import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromPlain, type Json, type JsonObject, parseJson, printJson } from '../json/json.ts'
import { StatusError } from '../status.ts'
import { COPY_BYTES_MAX, OPERATIONS_MAX } from './jsonpatch.ts'
import { applyPatch } from './patch.ts'

test('a patch that cannot be decoded is a 400', () => {
  const refusals: [string, string][] = [
    ['{}', 'object into Go value of type []handlers.jsonPatchOp'],
    ['"x"', 'string into Go value of type []handlers.jsonPatchOp'],
    ['[1]', 'number into Go value of type handlers.jsonPatchOp'],
    ['[{"op":true}]', 'bool into Go struct field jsonPatchOp.op of type string'],
    ['[{"op":"add","path":[]}]', 'array into Go struct field jsonPatchOp.path of type string'],
    ['[{"op":"copy","path":"","from":{}}]', 'object into Go struct field jsonPatchOp.from of type string'],
  ]
  for (const [patch, what] of refusals) {
    assert.throws(() => applyPatch('json', new Map(), parseJson(patch)), {
      name: 'StatusError',
      code: 400,
      message: `error decoding patch: json: cannot unmarshal ${what}`,
    })
  }
})

test('a failing operation is a 422 with the real text, and says inside what went wrong', () => {
  const patch = parseJson('[{"op":"test","path":"/a","value":2}]')
  try {
    applyPatch('json', parseJson('{"a":1}') as JsonObject, patch)
    assert.fail('accepted')
  } catch (error) {
    assert.ok(error instanceof StatusError)
    assert.deepEqual(error.status, {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'the server rejected our request due to an error in our request',
      reason: 'Invalid',
      details: {},
      code: 422,
    })
    assert.equal((error.cause as Error).message, 'testing value /a failed: test failed')
  }
})

test('operations and copied bytes are limited', () => {
  const target = parseJson(`{"a":"${'x'.repeat(1024)}"}`) as JsonObject
  const tests = (count: number): Json => Array.from({ length: count }, () => fromPlain({ op: 'test', path: '/b' }))
  assert.ok(applyPatch('json', target, tests(OPERATIONS_MAX)))
  assert.throws(() => applyPatch('json', target, tests(OPERATIONS_MAX + 1)), {
    code: 413,
    message: 'Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001',
  })
  const copies = (count: number): Json =>
    Array.from({ length: count }, () => fromPlain({ op: 'copy', from: '/a', path: '/b' }))
  const most = Math.floor(COPY_BYTES_MAX / 1026)
  assert.ok(applyPatch('json', target, copies(most)))
  assert.throws(() => applyPatch('json', target, copies(most + 1)), { code: 422 })
})

test('test compares numbers by spelling', () => {
  const target = parseJson('{"a":1.0,"b":9007199254740993}') as JsonObject
  const testing = (path: string, value: string) => () =>
    applyPatch('json', target, parseJson(`[{"op":"test","path":"${path}","value":${value}}]`))
  testing('/a', '1.0')()
  testing('/b', '9007199254740993')()
  assert.throws(testing('/a', '1'), { code: 422 })
  assert.throws(testing('/b', '9007199254740995'), { code: 422 })
})

test('the result must be an object, in the end', () => {
  const target = new Map<string, Json>()
  const whole = (value: unknown) => fromPlain({ op: 'replace', path: '', value })
  assert.throws(() => applyPatch('json', target, [whole([1])]), { code: 422 })
  assert.equal(printJson(applyPatch('json', target, [whole([1]), whole({ a: 1 })])), '{"a":1}')
  assert.equal(printJson(applyPatch('json', target, null)), '{}')
  assert.throws(() => applyPatch('json', target, [null]), { code: 422 })
})

const pointer = fc.array(fc.constantFrom('a', 'b', '0', '1', '-', '-1', 'x'), { minLength: 1, maxLength: 3 })
const operation = fc
  .record({
    op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test'),
    path: pointer.map((parts) => `/${parts.join('/')}`),
    from: pointer.map((parts) => `/${parts.join('/')}`),
    value: fc.jsonValue({ maxDepth: 2 }),
  })
  .map(fromPlain)
const document = fc.constantFrom('{"a":{"a":1,"b":[1,2]},"b":[{"a":0},[1]],"x":null}', '{"a":[],"b":{"0":{"1":"y"}}}')

test('all operations apply or none: the object and the patch are left as they were', () => {
  fc.assert(
    fc.property(document, fc.array(operation, { maxLength: 6 }), (source, operations) => {
      const target = parseJson(source) as JsonObject
      const patch = printJson(operations)
      const step = (from: JsonObject, some: Json[]): JsonObject | undefined => {
        try {
          return applyPatch('json', from, some)
        } catch (error) {
          assert.ok(error instanceof StatusError && error.code === 422, String(error))
          return undefined
        }
      }
      const whole = step(target, operations)
      let oneByOne: JsonObject | undefined = target
      for (const single of operations) oneByOne = oneByOne && step(oneByOne, [single])
      assert.equal(whole && printJson(whole), oneByOne && printJson(oneByOne))
      assert.equal(printJson(target), source)
      assert.equal(printJson(operations), patch)
    }),
    { numRuns: 500 },
  )
})
