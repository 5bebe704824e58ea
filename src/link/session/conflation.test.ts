import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ConflatedQueue } from './conflation.ts'
import type { LinkObject } from './session.ts'

const seed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 2 ** 31))
/** A write, a deletion or another object of a key; how much the edge takes after it; whether bases are forgotten. */
const step = fc.record({ key: fc.nat(3), what: fc.nat(3), taken: fc.nat(2), forgets: fc.nat(9) })

test('[L1] whatever is conflated, the edge ends with what the hub has, in the order of versions, and hears of each deletion', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const tally = { bytes: 0 }
      const queue = new ConflatedQueue(tally)
      const [hub, edge] = [new Map<string, LinkObject>(), new Map<string, LinkObject>()]
      let [version, told] = [0, 0]
      const add = (key: string, item: LinkObject | undefined) => {
        const previous = hub.get(key)
        if (item === undefined && previous === undefined) return
        if (item === undefined) hub.delete(key)
        else hub.set(key, item)
        queue.add({ key, version, item, previous }, true)
      }
      const take = () => {
        const change = queue.take()
        if (change === undefined) return
        const had = edge.get(change.key)
        assert.ok(change.version >= told, 'versions go back')
        told = change.version
        if (change.item === undefined) {
          assert.ok(had !== undefined, 'a removal of what the edge never had')
          edge.delete(change.key)
          return
        }
        assert.ok(had === undefined || had.uid === change.item.uid, 'another object without a removal')
        assert.ok(change.held === undefined || change.held === had, 'a base that the edge does not hold')
        edge.set(change.key, change.item)
      }
      for (const { key, what, taken, forgets } of steps) {
        const name = `a/k${key}`
        version += 2
        if (what === 2) add(name, undefined)
        else {
          if (what === 3) add(name, undefined)
          version++
          const uid = hub.get(name)?.uid ?? `u${version}`
          add(name, { key: name, uid, version, bytes: Buffer.from(`${version}`) })
        }
        for (let at = 0; at < taken; at++) take()
        if (forgets === 0) queue.forgetBases()
        assert.ok(queue.size <= 8 && queue.bytes === tally.bytes)
      }
      while (queue.size > 0) take()
      assert.deepEqual([...edge].sort(), [...hub].sort())
      assert.equal(tally.bytes, 0)
    }),
    { seed, numRuns: 2_000 },
  )
})

test('[L1] no mark stands at a version whose state was left out, also of what came and went', () => {
  const queue = new ConflatedQueue({ bytes: 0 })
  const item = (key: string, version: number): LinkObject => ({ key, uid: key, version, bytes: Buffer.from('x') })
  const put = (key: string, version: number, before?: number) =>
    queue.add(
      { key, version, item: item(key, version), previous: before === undefined ? undefined : item(key, before) },
      true,
    )
  put('a', 5, 1)
  put('b', 6)
  put('a', 9, 5)
  assert.equal(queue.markUpTo(20), 4)
  assert.deepEqual([queue.take()?.key, queue.markUpTo(20)], ['b', 4])
  assert.deepEqual([queue.take()?.key, queue.markUpTo(20)], ['a', 20])
  put('c', 22)
  queue.add({ key: 'c', version: 30, item: undefined, previous: item('c', 22) }, true)
  assert.deepEqual([queue.size, queue.isHiding], [0, true])
  assert.deepEqual(
    [21, 22, 29, 30].map((version) => queue.markUpTo(version)),
    [21, 21, 21, 30],
  )
  queue.reached(30)
  assert.equal(queue.isHiding, false)
})
