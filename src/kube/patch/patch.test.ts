import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { equalJson, fromPlain, type Json, type JsonObject, parseJson, printJson, text } from '../json/json.ts'
import { applyPatch, type PatchKind } from './patch.ts'

/** Results are those of kubectl 1.36.3, `kubectl patch --local --type json|merge`. */
const cases = parseJson(readFileSync(new URL('./testdata/patches.json', import.meta.url))) as JsonObject[]

for (const sample of cases) {
  const kind = text(sample, 'kind') as PatchKind
  test(`${kind} patch as kubectl applies it: ${text(sample, 'name')}`, () => {
    const object = sample.get('object') as JsonObject
    const patch = sample.get('patch') as Json
    const inputs = printJson([object, patch])
    if (sample.has('fails')) assert.throws(() => applyPatch(kind, object, patch), { name: 'StatusError', code: 422 })
    else {
      const result = applyPatch(kind, object, patch)
      assert.ok(equalJson(result, sample.get('result')!), printJson(result))
    }
    assert.equal(printJson([object, patch]), inputs, 'inputs are left alone')
  })
}

const key = fc.constantFrom('a', 'b', 'c')
const object = fc.dictionary(key, fc.jsonValue({ maxDepth: 3 })).map((plain) => fromPlain(plain) as JsonObject)
/** Without objects in lists: what becomes of nulls in those depends on what stood there before. */
const { members } = fc.letrec<{ members: JsonObject; value: Json }>((tie) => ({
  members: fc.array(fc.tuple(key, tie('value')), { maxLength: 3 }).map((entries) => new Map(entries)),
  value: fc.oneof({ depthSize: 'small' }, fc.constantFrom(null, 1, 'x'), fc.array(fc.integer()), tie('members')),
}))

test('merge patch: applying it twice is applying it once', () => {
  fc.assert(
    fc.property(object, members, (target, patch) => {
      const once = applyPatch('merge', target, patch)
      assert.equal(printJson(applyPatch('merge', once, patch)), printJson(once))
    }),
  )
})

test('merge patch: an empty one changes nothing, and no member the patch nulls is left', () => {
  fc.assert(
    fc.property(object, object, (target, patch) => {
      assert.equal(printJson(applyPatch('merge', target, new Map())), printJson(target))
      const result = applyPatch('merge', target, patch)
      for (const [key, value] of patch) assert.equal(result.has(key), value !== null)
      for (const [key, value] of target) if (!patch.has(key)) assert.ok(equalJson(result.get(key)!, value))
    }),
  )
})

test('no result shares anything with the inputs', () => {
  const target = parseJson('{"a":{"b":[{"c":1}]},"d":{}}') as JsonObject
  const merging = parseJson('{"e":{"f":[{}]},"d":{"g":[1]}}')
  const inputs = printJson([target, merging])
  for (const result of [applyPatch('merge', target, merging), applyPatch('json', target, [])]) scribble(result)
  assert.equal(printJson([target, merging]), inputs)
})

function scribble(value: Json): void {
  if (Array.isArray(value)) {
    value.forEach(scribble)
    value.push('scribble')
  } else if (value instanceof Map) {
    for (const member of value.values()) scribble(member)
    value.set('scribble', true)
  }
}

test('[A5] what a patch does not touch keeps its order and spelling', () => {
  const source = '{"z":9007199254740993,"10":1.0,"2":{"b":1e3,"a":-0},"last":[1.50]}'
  const target = parseJson(source) as JsonObject
  const merging = parseJson('{"2":{"a":12345678901234567890},"new":2.0}')
  assert.equal(
    printJson(applyPatch('merge', target, merging)),
    '{"z":9007199254740993,"10":1.0,"2":{"b":1e3,"a":12345678901234567890},"last":[1.50],"new":2.0}',
  )
  const operations = parseJson('[{"op":"replace","path":"/2/b","value":1.00},{"op":"remove","path":"/10"}]')
  assert.equal(
    printJson(applyPatch('json', target, operations)),
    '{"z":9007199254740993,"2":{"b":1.00,"a":-0},"last":[1.50]}',
  )
})

test('a merge patch must be an object', () => {
  const refusals: [Json, string][] = [
    [[], 'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}'],
    ['x', 'error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}'],
    [1, 'error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}'],
    [true, 'error decoding patch: json: cannot unmarshal bool into Go value of type map[string]interface {}'],
    [null, 'Invalid JSON Patch'],
  ]
  for (const [patch, message] of refusals) {
    assert.throws(() => applyPatch('merge', new Map(), patch), { name: 'StatusError', code: 400, message })
  }
})
