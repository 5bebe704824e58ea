import assert from 'node:assert/strict'
import { test } from 'node:test'
import { field, fromPlain, type Json, type JsonObject, printJson } from '../../../kube/json/json.ts'
import { KnownOwners } from './known.ts'
import { isOwn, parseManaged, printManaged } from './managed.ts'

function entriesOf(manager: string): Json[] {
  const fieldsV1 = { 'f:data': { 'k:{"a":"b"}': {} } }
  const entry = { manager, operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1 }
  return printManaged(parseManaged(fromPlain([entry])), false) ?? []
}

function stored(managedFields: Json[], note: string): Buffer {
  const metadata: JsonObject = new Map<string, Json>([
    ['annotations', new Map([['note', note]])],
    ['managedFields', managedFields],
  ])
  return Buffer.from(
    printJson(
      new Map<string, Json>([
        ['metadata', metadata],
        ['data', new Map([['x', '1']])],
      ]),
    ),
  )
}

test('what is known of an object is not read again, everything else is', () => {
  const known = new KnownOwners()
  const entries = entriesOf('m')
  // The same text inside of a string is another one: there its quotes are escaped.
  const bytes = stored(entries, printJson(entries))
  known.remember('o', 5, entries)
  const tree = known.read('o', 5, bytes)
  assert.equal(field(tree, 'metadata', 'managedFields'), entries)
  assert.equal(printJson(tree), bytes.toString())
})

test('of another version, another object or other bytes nothing is known', () => {
  const known = new KnownOwners()
  known.remember('o', 5, entriesOf('m'))
  for (const [object, version, manager] of [
    ['o', 6, 'm'],
    ['p', 5, 'm'],
    ['o', 5, 'n'],
  ] as const) {
    const bytes = stored(entriesOf(manager), '')
    const tree = known.read(object, version, bytes)
    assert.equal(isOwn(field(tree, 'metadata', 'managedFields')), false)
    assert.equal(printJson(tree), bytes.toString())
  }
})

test('only the last objects are remembered, and only lists made here', () => {
  const known = new KnownOwners()
  const entries = entriesOf('m')
  const bytes = stored(entries, '')
  const isKnown = (object: string) => isOwn(field(known.read(object, 1, bytes), 'metadata', 'managedFields'))
  for (let n = 0; n < 70; n++) known.remember(`o${n}`, 1, entries)
  assert.deepEqual(['o0', 'o5', 'o6', 'o69'].map(isKnown), [false, false, true, true])
  known.remember('o69', 1, [...entries])
  assert.equal(isKnown('o69'), false)
})
