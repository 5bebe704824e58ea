import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromPlain, type Json, type JsonObject, toPlain } from '../json/json.ts'
import { applyJsonPatch } from './jsonpatch.ts'

type Operation = { op: string; path: string; from?: string; value?: unknown }

function patched(list: unknown[], operations: Operation[]): unknown {
  const target = fromPlain({ list, other: {} }) as JsonObject
  return toPlain(applyJsonPatch(target, fromPlain(operations)))
}

/** How many items were moved to make or close a gap. */
function itemsMoved(work: () => void): number {
  const { splice } = Array.prototype
  let moved = 0
  Array.prototype.splice = function (this: Json[], ...given: [number, number, ...Json[]]) {
    moved += this.length - given[0]
    return splice.apply(this, given)
  } as typeof splice
  try {
    work()
  } finally {
    Array.prototype.splice = splice
  }
  return moved
}

test('[A8] items that come and go at the head of a list do not move all of the list, however long it is', () => {
  const operations = Array.from({ length: 200 }, (_, at) => ({
    op: at % 3 < 2 ? 'add' : 'remove',
    path: '/list/0',
    value: at,
  }))
  const moved = (items: number) => itemsMoved(() => patched(new Array(items).fill(0), operations as Operation[]))
  assert.ok(moved(80_000) < 2 * moved(20_000))
})

test('a long list is patched as a short one is', () => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed % below
  }
  const model: unknown[] = Array.from({ length: 5000 }, (_, at) => at)
  const operations: Operation[] = []
  for (let step = 0; step < 3000; step++) {
    const at = random(model.length)
    const value = `v${step}`
    switch (random(8)) {
      case 0:
        operations.push({ op: 'remove', path: `/list/${at}` })
        model.splice(at, 1)
        break
      case 1:
        operations.push({ op: 'replace', path: `/list/${at}`, value })
        model[at] = value
        break
      case 2:
        operations.push({ op: 'test', path: `/list/${at}`, value: model[at] })
        break
      case 3:
        operations.push({ op: 'add', path: '/list/-', value })
        model.push(value)
        break
      case 4: {
        const [item] = model.splice(at, 1)
        operations.push({ op: 'move', from: `/list/${at}`, path: '/list/0' })
        model.unshift(item)
        break
      }
      default: {
        const near = random(40)
        operations.push({ op: 'add', path: `/list/${near}`, value })
        model.splice(near, 0, value)
      }
    }
    if (step === 1500) operations.push({ op: 'copy', from: '/list', path: '/other/copy' })
  }
  const start = Array.from({ length: 5000 }, (_, at) => at)
  const result = patched(start, [...operations, { op: 'test', path: '/list', value: model }]) as { list: unknown[] }
  assert.deepEqual(result.list, model)
})

test('a long list that has lost all its items takes new ones', () => {
  const removals = Array.from({ length: 4100 }, () => ({ op: 'remove', path: '/list/0' }))
  const result = patched(new Array(4100).fill(0), [...removals, { op: 'add', path: '/list/-', value: 1 }])
  assert.deepEqual((result as { list: unknown[] }).list, [1])
})
