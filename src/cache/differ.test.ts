import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differ } from './differ.ts'
import { plan } from './fixture.test-support.ts'
import { type Item, makeItem } from './item.ts'

function item(key: string, uid: string, version: number): Item {
  const [namespace, name] = key.split('/')
  const metadata = { name, namespace, uid, resourceVersion: String(version) }
  return makeItem(Buffer.from(JSON.stringify({ metadata })), version, plan)
}

function holding(version: number, items: readonly Item[], corrupt: readonly string[] = []) {
  const byKey = new Map(items.map((one) => [one.key, one]))
  return {
    version,
    corrupt,
    all: () => [...byKey.values()],
    isCorrupt: (key: string) => corrupt.includes(key),
    peek: (key: string) => byKey.get(key),
  }
}

function told({ changed, gone, repaired }: ReturnType<typeof differ>) {
  return { changed: changed.map(({ key }) => key), gone, repaired: repaired.map(({ key }) => key) }
}

const found = (...items: readonly Item[]) => new Map(items.map((one) => [one.key, one]))

test('[A3] what is new, newer, older or absent differs; what was made again is gone and changed', () => {
  const held = holding(9, [
    item('a/same', 'u', 3),
    item('a/newer', 'u', 3),
    item('a/older', 'u', 8),
    item('a/gone', 'u', 3),
    item('a/again', 'u', 3),
  ])
  const now = found(
    item('a/same', 'u', 3),
    item('a/newer', 'u', 11),
    item('a/older', 'u', 2),
    item('a/again', 'v', 12),
    item('a/new', 'u', 10),
  )
  assert.deepEqual(told(differ(held, now, true)), {
    changed: ['a/newer', 'a/older', 'a/again', 'a/new'],
    gone: ['a/gone', 'a/again'],
    repaired: [],
  })
})

test('[A3] an object of the same key and version is another one if its uid is', () => {
  const held = holding(9, [item('a/x', 'u', 3)])
  assert.deepEqual(told(differ(held, found(item('a/x', 'v', 3)), true)), {
    changed: ['a/x'],
    gone: ['a/x'],
    repaired: [],
  })
})

test('[A3] what its reader has compared already is neither changed nor gone', () => {
  const held = holding(9, [item('a/x', 'u', 3)])
  assert.deepEqual(told(differ(held, new Map([['a/x', 'same']]), true)), { changed: [], gone: [], repaired: [] })
})

test('[D4] what is damaged is repaired unless it has changed meanwhile, and where nobody knows what watches heard it changes', () => {
  const held = holding(9, [], ['a/x', 'a/y', 'a/z'])
  const now = found(item('a/x', 'u', 3), item('a/y', 'u', 12))
  assert.deepEqual(told(differ(held, now, true)), { changed: ['a/y'], gone: ['a/z'], repaired: ['a/x'] })
  assert.deepEqual(told(differ(held, now, false)), { changed: ['a/x', 'a/y'], gone: ['a/z'], repaired: [] })
})
