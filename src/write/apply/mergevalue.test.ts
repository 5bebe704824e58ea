import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { equalJson, fromPlain, parseJson, printJson } from '../../kube/json/json.ts'
import { deducedType, type FieldType, untypedType } from './fieldtype.ts'
import { mergeValues } from './mergevalue.ts'
import { FieldTypes } from './typesfrom.ts'

const types = new FieldTypes({})
const wrapped = (schema: object): FieldType => types.custom({ type: 'object', properties: { x: schema } })
const merged = (base: string, over: string, type: FieldType): string => {
  const value = mergeValues(parseJson(`{"x":${base}}`), parseJson(`{"x":${over}}`), type)
  return printJson(value instanceof Map ? (value.get('x') ?? null) : null)
}

const set = wrapped({ type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' })
const orders: readonly (readonly [base: string, over: string, result: string])[] = [
  ['abc', 'abc', 'abc'],
  ['abc', '', 'abc'],
  ['', 'abc', 'abc'],
  ['abc', 'd', 'abcd'],
  ['abc', 'cba', 'cba'],
  ['abc', 'ca', 'bca'],
  ['abc', 'b', 'abc'],
  ['abcd', 'xb', 'axbcd'],
  ['abcd', 'bx', 'abcdx'],
  ['abcde', 'edx', 'abcedx'],
  ['abcde', 'bcx', 'abcdex'],
  ['abcd', 'dxa', 'bcdxa'],
  ['ab', 'xayb', 'xayb'],
]
for (const [base, over, result] of orders) {
  test(`items of "${base}" with "${over}" laid over`, () => {
    const list = (letters: string) => JSON.stringify([...letters])
    assert.equal(merged(list(base), list(over), set), list(result))
  })
}

const keyed = wrapped({
  type: 'array',
  items: {
    type: 'object',
    properties: {
      k: { type: 'integer' },
      l: { type: 'string', default: 'T' },
      v: { type: 'string' },
      w: { type: 'string' },
    },
  },
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['k', 'l'],
})
const map = wrapped({ type: 'object', additionalProperties: { type: 'string' } })
const atomicMap = wrapped({
  type: 'object',
  additionalProperties: { type: 'string' },
  'x-kubernetes-map-type': 'atomic',
})
const list = wrapped({ type: 'array', items: { type: 'string' } })
const any = wrapped({})

const cases: Readonly<Record<string, readonly [FieldType, string, string, string]>> = {
  'items with the same keys are merged': [
    keyed,
    '[{"k":1,"v":"a"},{"k":2,"v":"b"}]',
    '[{"k":2,"w":"c"},{"k":3}]',
    '[{"k":1,"v":"a"},{"k":2,"v":"b","w":"c"},{"k":3}]',
  ],
  'an absent key is its default': [
    keyed,
    '[{"k":1,"v":"a"}]',
    '[{"k":1,"l":"T","v":"b"}]',
    '[{"k":1,"v":"b","l":"T"}]',
  ],
  'another key is another item': [keyed, '[{"k":1,"v":"a"}]', '[{"k":1,"l":"U"}]', '[{"k":1,"v":"a"},{"k":1,"l":"U"}]'],
  'an item that stood twice is replaced': [
    keyed,
    '[{"k":1,"v":"a"},{"k":1,"w":"b"}]',
    '[{"k":1,"l":"T"}]',
    '[{"k":1,"l":"T"}]',
  ],
  'items that stand twice stay if nobody speaks of them': [
    keyed,
    '[{"k":1,"v":"a"},{"k":1,"w":"b"}]',
    '[{"k":2}]',
    '[{"k":1,"v":"a"},{"k":1,"w":"b"},{"k":2}]',
  ],
  'maps are merged': [map, '{"a":"1","b":"2"}', '{"b":"3","c":"4"}', '{"a":"1","b":"3","c":"4"}'],
  'an empty map leaves the other': [map, '{"a":"1"}', '{}', '{"a":"1"}'],
  'null leaves the other': [map, '{"a":"1"}', 'null', '{"a":"1"}'],
  'null over an empty map': [map, '{}', 'null', 'null'],
  'an empty map over null': [map, 'null', '{}', '{}'],
  'atomic maps are replaced': [atomicMap, '{"a":"1","b":"2"}', '{"b":"3"}', '{"b":"3"}'],
  'atomic lists are replaced': [list, '["a","b"]', '["c"]', '["c"]'],
  'an atomic list can be emptied': [list, '["a","b"]', '[]', '[]'],
  'a set cannot': [set, '["a","b"]', '[]', '["a","b"]'],
  'what is not declared may change its form': [any, '{"a":1}', '"x"', '"x"'],
  'a map over a scalar': [any, '"x"', '{"a":1}', '{"a":1}'],
  'a list over a map': [any, '{"a":1}', '[1]', '[1]'],
  'a scalar is replaced by null': [wrapped({ type: 'string' }), '"a"', 'null', 'null'],
}
for (const [title, [type, base, over, result]] of Object.entries(cases)) {
  test(title, () => assert.equal(merged(base, over, type), result))
}

test('laying the same over a second time changes nothing, and none of the two is changed', () => {
  const letters = fc.uniqueArray(fc.constantFrom(...'abcdef'))
  const value = fc.record({
    set: letters,
    map: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.string()),
    any: fc.jsonValue(),
  })
  const type = types.custom({
    type: 'object',
    properties: {
      set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
      map: { type: 'object', additionalProperties: { type: 'string' } },
      any: {},
    },
  })
  fc.assert(
    fc.property(value, value, (a, b) => {
      const [base, over] = [fromPlain(a), fromPlain(b)]
      const once = mergeValues(base, over, type)
      assert.ok(equalJson(mergeValues(once, over, type), once))
      assert.deepEqual([printJson(base), printJson(over)], [printJson(fromPlain(a)), printJson(fromPlain(b))])
    }),
  )
})

test('undeclared lists are one value, undeclared maps are many', () => {
  const value = (text: string) => parseJson(text)
  const result = mergeValues(value('{"a":{"b":1},"c":[1]}'), value('{"a":{"d":2},"c":[2]}'), deducedType)
  assert.equal(printJson(result), '{"a":{"b":1,"d":2},"c":[2]}')
  assert.equal(printJson(mergeValues(value('{"a":1}'), value('{"b":1}'), untypedType)), '{"b":1}')
})
