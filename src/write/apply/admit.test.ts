import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from '../../kube/json/json.ts'
import type { Schema } from '../../kube/schema/schema.ts'
import { admit, admitStored } from './admit.ts'
import { TypeFault } from './faults.ts'
import { FieldTypes } from './typesfrom.ts'

const types = new FieldTypes({})
const item: Schema = {
  type: 'object',
  properties: { name: { type: 'string' }, port: { type: 'integer', default: 80 } },
}
const type = types.custom({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        text: { type: 'string' },
        when: { type: 'string', format: 'date-time' },
        count: { type: 'integer' },
        flag: { type: 'boolean' },
        either: { 'x-kubernetes-int-or-string': true },
        object: { type: 'object', properties: { a: { type: 'string' } } },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
        list: { type: 'array', items: { type: 'string' } },
        set: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
        byName: { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
        byBoth: {
          type: 'array',
          items: item,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['port', 'name'],
        },
        open: { type: 'object', properties: { a: item }, 'x-kubernetes-preserve-unknown-fields': true },
        embedded: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
      },
    },
  },
})

function faultOf(spec: string, check: typeof admit = admit): string | undefined {
  try {
    check(parseJson(`{"apiVersion":"v1","kind":"T","spec":${spec}}`), type)
    return undefined
  } catch (error) {
    if (error instanceof TypeFault) return error.message
    throw error
  }
}

const refused: Readonly<Record<string, string>> = {
  '{"nope":1}': '.spec.nope: field not declared in schema',
  '{"text":5}': '.spec.text: expected string, got &value.valueUnstructured{Value:5}',
  '{"text":true}': '.spec.text: expected string, got &value.valueUnstructured{Value:true}',
  '{"text":{"a":[1,"x",null]}}':
    '.spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}}}',
  '{"count":"x"}': '.spec.count: expected numeric (int or float), got string',
  '{"count":[]}': '.spec.count: expected numeric (int or float), got []interface {}',
  '{"flag":"yes"}': '.spec.flag: expected boolean, got &{yes}',
  '{"when":{"a":1}}': '.spec.when: expected any scalar, got &{map[a:1]}',
  '{"object":"x"}': '.spec.object: expected map, got &{x}',
  '{"object":[1,2]}': '.spec.object: expected map, got &{[1 2]}',
  '{"labels":{"a":1}}': '.spec.labels.a: expected string, got &value.valueUnstructured{Value:1}',
  '{"list":{"a":1}}': '.spec.list: expected list, got &{map[a:1]}',
  '{"list":["a",1]}': '.spec.list[1]: expected string, got &value.valueUnstructured{Value:1}',
  '{"set":["a","b","a"]}': '.spec.set: duplicate entries for key [="a"]',
  '{"set":[null]}': ".spec.set: element 0: associative list without keys has an element that's an explicit null",
  '{"set":[{}]}': ".spec.set: element 0: associative list without keys has an element that's a map type",
  '{"set":[[]]}': '.spec.set: element 0: not supported: associative list with lists as elements',
  '{"byName":[{"name":"a"},{"name":"a"}]}': '.spec.byName: duplicate entries for key [name="a"]',
  '{"byName":[{"port":1}]}':
    '.spec.byName: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)',
  '{"byName":["a"]}': '.spec.byName: element 0: associative list with keys may not have non-map elements',
  '{"byName":[null]}': '.spec.byName: element 0: associative list with keys may not have a null element',
  '{"byName":[{"name":"a","x":1}]}': '.spec.byName[name="a"].x: field not declared in schema',
  '{"byBoth":[{"name":"a"},{"name":"a","port":80}]}': '.spec.byBoth: duplicate entries for key [name="a",port=80]',
  '{"byBoth":[{"name":"a","port":1,"x":2}]}': '.spec.byBoth[name="a",port=1].x: field not declared in schema',
  '{"open":{"a":{"name":5}}}': '.spec.open.a.name: expected string, got &value.valueUnstructured{Value:5}',
  '{"embedded":{"kind":5}}': '.spec.embedded.kind: expected string, got &value.valueUnstructured{Value:5}',
  '{"text":1,"flag":"x"}':
    'errors:\n  .spec.text: expected string, got &value.valueUnstructured{Value:1}\n  .spec.flag: expected boolean, got &{x}',
}
for (const [spec, message] of Object.entries(refused)) {
  test(`refused: ${spec}`, () => assert.equal(faultOf(spec), message))
}

const admitted = [
  'null',
  '{}',
  '{"text":null,"list":null,"object":null,"set":[],"byName":null}',
  '{"when":5,"either":"x"}',
  '{"either":5}',
  '{"byBoth":[{"port":80},{"name":"a"},{"name":"a","port":1}]}',
  '{"open":{"x":{"y":[1]},"a":{"z":1}}}',
  '{"count":1.5}',
  '{"embedded":{"kind":"K","metadata":{"name":"x"},"more":{"x":1}}}',
]
for (const spec of admitted) test(`admitted: ${spec}`, () => assert.equal(faultOf(spec), undefined))

test('what is stored may have items twice and fields of a later version', () => {
  assert.equal(
    faultOf('{"set":["a","a"],"byName":[{"name":"a"},{"name":"a"}],"nope":{"x":[1]}}', admitStored),
    undefined,
  )
  assert.equal(faultOf('{"flag":"yes"}', admitStored), '.spec.flag: expected boolean, got &{yes}')
})
