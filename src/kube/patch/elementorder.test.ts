import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type Json, toPlain } from '../json/json.ts'
import { identity, orderAfterMerge } from './elementorder.ts'

const items = (names: readonly string[]) => fromPlain(names.map((name) => ({ name }))) as Json[]
const namesOf = (list: Json[]) => (toPlain(list) as { name: string }[]).map(({ name }) => name)

/** As kube-apiserver does it: item by item, moving up what is behind. */
function oneByOne(before: readonly string[], deleted: readonly string[], added: readonly string[]): string[] {
  const slots = [...before]
  let used = slots.length
  for (const name of deleted) {
    for (let at = slots.indexOf(name); at >= 0 && at < used; at = slots.indexOf(name, at)) {
      slots.copyWithin(at, at + 1, used--)
    }
  }
  const known = new Set(slots.slice(0, used))
  for (const name of added) {
    if (known.has(name)) continue
    known.add(name)
    if (used < slots.length) slots[used++] = name
  }
  return slots
}

test('what a merge leaves in which slot is what taking items out one by one leaves', () => {
  let seed = 11
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return (seed >> 8) % below
  }
  for (let round = 0; round < 2000; round++) {
    const some = (most: number) => Array.from({ length: random(most) }, () => 'abcdefghij'[random(10)]!)
    const [before, deleted, added] = [some(9), [...new Set(some(6))], [...new Set(some(6))]] as const
    const ids = deleted.map((name) => identity(name))
    const found = namesOf(orderAfterMerge(items(before), ids, items(added), 'name'))
    assert.deepEqual(found, oneByOne(before, deleted, added), JSON.stringify({ before, deleted, added }))
  }
})

test('[A8] taking out half of a list does not move the rest of it once for each item', () => {
  const { copyWithin } = Array.prototype
  const moved = (count: number) => {
    const names = Array.from({ length: count }, (_, at) => `n${at}`)
    const gone = names.filter((_, at) => at % 2 === 0).map((name) => identity(name))
    let sum = count
    Array.prototype.copyWithin = function (this: Json[], ...given: [number, number, number]) {
      sum += given[2] - given[1]
      return copyWithin.apply(this, given)
    } as typeof copyWithin
    try {
      orderAfterMerge(items(names), gone, [], 'name')
    } finally {
      Array.prototype.copyWithin = copyWithin
    }
    return sum
  }
  assert.ok(moved(2000) <= 5 * moved(500))
})
