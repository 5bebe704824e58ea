import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson, printJson } from '../../kube/json/json.ts'
import type { Schema } from '../../kube/schema/schema.ts'
import { parseFields, printFields } from './fieldsv1.ts'
import { deducedType, type FieldType } from './fieldtype.ts'
import { reconcileFields, withNamedFields } from './reconcile.ts'
import { FieldTypes } from './typesfrom.ts'

const types = new FieldTypes({})
const item: Schema = { type: 'object', properties: { k: { type: 'string' }, v: { type: 'string' } } }
const typeWith = (x: Schema): FieldType => types.custom({ type: 'object', properties: { x } })

const granular: Readonly<Record<string, Schema>> = {
  list: { type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] },
  map: { type: 'object', additionalProperties: { type: 'string' } },
  struct: item,
}
const atomic: Readonly<Record<string, Schema>> = {
  list: { type: 'array', items: item },
  map: { type: 'object', additionalProperties: { type: 'string' }, 'x-kubernetes-map-type': 'atomic' },
  struct: { ...item, 'x-kubernetes-map-type': 'atomic' },
  free: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
}

const reconciled = (fields: string, type: FieldType) =>
  printJson(printFields(reconcileFields(parseFields(parseJson(fields)), type)))

const cases: readonly (readonly [title: string, schema: Schema | undefined, fields: string, wanted: string])[] = [
  ['a list that became atomic', atomic.list, '{"f:x":{"k:{\\"k\\":\\"a\\"}":{".":{},"f:v":{}}}}', '{"f:x":{}}'],
  ['a map that became atomic', atomic.map, '{"f:x":{".":{},"f:a":{}}}', '{"f:x":{}}'],
  ['a struct that became atomic', atomic.struct, '{"f:x":{"f:v":{}}}', '{"f:x":{}}'],
  ['what was atomic already', atomic.struct, '{"f:x":{}}', '{"f:x":{}}'],
  ['what is granular now', granular.struct, '{"f:x":{}}', '{"f:x":{}}'],
  [
    'a granular list',
    granular.list,
    '{"f:x":{"k:{\\"k\\":\\"a\\"}":{"f:v":{}}}}',
    '{"f:x":{"k:{\\"k\\":\\"a\\"}":{"f:v":{}}}}',
  ],
  ['what is declared only as an object', atomic.free, '{"f:x":{"f:a":{}}}', '{"f:x":{"f:a":{}}}'],
  ['fields nobody declares', granular.map, '{"f:y":{"f:z":{}}}', '{"f:y":{"f:z":{}}}'],
]
for (const [title, schema, fields, wanted] of cases) {
  test(title, () => assert.equal(reconciled(fields, typeWith(schema ?? {})), wanted))
}

test('atomic parts below items and keys are found too', () => {
  const deep = typeWith({
    type: 'array',
    items: {
      type: 'object',
      properties: { k: { type: 'string' }, m: { type: 'object', additionalProperties: atomic.struct! } },
    },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['k'],
  })
  const fields = '{"f:x":{"k:{\\"k\\":\\"a\\"}":{"f:k":{},"f:m":{"f:p":{"f:v":{}},"f:q":{}}}}}'
  assert.equal(reconciled(fields, deep), '{"f:x":{"k:{\\"k\\":\\"a\\"}":{"f:k":{},"f:m":{"f:p":{},"f:q":{}}}}}')
})

test('a set that fits is the same set, not a copy', () => {
  const fields = parseFields(parseJson('{"f:x":{"f:v":{}}}'))
  assert.equal(reconcileFields(fields, typeWith(granular.struct!)), fields)
  assert.equal(reconcileFields(fields, deducedType), fields)
})

test('declared fields above a member become members, keys of maps and items do not', () => {
  const type = types.custom({
    type: 'object',
    properties: { list: granular.list!, map: { type: 'object', additionalProperties: item } },
  })
  const fields = parseFields(
    parseJson('{"f:list":{"k:{\\"k\\":\\"a\\"}":{"f:v":{}}},"f:map":{"f:b":{"f:v":{}}},"f:no":{"f:w":{}}}'),
  )
  assert.equal(
    printJson(printFields(withNamedFields(fields, type))),
    '{"f:list":{".":{},"k:{\\"k\\":\\"a\\"}":{"f:v":{}}},"f:map":{".":{},"f:b":{"f:v":{}}},"f:no":{"f:w":{}}}',
  )
})
