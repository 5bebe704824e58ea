/** Nodes that are deleted, as a hub hears of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import type { InterestView, LinkObject } from '../../link/session/session.ts'
import type { Interest } from '../../mirror/interest.ts'
import type { SourceReader } from '../sources/view.ts'
import { FleetNodes } from './fleetnodes.ts'

const node = (name: string, uid = `u-${name}`): LinkObject => {
  const bytes = Buffer.from(JSON.stringify({ metadata: { name, uid, creationTimestamp: '2026-01-01T00:00:00Z' } }))
  return { key: name, uid, version: 1, bytes }
}

test('one that goes, also one that another of its name replaces or that is missed, is told once; what cannot be read says nothing', async () => {
  const deleted: string[] = []
  let reader: SourceReader | undefined
  const open = (_: Interest, one: SourceReader) => {
    reader = one
    return undefined
  }
  const nodes = new FleetNodes({ sources: { open }, clock: fakeClock(), deleted: (name) => void deleted.push(name) })
  const ending = new AbortController()
  const running = nodes.run(ending.signal)
  const read = async (...objects: LinkObject[]) => {
    const get = (key: string) => objects.find((one) => one.key === key)
    reader?.opened({ behind: () => objects, get } as unknown as InterestView)
    // On a busy machine it is read in turns.
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  }
  const event = (key: string, item: LinkObject | undefined) =>
    reader?.event({ key, version: 2, item, previous: undefined })
  await read(node('a'), node('b'), node('c'), node('d'))
  assert.equal(nodes.get('a')?.madeAtMs, Date.UTC(2026, 0, 1))
  event('a', node('a'))
  event('e', node('e'))
  assert.deepEqual(deleted.splice(0), [])
  event('a', undefined)
  event('b', node('b', 'another'))
  assert.deepEqual(deleted.splice(0), ['a', 'b'])
  reader?.refused({ reason: 'busy', retryAfterMs: 0, sentence: '' })
  assert.deepEqual(deleted.splice(0), [])
  await read(node('b', 'another'), node('d', 'another'), node('e'))
  assert.deepEqual(deleted.splice(0), ['c', 'd'])
  await read(node('b', 'another'), node('d', 'another'), node('e'))
  assert.deepEqual(deleted, [])
  ending.abort()
  await running
})
