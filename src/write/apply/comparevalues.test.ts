import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromPlain, parseJson } from '../../kube/json/json.ts'
import { compareValues } from './comparevalues.ts'
import { TypeFault } from './faults.ts'
import { fieldsOf } from './fieldsof.ts'
import type { FieldType } from './fieldtype.ts'
import { printPath } from './pathelement.ts'
import { removeFields } from './removefields.ts'
import { FieldTypes } from './typesfrom.ts'

const types = new FieldTypes({})
const item = { type: 'object', properties: { k: { type: 'string' }, v: { type: 'string' } } }
const type: FieldType = types.custom({
  type: 'object',
  properties: {
    text: { type: 'string' },
    any: {},
    struct: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
    map: { type: 'object', additionalProperties: { type: 'string' } },
    whole: { type: 'object', additionalProperties: { type: 'string' }, 'x-kubernetes-map-type': 'atomic' },
    list: { type: 'array', items: { type: 'string' } },
    set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    items: { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] },
  },
})

function changes(before: string, after: string): string {
  const { removed, modified, added } = compareValues(parseJson(before), parseJson(after), type)
  const list = (sign: string, set: typeof added) => [...set.paths()].map((path) => sign + printPath(path))
  return [...list('-', removed), ...list('~', modified), ...list('+', added)].join(' ')
}

const cases: readonly (readonly [before: string, after: string, changes: string])[] = [
  ['{"text":"a"}', '{"text":"a"}', ''],
  ['{"text":"a"}', '{"text":"b"}', '~.text'],
  ['{}', '{"text":"a"}', '+.text'],
  ['{"text":"a"}', '{}', '-.text'],
  ['{"text":"a"}', '{"text":null}', '~.text'],
  ['{"struct":{"a":"1"}}', '{"struct":{"b":"1"}}', '-.struct.a +.struct.b'],
  ['{}', '{"struct":{"a":"1"}}', '+.struct +.struct.a'],
  ['{"struct":{"a":"1"}}', '{}', '-.struct -.struct.a'],
  ['{}', '{"struct":{}}', '+.struct'],
  ['{"struct":null}', '{"struct":{}}', '~.struct'],
  ['{"struct":null}', '{"struct":{"a":"1"}}', '+.struct.a'],
  ['{"map":{"a":"1","b":"2"}}', '{"map":{"b":"3","c":"4"}}', '-.map.a ~.map.b +.map.c'],
  ['{"map":{"a":"1"}}', '{"map":{}}', '-.map.a'],
  ['{"whole":{"a":"1"}}', '{"whole":{"a":"2"}}', '~.whole'],
  ['{"list":["a"]}', '{"list":["a","b"]}', '~.list'],
  ['{"set":["a","b"]}', '{"set":["b","c"]}', '-.set[="a"] +.set[="c"]'],
  ['{"set":["a","b"]}', '{"set":["b","a"]}', ''],
  ['{}', '{"set":["a"]}', '+.set +.set[="a"]'],
  ['{}', '{"set":[]}', '+.set'],
  ['{"items":[{"k":"a","v":"1"}]}', '{"items":[{"k":"a","v":"2"}]}', '~.items[k="a"].v'],
  [
    '{"items":[{"k":"a","v":"1"}]}',
    '{"items":[{"k":"b"}]}',
    '-.items[k="a"] -.items[k="a"].k -.items[k="a"].v +.items[k="b"] +.items[k="b"].k',
  ],
  [
    '{"items":[{"k":"a","v":"1"},{"k":"a","v":"2"}]}',
    '{"items":[{"k":"a","v":"1"},{"k":"a","v":"3"}]}',
    '~.items[k="a"]',
  ],
  [
    '{"items":[{"k":"a","v":"1"},{"k":"a"}]}',
    '{"items":[{"k":"a"}]}',
    '-.items[k="a"] +.items[k="a"] +.items[k="a"].k',
  ],
  [
    '{"items":[{"k":"a"}]}',
    '{"items":[{"k":"a","v":"1"},{"k":"a"}]}',
    '-.items[k="a"] -.items[k="a"].k +.items[k="a"]',
  ],
  ['{"any":1}', '{"any":1.0}', ''],
  ['{"any":1}', '{"any":"1"}', '~.any'],
  ['{"any":{"a":1}}', '{"any":"x"}', '-.any.a ~.any'],
  ['{"any":{"a":1,"b":[1]}}', '{"any":{"a":2,"b":[2]}}', '~.any.a ~.any.b'],
  ['{"any":9007199254740993}', '{"any":9007199254740992}', '~.any'],
]
for (const [before, after, wanted] of cases) {
  test(`from ${before} to ${after}`, () => assert.equal(changes(before, after), wanted))
}

test('items that cannot be told apart are a fault, with their place', () => {
  assert.throws(
    () => changes('{"items":[{"v":"a"}]}', '{}'),
    (error) =>
      error instanceof TypeFault && error.message.startsWith('.items: element 0: associative list with keys has'),
  )
})

test('a fields list names leaves, items and keys of maps; what is empty or null names itself', () => {
  const named = (text: string) => [...fieldsOf(parseJson(text), type).paths()].map(printPath).join(' ')
  assert.equal(named('{"text":"a","struct":{"a":"1"},"map":{"b":"1"}}'), '.text .map.b .struct.a')
  assert.equal(named('{"struct":{},"map":null,"set":[],"list":[],"items":null}'), '.items .list .map .struct')
  assert.equal(named('{"whole":{"a":"1"},"set":["x"]}'), '.whole .set[="x"]')
  assert.equal(
    named('{"items":[{"k":"a","v":"1"},{"k":"b"},{"k":"b"}]}'),
    '.items[k="a"] .items[k="b"] .items[k="a"].k .items[k="a"].v',
  )
})

test('the changes of anything from nothing are its fields, and removing them leaves nothing of them', () => {
  const value = fc.record(
    {
      text: fc.string(),
      any: fc.jsonValue(),
      map: fc.dictionary(fc.constantFrom('a', 'b'), fc.string()),
      set: fc.uniqueArray(fc.constantFrom('a', 'b', 'c')),
      items: fc.uniqueArray(fc.constantFrom('a', 'b', 'c')).map((keys) => keys.map((k) => ({ k }))),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(value, (plain) => {
      const tree = fromPlain(plain)
      const { removed, modified, added } = compareValues(new Map(), tree, type)
      assert.equal(removed.isEmpty && modified.isEmpty, true)
      const fields = fieldsOf(tree, type)
      assert.equal(fields.difference(added).isEmpty, true)
      const rest = removeFields(tree, added, type)
      assert.equal(rest, null)
      const back = compareValues(tree, tree, type)
      assert.equal(back.removed.isEmpty && back.modified.isEmpty && back.added.isEmpty, true)
    }),
  )
})
