/** What a change upstream costs here, counted: its own bytes, however large the interest is that it belongs to. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openDurable } from '../store/durable.ts'
import { openMemory } from '../store/memory.ts'
import type { Batch, Store } from '../store/store.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { filterOf, MirrorWorld, settle } from './world.test-support.ts'

const objects = 5_000
const value = 'v'.repeat(2_000)

/** A store that notes what is written, and keeps writers waiting while it is held. */
class Noting {
  readonly batches: Batch[] = []
  standing: Promise<void> | undefined
  reads = 0
  readonly store: Store

  constructor(inner: Store) {
    this.store = {
      load: inner.load.bind(inner),
      release: (shared) => inner.release(shared),
      commit: async (batch) => {
        await this.standing
        this.batches.push(batch)
        await inner.commit(batch)
      },
      history: (interest, cursor, limit) => {
        this.reads++
        return inner.history(interest, cursor, limit)
      },
      floor: (interest) => inner.floor(interest),
      mendFrom: (held) => inner.mendFrom(held),
      records: (kind) => inner.records(kind),
      record: (kind, key) => inner.record(kind, key),
      figures: inner.figures,
      close: () => inner.close(),
    }
  }

  /** What was written since the last time it was asked: `put a/k1 2100` with the bytes of its body. */
  changes(): string[] {
    const changes = this.batches.splice(0).flatMap((batch) => batch.changes)
    return changes.map(({ kind, key, body }) => `${kind} ${key}${body === undefined ? '' : ` ${body.length}`}`)
  }
}

/** The model looks through its whole past for what an object was: new ones were nothing. */
function filled(): ApiServer {
  // Everything arrives in one piece: how streams are cut is not the question here.
  const server = new ApiServer({ random: (below) => below - 1 })
  server.get = () => undefined
  for (let at = 0; at < objects; at++) server.put('pods', `a/k${at}`, { value })
  server.get = ApiServer.prototype.get
  return server
}

async function opened(inner: Store = openMemory({ historyBytesMax: 1 << 30 })) {
  const noting = new Noting(inner)
  const server = filled()
  const world = await MirrorWorld.open({ server, store: noting.store })
  const client = new Client(world, {})
  await stepping(world, [client], () => client.idle)
  assert.equal(world.mirrored({})?.cache?.size, objects)
  noting.changes()
  return { noting, server, world, client }
}

const lengthOf = (server: ApiServer, key: string) => server.get('pods', key)?.text.length

test('one event in 5,000 objects writes one object; a list with one change writes one, without any none (superedge g1, openyurt 3.3)', async () => {
  const { noting, server, world: running, client } = await opened()
  await using world = running
  server.put('pods', 'a/k1', { value: 'new' })
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(noting.changes(), [`put a/k1 ${lengthOf(server, 'a/k1')}`])

  const relisted = async () => {
    server.reachability.set('unreachable')
    server.cutWatches()
    await settle()
    server.compact()
    const lists = server.count('list')
    server.reachability.set('reachable')
    await world.until(() => server.count('list') > lists && server.watches.size === 1)
    await stepping(world, [client], () => client.isRight())
  }
  server.put('nodes', 'n')
  await relisted()
  assert.deepEqual(noting.changes(), [], 'nothing has changed')

  server.reachability.set('unreachable')
  server.cutWatches()
  server.put('pods', 'a/k2', { value: 'new' })
  server.remove('pods', 'a/k3')
  const { version } = server
  await relisted()
  const expected = [`gap ${version}`, 'delete a/k3', `put a/k2 ${lengthOf(server, 'a/k2')}`]
  assert.deepEqual(noting.changes(), expected)
})

test('a burst shares commits, and none of it waits for the disk to sync (kubeedge 8.4, 8.5)', async () => {
  const { noting, server, world: running } = await opened()
  await using world = running
  server.get = () => undefined
  for (let at = 0; at < 1_000; at++) server.put('pods', `a/new${at}`)
  server.get = ApiServer.prototype.get
  await world.until(() => world.mirrored({})?.cache?.size === objects + 1_000)
  const written = noting.batches.filter((batch) => batch.changes.length > 0)
  assert.equal(written.flatMap((batch) => batch.changes).length, 1_000)
  assert.ok(written.length <= 10, `${written.length} commits`)
  assert.ok(noting.batches.every((batch) => !batch.synced))
})

test('a disk that does not answer keeps no read waiting (kubeedge 8.6, superedge g2)', async () => {
  const { noting, server, world: running, client } = await opened()
  await using world = running
  let release = () => {}
  noting.standing = new Promise((resolve) => {
    release = resolve
  })
  server.put('pods', 'a/k1', { value: 'new' })
  await world.pass(1_000)
  const place = world.place('list', {})
  assert.ok(place.kind === 'local')
  assert.equal(place.cache.list(filterOf({}, place.cache.plan)).length, objects)
  const other = new Client(world, {})
  await stepping(world, [client, other], () => other.idle)
  assert.equal(other.objects.size, objects)
  for (let step = 0; step < 4; step++) {
    client.step()
    await world.pass(250)
  }
  assert.equal(client.isRight(), false, 'what is not committed is not told')
  noting.standing = undefined
  release()
  await stepping(world, [client, other], () => client.isRight() && other.isRight())
})

test('an event that comes after a newer one of another resource is told all the same (kubeedge 1.3)', async () => {
  const server = new ApiServer()
  server.put('pods', 'a/k1')
  await using world = await MirrorWorld.open({ server })
  const clients = [new Client(world, {}), new Client(world, { resource: 'nodes' })] as const
  await stepping(world, clients, () => clients.every((one) => one.idle))
  const [pods, nodes] = clients
  for (const watch of [...server.watches]) if (watch.resource === 'pods') watch.body.end()
  server.fault = ({ resource }) => (resource === 'pods' ? { kind: 'refuse' } : undefined)
  server.put('pods', 'a/k2')
  server.put('nodes', 'n1')
  await stepping(world, [nodes], () => nodes.isRight() && nodes.objects.size === 1)
  assert.ok(nodes.version > server.version - 1 && !pods.isRight())
  server.fault = () => undefined
  await stepping(world, clients, () => pods.isRight())
  assert.deepEqual([pods.lists, pods.expired], [1, []])
})

test('on a real disk one event in 5,000 objects writes some pages, not the list (superedge g1)', async (context) => {
  const written = () => Number(/wchar: (\d+)/.exec(readFileSync('/proc/self/io', 'latin1'))?.[1])
  try {
    written()
  } catch {
    context.skip('only Linux counts what a process writes')
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'ake-work-'))
  const sqlite = openDurable({ folder, historyBytesMax: 1 << 30 })
  try {
    const noting = new Noting(sqlite)
    const server = filled()
    await using world = await MirrorWorld.open({ server, store: noting.store })
    world.begin({})
    const inStep = () => world.mirrored({})?.cache?.version === server.version
    while (!inStep() || server.watches.size === 0) {
      await pause(5)
      await world.pass(250)
    }
    // What belongs to the first sync is on the disk, and in its index, which follows before any question about the past.
    await sqlite.commit({ changes: [], synced: true })
    await sqlite.records('document')
    const before = written()
    server.put('pods', 'a/k1', { value })
    while (!inStep()) {
      await pause(5)
      await settle()
    }
    const bytes = written() - before
    assert.ok(bytes > value.length, `${bytes} bytes`)
    // A twentieth of the list is far more than it takes, and leaves room for what else this process writes.
    assert.ok(bytes < (objects * value.length) / 20, `${bytes} bytes for an object of ${value.length}`)
  } finally {
    await sqlite.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
