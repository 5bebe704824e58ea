/** The expected cells are those a real kube-apiserver 1.36 gave for the same columns and object. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../resource.ts'
import { type CustomColumn, columnsOf, rowOf } from './printers.ts'

const resource: Resource = {
  group: 'example.com',
  version: 'v1',
  resource: 'things',
  kind: 'Thing',
  listKind: 'ThingList',
  singular: 'thing',
  namespaced: true,
  verbs: ['get', 'list', 'watch'],
  shortNames: [],
  categories: [],
  subresources: [],
  interest: 'example.com/things',
  custom: true,
}

const object = {
  metadata: { name: 'x', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: {
    text: 'a<b>',
    whole: 42,
    real: 1.5,
    negative: -2.7,
    tiny: 0.00001,
    large: 1234567.5,
    yes: true,
    nothing: null,
    tree: { z: 1, a: [1, null, { q: '<x>' }], 10: 1, 9: 2 },
    zero: '0001-01-01T00:00:00Z',
    old: '1500-01-01T00:00:00Z',
    empty: '',
  },
}

const now = Date.parse('2026-01-01T00:05:00Z')

function cell(type: string, jsonPath: string): unknown {
  return rowOf(resource, object, now, [{ name: 'c', type, jsonPath }]).cells[1]
}

test('a string column prints whatever it finds', () => {
  const table: [string, unknown][] = [
    ['.spec.text', 'a<b>'],
    ['.spec.whole', '42'],
    ['.spec.real', '1.5'],
    ['.spec.tiny', '1e-05'],
    ['.spec.large', '1.2345675e+06'],
    ['.spec.yes', 'true'],
    ['.spec.nothing', '<no value>'],
    ['.spec.missing', null],
    ['.spec.empty', ''],
    ['.spec.tree', '{"10":1,"9":2,"a":[1,null,{"q":"\\u003cx\\u003e"}],"z":1}'],
  ]
  for (const [path, expected] of table) assert.equal(cell('string', path), expected, path)
})

test('other columns take only values of their type', () => {
  const table: [string, string, unknown][] = [
    ['integer', '.spec.whole', 42],
    ['integer', '.spec.real', 1],
    ['integer', '.spec.negative', -2],
    ['integer', '.spec.text', null],
    ['number', '.spec.real', 1.5],
    ['number', '.spec.yes', null],
    ['boolean', '.spec.yes', true],
    ['boolean', '.spec.text', null],
    ['date', '.metadata.creationTimestamp', '5m'],
    ['date', '.spec.zero', '<unknown>'],
    ['date', '.spec.empty', '<unknown>'],
    ['date', '.spec.text', '<invalid>'],
    ['date', '.spec.old', '292y'],
    ['date', '.spec.whole', null],
    ['date', '.spec.nothing', null],
  ]
  for (const [type, path, expected] of table) assert.equal(cell(type, path), expected, `${type} ${path}`)
})

test('a CRD without columns shows the age', () => {
  for (const none of [undefined, []]) {
    assert.deepEqual(
      columnsOf(resource, none).map(({ name, type }) => [name, type]),
      [
        ['Name', 'string'],
        ['Age', 'date'],
      ],
    )
    assert.deepEqual(rowOf(resource, object, now, none).cells, ['x', '5m'])
  }
})

test('column definitions carry what the CRD says', () => {
  const custom: CustomColumn[] = [
    { name: 'A', type: 'integer', format: 'int64', description: 'why', priority: 1, jsonPath: '.spec.whole' },
    { name: 'B', type: 'string', jsonPath: '.spec.text' },
  ]
  const described = 'Custom resource definition column (in JSONPath format): .spec.text'
  assert.deepEqual(columnsOf(resource, custom).slice(1), [
    { name: 'A', type: 'integer', format: 'int64', description: 'why', priority: 1 },
    { name: 'B', type: 'string', format: '', description: described, priority: 0 },
  ])
})

test('a path that does not parse ends the columns before it', () => {
  const custom: CustomColumn[] = ['.spec.whole', '.spec[', '.spec.text'].map((jsonPath) => ({
    name: jsonPath,
    type: 'string',
    jsonPath,
  }))
  assert.equal(columnsOf(resource, custom).length, 2)
  assert.deepEqual(rowOf(resource, object, now, custom).cells, ['x', '42'])
})

test('[A8] a value nested deeper than a cell can show is an empty cell, whatever the path that finds it', () => {
  let deep: unknown = 'bottom'
  for (let level = 0; level < 9_000; level++) deep = { deeper: deep }
  const columns = [
    { name: 'Whole', type: 'string', jsonPath: '.spec' },
    { name: 'Somewhere', type: 'string', jsonPath: '..deeper' },
    { name: 'Other', type: 'string', jsonPath: '.other' },
  ]
  const { cells } = rowOf(resource, { metadata: { name: 'x' }, spec: deep, other: { a: [1] } } as never, 0, columns)
  assert.deepEqual(cells, ['x', null, null, '{"a":[1]}'])
})
