/** How far edges have come, as the status of their hub tells it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfirmedVersion, unliveOf } from '../../link/session/hubconfirmed.ts'
import { HubWorld } from './hub.test-support.ts'

test('an edge has come as far as it acknowledged, and interests that are not live are told by what they wait for', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p', { value: 'old' })
  server.put('services', 'a/s')
  const edge = world.edge('n1', 'v1/pods', 'v1/services')
  const told = () => {
    const { version, unlive, interests } = world.peers.figures()[0] ?? assert.fail('it has no link')
    return { version, interests, ...unlive }
  }
  const line = edge.connect()
  await world.until(() => edge.copies.every(({ version }) => version > 0))
  const live = { interests: 2, waiting: 0, comparing: 0, syncing: 0 }
  assert.deepEqual({ ...told(), version: 0 }, { ...live, version: 0 })
  const changed = server.put('pods', 'a/p', { value: 'new' })
  await world.until(() => edge.copy().value('a/p') === 'new')
  await world.settle()
  assert.deepEqual(told(), { ...live, version: changed })
  line.isHeldUp = true
  server.put('pods', 'a/p', { value: 'newer' })
  await world.pass(100)
  assert.deepEqual(told(), { ...live, version: changed }, 'it has confirmed nothing of that')
  line.release()
  await world.until(() => edge.copy().value('a/p') === 'newer')
  await world.settle()
  assert.deepEqual(told(), { ...live, version: server.version })
  // One that is ahead waits, one whose version is too old compares.
  line.isHeldUp = true
  edge.resubscribe(Object.assign(edge.copy('v1/services'), { version: server.version + 100 }))
  edge.resubscribe(Object.assign(edge.copy(), { wish: 'compare' }))
  await world.pass(100)
  assert.deepEqual({ ...told(), version: 0 }, { ...live, waiting: 1, comparing: 1, version: 0 })
})

test('interests that are not live wait for the hub, for the comparison of their edge, or to be sent', () => {
  const phases = ['asked', 'waiting', 'invited', 'walking', 'walked', 'snapshot', 'live', 'live'] as const
  const counts = unliveOf(phases.map((phase) => ({ phase })))
  assert.deepEqual(counts, { waiting: 2, comparing: 3, syncing: 1 })
})

test('of frames on their way the last one that was acknowledged counts', () => {
  const confirmed = new ConfirmedVersion()
  for (const [version, position] of [
    [5, 1],
    [9, 4],
    [7, 6],
    [12, 7],
  ] as const) {
    confirmed.told(version)
    confirmed.sent(position)
  }
  const after = (position: number, isAll = false) => {
    confirmed.acknowledged(position, isAll)
    return confirmed.version
  }
  assert.deepEqual([after(0), after(1), after(3), after(6), after(6)], [0, 5, 5, 9, 9])
  confirmed.told(20)
  assert.deepEqual([after(7), after(7, true)], [12, 20])
  confirmed.forget()
  assert.equal(confirmed.version, 0)
})
