/** The slow loop over a link: whatever an edge's copy silently has otherwise than its hub is found by digests and healed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../base/log.ts'
import { Client, stepping } from '../../mirror/client.test-support.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import { openMemory } from '../../store/memory.ts'
import type { Change } from '../../store/store.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'

const interest = 'v1/pods'

/** An edge that is in step with its hub, and a client that watches it. */
async function open() {
  const linked = new LinkedWorld()
  for (let i = 0; i < 5; i++) linked.put(`a/k${i}`, `${i}`)
  await settle(20)
  const lines: string[] = []
  const log = createLog({ level: 'warn', write: (line) => void lines.push(line) })
  const { server, follow } = linked
  const store = openMemory({ historyBytesMax: 1 << 30 })
  const world = await MirrorWorld.open({ server, follow, log, store, compares: true })
  world.begin({}, { standing: true })
  const client = new Client(world, {})
  await stepping(world, [client], () => client.idle && client.isRight())
  return { linked, world, client, lines, [Symbol.asyncDispose]: () => world.stop() }
}

/** What happens at the API server and the hub, and what the copy of an edge that never hears of it has wrong. */
const silences: Record<string, (linked: LinkedWorld) => void> = {
  'an object lacking': (linked) => linked.keepFromEdge('a/k9', linked.server.put('pods', 'a/k9')),
  'one too many': (linked) => linked.keepFromEdge('a/k1', linked.server.remove('pods', 'a/k1')),
  'an older version': (linked) => linked.keepFromEdge('a/k1', linked.server.put('pods', 'a/k1', { value: 'missed' })),
  'another uid': (linked) => {
    linked.keepFromEdge('a/k1', linked.server.remove('pods', 'a/k1'))
    linked.keepFromEdge('a/k1', linked.server.put('pods', 'a/k1'))
  },
}

for (const [name, act] of Object.entries(silences)) {
  test(`[L6] over a link a copy with ${name} is found by digests, said, healed and counted once, and no client lists again`, async () => {
    await using it = await open()
    const { linked, world, client, lines } = it
    act(linked)
    // What is told goes past what was not: nothing but a comparison can tell.
    linked.put('a/k0', 'told')
    await stepping(world, [client], () => client.objects.get('a/k0') === linked.server.get('pods', 'a/k0')?.text)
    assert.equal(client.isRight(), false)
    assert.equal(world.comparison.found, 0)
    const links = linked.lines.length
    // What is not above what the copy has seen cannot be told: in a cluster something always happens.
    const goesOn = () => {
      if (world.comparison.found > 0 && linked.server.version < 20) linked.put('a/k0', 'later')
      return client.isRight()
    }
    await stepping(world, [client], goesOn, 1_200)
    assert.equal(world.comparison.found, 1)
    assert.equal(lines.filter((line) => line.includes('mirror.differs')).length, 1, lines.join(''))
    assert.deepEqual([client.lists, client.expired], [1, []])
    // It was found and healed over the link, and nothing was asked of the API server.
    assert.equal(linked.lines.length, links)
    assert.deepEqual([linked.server.count('identities'), linked.server.count('list')], [0, 0])
    // Healed is healed: later rounds find nothing.
    await world.pass(600_000, 400)
    assert.equal(world.comparison.found, 1)
  })
}

/** What may have become of a store whose edge does not run, with what it was as text. */
const damages: Record<string, (was: string) => Omit<Change, 'interest' | 'position'>> = {
  'an object lacking': () => ({ kind: 'delete', key: 'a/k1', version: 6 }),
  'one too many': (was) => ({ kind: 'seed', key: 'a/k9', version: 3, body: Buffer.from(was.replaceAll('k1', 'k9')) }),
  'an older version': (was) => ({
    ...{ kind: 'seed', key: 'a/k1', version: 2 },
    body: Buffer.from(was.replace('"resourceVersion":"3"', '"resourceVersion":"2"')),
  }),
  'another uid': (was) => ({
    kind: 'seed',
    key: 'a/k1',
    version: 3,
    body: Buffer.from(was.replace('"uid":"', '"uid":"other')),
  }),
  'other bytes': (was) => ({ kind: 'seed', key: 'a/k1', version: 3, body: Buffer.from(was.replace('"1"', '"x"')) }),
}

for (const [name, damage] of Object.entries(damages)) {
  test(`[L6] a store with ${name} is found by the root at the end of the first catch-up, and healed over the link`, async () => {
    await using it = await open()
    const { linked, world } = it
    const { server } = linked
    world.crash()
    const was = server.get('pods', 'a/k1')?.text as string
    const change = { interest, position: 1_000, ...damage(was) }
    assert.notEqual(change.body?.toString(), was, was)
    await world.store.commit({ changes: [change], synced: true })
    await world.start()
    const held = () => [...(world.copy.caches.get(interest)?.cloud.all() ?? [])].map(({ bytes }) => bytes.toString())
    const isRight = () => held().sort().join() === [...server.listed('pods').values()].sort().join()
    assert.equal(isRight(), false)
    linked.put('a/k0', 'later')
    await world.until(isRight)
    assert.deepEqual([server.count('identities'), server.count('list')], [0, 0])
  })
}
