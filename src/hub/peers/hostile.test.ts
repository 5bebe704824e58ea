/** Edges that send anything: a link is closed with a reason, and neither the hub nor another edge notices. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstSeed, lives } from '../../base/lives.test-support.ts'
import { encodeFrame } from '../../link/frames/frames.ts'
import { HubWorld } from './hub.test-support.ts'

const subscribed = { version: 0, wish: 'resume', partial: 0, after: '' } as const
const numbers = fc.nat(12)
const names = fc.constantFrom('v1/pods', 'v1/pods@a', 'v1/pods?&spec.nodeName=n1', 'v1/none', 'x', 'v1/secrets@a', '')
const anything = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes))
const subscribe = fc.tuple(numbers, names, fc.nat(100)).map(([interest, name, version]) => {
  return encodeFrame({ kind: 'subscribe', interests: [{ ...subscribed, interest, name, version }], epoch: 1 })
})
const unsubscribe = numbers.map((number) => encodeFrame({ kind: 'unsubscribe', interests: [number] }))
const acknowledge = fc.tuple(numbers, fc.nat(1_000)).map(([position, bulk]) => {
  return encodeFrame({ kind: 'acknowledge', position, bulk })
})
const compare = fc.tuple(numbers, fc.nat(50), anything).map(([interest, version, request]) => {
  return encodeFrame({ kind: 'compare', interest, version, request })
})
const tunnelled = fc.tuple(fc.integer({ min: 0x80, max: 0xbf }), anything).map(([type, payload]) => {
  return encodeFrame({ kind: 'tunnel', type, payload })
})
const hello = fc.constant(
  encodeFrame({
    ...{ kind: 'hello', oldest: 1, newest: 1, edge: 'n1', release: '', cluster: '', epoch: 0, window: 2 ** 18 },
    counts: 1,
  }),
)
const frames = fc.array(fc.oneof(anything, subscribe, subscribe, unsubscribe, acknowledge, compare, tunnelled, hello))

test('[L8] whatever edges send closes their links at most, and leaves nothing behind', async () => {
  await using world = await HubWorld.open()
  const { server } = world.mirror
  server.put('pods', 'a/p', { node: 'n1', value: 'old' })
  const other = world.edge('n2', 'v1/pods')
  other.connect()
  await world.until(() => other.copy().version > 0)
  let round = 0
  const send = async (sent: readonly Buffer[]) => {
    const edge = world.edge('n1')
    const line = edge.connect()
    edge.session = undefined
    for (const bytes of sent) {
      if (!line.isOver) line.handlers?.frame(bytes)
      await world.pass(20)
    }
    server.put('pods', 'a/p', { node: 'n1', value: `${++round}` })
    await world.pass(60)
    assert.equal(other.copy().value('a/p'), `${round}`)
    assert.equal(other.line?.closed, undefined)
    if (!line.isOver) line.lose()
    assert.equal(world.peers.size, 1)
  }
  await fc.assert(fc.asyncProperty(frames, send), { seed: firstSeed, numRuns: lives(300) })
  assert.ok(!world.lines.some((line) => line.includes('edge.broke')))
  const readers = world.sources.figures().reduce((sum, figures) => sum + figures.readers, 0)
  assert.equal(readers, 1)
})
