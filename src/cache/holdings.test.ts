import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeded } from '../base/seeded.test-support.ts'
import { bytesOf, plan } from './fixture.test-support.ts'
import { holdingsOf } from './holdings.ts'
import { type Item, makeItem, type Sharing } from './item.ts'

function itemOf(at: number, length: number, isShared = true): Item {
  const item = makeItem(bytesOf(`a/k${at}`, at + 1, { value: 'v'.repeat(length) }), at + 1, plan)
  if (isShared) item.shared = { name: 0, readBy: () => item, letGo: () => {} } satisfies Sharing
  return item
}

const holderOf = (interest: string, items: readonly Item[]) => ({
  interest,
  held: (tell: (item: Item) => void) => items.forEach(tell),
})

const bytesIn = (items: Iterable<Item>) => [...new Set(items)].reduce((sum, { bytes }) => sum + bytes.length, 0)

test('what the same interests hold is one part of each, counted once however often one of them has it', () => {
  const [a, b, c] = [itemOf(1, 10), itemOf(2, 20), itemOf(3, 30)]
  const unshared = itemOf(4, 1_000, false)
  const holdings = holdingsOf([
    holderOf('one', [a, b, c, a]),
    holderOf('two', [a, b, unshared]),
    holderOf('three', [a, b]),
    holderOf('none', []),
  ])
  const shared = { bytes: bytesIn([a, b]), holders: 3 }
  assert.deepEqual(holdings.get('one'), { alone: bytesIn([c]), shared: [shared] })
  assert.deepEqual(holdings.get('two'), { alone: 0, shared: [shared] })
  assert.equal(holdings.get('two')?.shared[0], holdings.get('three')?.shared[0], 'one part')
  assert.deepEqual(holdings.get('none'), { alone: 0, shared: [] })
})

test('whatever is held, an interest alone has what no other holds, and all parts together are everything', () => {
  const firstSeed = Number(process.env.AKE_SEED ?? Date.now() % 1_000_000)
  for (let seed = firstSeed; seed < firstSeed + 100; seed++) {
    const random = seeded(seed)
    const items = Array.from({ length: 30 }, (_, at) => itemOf(at, random(500)))
    const held = Array.from({ length: 1 + random(8) }, () => items.filter(() => random(3) > 0))
    const holdings = [...holdingsOf(held.map((some, at) => holderOf(`i${at}`, some))).values()]
    for (const [at, some] of held.entries()) {
      const others = new Set(held.filter((_, other) => other !== at).flat())
      const { alone, shared } = holdings[at] as (typeof holdings)[number]
      const says = `AKE_SEED=${seed}: interest ${at}`
      assert.equal(alone, bytesIn(some.filter((item) => !others.has(item))), says)
      assert.equal(alone + shared.reduce((sum, { bytes }) => sum + bytes, 0), bytesIn(some), says)
    }
    const parts = new Set(holdings.flatMap(({ shared }) => shared))
    const all = [...parts].reduce((sum, { bytes }) => sum + bytes, 0)
    assert.equal(all + holdings.reduce((sum, { alone }) => sum + alone, 0), bytesIn(held.flat()), `AKE_SEED=${seed}`)
    for (const part of parts) {
      assert.equal(holdings.filter(({ shared }) => shared.includes(part)).length, part.holders, `AKE_SEED=${seed}`)
    }
  }
})
