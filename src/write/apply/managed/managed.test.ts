import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, printJson } from '../../../kube/json/json.ts'
import { capped } from './cap.ts'
import { isCleared, ManagedFault, managedText, ownerKey, parseManaged, printManaged, sameOwners } from './managed.ts'

type Entry = Record<string, unknown>

const entry = (over: Entry = {}): Entry => ({
  manager: 'm',
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-01-02T03:04:05Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:data': { 'f:a': {} } },
  ...over,
})

function again(entries: readonly Entry[], custom = false): unknown {
  const printed = printManaged(parseManaged(fromPlain(entries)), custom)
  return printed === undefined ? undefined : JSON.parse(printJson(printed))
}

function printed(entries: readonly Entry[], custom = false): string {
  return printJson(printManaged(parseManaged(fromPlain(entries)), custom) ?? null)
}

test('entries are printed in Go’s order, those of custom resources with all keys sorted', () => {
  const keyed = { 'f:p': { 'k:{"port":443}': { '.': {}, 'f:port': {} }, 'k:{"port":80}': { '.': {} } } }
  const given = entry({ subresource: 'status', fieldsV1: keyed })
  assert.equal(
    printed([given]),
    '[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:p":{"k:{\\"port\\":80}":{},"k:{\\"port\\":443}":{".":{},"f:port":{}}}},"subresource":"status"}]',
  )
  assert.equal(
    printed([given], true),
    '[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:p":{"k:{\\"port\\":443}":{".":{},"f:port":{}},"k:{\\"port\\":80}":{}}},"manager":"m","operation":"Update","subresource":"status","time":"2026-01-02T03:04:05Z"}]',
  )
})

test('appliers come first, then the older, then by name, version and subresource', () => {
  const later = '2026-01-02T03:04:06Z'
  const given = [
    entry({ manager: 'b', subresource: 'status' }),
    entry({ manager: 'b' }),
    entry({ manager: 'a', time: later }),
    entry({ manager: 'z', operation: 'Apply', time: later }),
    entry({ manager: 'b', apiVersion: 'apps/v1' }),
    entry({ manager: 'y', time: undefined }),
  ]
  assert.deepEqual(
    (again(given) as Entry[]).map(({ manager, apiVersion, subresource }) => [manager, apiVersion, subresource ?? '']),
    [
      ['z', 'v1', ''],
      ['y', 'v1', ''],
      ['b', 'apps/v1', ''],
      ['b', 'v1', ''],
      ['b', 'v1', 'status'],
      ['a', 'v1', ''],
    ],
  )
})

test('an applier is one owner in all versions, an updater one in each', () => {
  const [first] = again([entry({ operation: 'Apply' }), entry({ operation: 'Apply', apiVersion: 'v2' })]) as Entry[]
  assert.equal(first?.apiVersion, 'v2')
  assert.equal((again([entry(), entry({ apiVersion: 'v2' })]) as Entry[]).length, 2)
  const name = { manager: 'm', operation: 'Update', apiVersion: 'v1', subresource: '' } as const
  assert.equal(ownerKey(name), '{"manager":"m","operation":"Update","apiVersion":"v1"}')
  assert.equal(ownerKey({ ...name, operation: 'Apply' }), '{"manager":"m","operation":"Apply"}')
})

test('times are told in whole seconds of UTC', () => {
  const [one] = again([entry({ time: '2026-01-02T04:04:05.9+01:00' })]) as Entry[]
  assert.equal(one?.time, '2026-01-02T03:04:05Z')
})

test('entries that name no owner are no entries', () => {
  const wrong: Entry[] = [
    { operation: 'Patch' },
    { apiVersion: '' },
    { fieldsType: undefined },
    { fieldsType: 'FieldsV2' },
    { fieldsV1: 'x' },
    { fieldsV1: { f: {} } },
  ]
  for (const over of wrong) assert.throws(() => parseManaged(fromPlain([entry(over)])), ManagedFault)
  assert.equal(again([]), undefined)
})

test('one empty entry, or an empty list, asks for a fresh start', () => {
  for (const cleared of [[], [{}], [{ manager: '', time: null }], [null]]) assert.ok(isCleared(fromPlain(cleared)))
  for (const kept of [[{ fieldsV1: {} }], [{}, {}], [entry()], null, 'x']) assert.ok(!isCleared(fromPlain(kept)))
})

test('entries that differ in times alone say the same', () => {
  const same = (a: Entry[], b: Entry[]) => sameOwners(fromPlain(a), fromPlain(b))
  assert.ok(same([entry()], [entry({ time: undefined })]))
  assert.ok(!same([entry()], [entry({ fieldsV1: {} })]))
  assert.ok(!same([entry()], []))
})

test('more than ten updaters share one entry: the oldest', () => {
  const at = (second: number) => `2026-01-02T03:04:${String(second).padStart(2, '0')}Z`
  const many = Array.from({ length: 12 }, (_, i) =>
    entry({ manager: `m${i}`, time: at(30 - i), fieldsV1: { 'f:data': { [`f:${i}`]: {} } } }),
  )
  const applier = entry({ manager: 'a', operation: 'Apply' })
  const owners = printManaged(capped(parseManaged(fromPlain([applier, ...many]))), false) ?? []
  assert.equal(owners.length, 11)
  assert.equal(
    printJson(owners[1] ?? null),
    `{"manager":"ancient-changes","operation":"Update","apiVersion":"v1","time":"${at(21)}","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:10":{},"f:11":{},"f:9":{}}}}`,
  )
  assert.equal(capped(parseManaged(fromPlain(many.slice(2)))).owners.size, 10)
})

test('only updaters of one version share an entry', () => {
  const many = Array.from({ length: 11 }, (_, i) => entry({ manager: `m${i}`, apiVersion: i % 2 === 0 ? 'v1' : 'v2' }))
  const names = [...capped(parseManaged(fromPlain(many))).owners.keys()].filter((key) => key.includes('ancient'))
  assert.deepEqual(names, ['{"manager":"ancient-changes","operation":"Update","apiVersion":"v1"}'])
})

test('what was printed is read again as it says, whatever was known when it was made', () => {
  const { owners } = parseManaged(fromPlain([entry({ apiVersion: 'apps/v1', subresource: 'scale' })]))
  const [owned] = owners.values()
  const renamed = ownerKey({ manager: 'm', operation: 'Update', apiVersion: 'autoscaling/v1', subresource: 'scale' })
  const through = printManaged({ owners: new Map([[renamed, owned!]]), times: new Map() }, false)
  assert.deepEqual([...parseManaged(through).owners.keys()], [...owners.keys()])
  const gone = printManaged({ owners, times: new Map([['gone', '2020-01-01T00:00:00Z']]) }, false)
  assert.deepEqual([...parseManaged(gone).times], [])
})

test('the text of entries is their JSON', () => {
  const entries = printManaged(parseManaged(fromPlain([entry(), entry({ operation: 'Apply' })])), false) ?? []
  assert.equal(managedText(entries), printJson(entries))
  assert.equal(managedText(entries), managedText(entries))
})
