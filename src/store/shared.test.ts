/** Bytes that several interests hold: written once, handed over once, gone with the last of them. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { disk, found, small } from './damage.test-support.ts'
import { openDurable } from './durable.ts'
import { logFolder, segmentPath } from './segment.ts'
import type { Change, LoadedObject, SharedBody, Store } from './store.ts'
import { faultyDisk, filesIn, World } from './world.test-support.ts'

const interests = Array.from({ length: 20 }, (_, i) => `/pods?${i}`)
const bodyBytes = 2_000
const bodyOf = (key: string) => Buffer.alloc(bodyBytes, `${key};`)

const limits = { historyBytesMax: 1 << 20 }
/** Of the test that runs: closed with it, however it ends. */
const opened: Store[] = []

function open(folder: string): Store {
  const store = openDurable({ folder, ...limits })
  opened.push(store)
  return store
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-shared-'))
  try {
    await body(folder)
  } finally {
    for (const store of opened.splice(0)) await store.close()
    rmSync(folder, { recursive: true })
  }
}

type Shareable = Pick<Change, 'key' | 'version'> & { readonly body: Buffer; readonly shared: SharedBody }

const shareable = (key: string, version: number): Shareable => ({
  key,
  version,
  body: bodyOf(key),
  shared: { name: 0 },
})

const seed = (interest: string, of: Shareable): Change => ({ interest, kind: 'seed', position: 0, ...of })
const put = (interest: string, of: Shareable): Change => ({ interest, kind: 'put', position: of.version, ...of })

/** Written by as many interests, each in a batch of its own, all under way together. */
async function writeAll(store: Pick<Store, 'commit'>, objects: readonly Shareable[], change = seed): Promise<void> {
  await Promise.all(
    interests.map((interest) => store.commit({ changes: objects.map((one) => change(interest, one)), synced: false })),
  )
}

const logBytes = (folder: string) => filesIn(logFolder(folder)).reduce((sum, path) => sum + statSync(path).size, 0)

/** What the index counts, of a store that is closed. */
function counts(folder: string): { bodies: number; live: number; names: number } {
  const db = new DatabaseSync(join(folder, 'ake.db'))
  const one = (sql: string) => Object.values(db.prepare(sql).get() as object)[0] as number
  try {
    const live = one('SELECT coalesce(sum(live), 0) FROM segments')
    assert.equal(live, one('SELECT coalesce(sum(length), 0) FROM bodies'), 'a segment is counted wrongly')
    const keys = 'SELECT count(*) FROM keys k WHERE objects <> (SELECT count(*) FROM objects o WHERE o.key = k.id)'
    assert.equal(one(keys), 0, 'a key is counted wrongly')
    const holders = `SELECT count(*) FROM objects WHERE body = b.id`
    const replaced = `SELECT count(*) FROM history WHERE previous = b.id`
    assert.equal(one(`SELECT count(*) FROM bodies b WHERE holders <> (${holders}) + (${replaced})`), 0, 'wrong holders')
    return { bodies: one('SELECT count(*) FROM bodies'), live, names: one('SELECT count(name) FROM bodies') }
  } finally {
    db.close()
  }
}

test('[D5] twenty interests that bring the same bytes together, or later, write them once', () =>
  inFolder(async (folder) => {
    const store = open(folder)
    await store.load()
    const objects = ['a', 'b', 'c'].map((key, i) => shareable(key, i + 2))
    await writeAll(store, objects)
    assert.equal(store.figures.bytesWritten, 3 * bodyBytes)
    const late = [shareable('d', 5)]
    for (const interest of interests) {
      await store.commit({ changes: late.map((one) => put(interest, one)), synced: false })
    }
    assert.equal(store.figures.bytesWritten, 4 * bodyBytes)
    // Besides them each change takes its key and a few numbers.
    const changes = 4 * interests.length
    assert.ok(logBytes(folder) < 4 * bodyBytes + changes * 100, `the log has ${logBytes(folder)} bytes`)
    await store.close()
    assert.deepEqual(counts(folder), { bodies: 4, live: 4 * bodyBytes, names: 4 })
  }))

test('[D5] what another interest holds already takes a few bytes of the log, and is found when the index is made again', () =>
  inFolder(async (folder) => {
    let store = open(folder)
    await store.load()
    const objects = Array.from({ length: 200 }, (_, i) => shareable(`team-${i % 7}/web-${i}`, 1_000_000 + i))
    const [first = '', ...others] = interests
    await store.commit({ changes: objects.map((one) => seed(first, one)), synced: false })
    const before = logBytes(folder)
    await Promise.all(
      others.map((interest) => store.commit({ changes: objects.map((one) => seed(interest, one)), synced: true })),
    )
    const each = (logBytes(folder) - before) / objects.length / others.length
    assert.ok(each < 20, `${each} bytes for each`)
    await store.close()
    rmSync(join(folder, 'ake.db'))
    store = open(folder)
    const loaded = await store.load()
    assert.deepEqual(
      loaded.interests.map(({ objects: own, corrupt }) => [own.length, corrupt.length]),
      [...interests.map(() => [objects.length, 0])],
    )
    for (const { key, version, body } of loaded.interests.at(-1)?.objects ?? []) {
      assert.deepEqual([body, version], [bodyOf(key), objects.find((one) => one.key === key)?.version])
    }
  }))

test('[D5] after a restart each is handed over once, and shared by what comes then', () =>
  inFolder(async (folder) => {
    let store = open(folder)
    await store.load()
    await writeAll(store, [shareable('a', 2), shareable('b', 3)])
    await store.close()
    store = open(folder)
    const loaded = await store.load()
    const objects = loaded.interests.flatMap(({ objects: own }) => own)
    assert.equal(objects.length, 2 * interests.length)
    assert.equal(new Set(objects.map(({ body }) => body)).size, 2, 'distinct buffers')
    assert.equal(new Set(objects.map(({ shared }) => shared)).size, 2, 'what is shared has one name')
    assert.equal(new Set(objects).size, 2, 'told of once')
    for (const { key, body } of objects) assert.deepEqual(body, bodyOf(key))
    const changes = loaded.interests[0]?.objects.map((one) => seed('/pods?late', one as Shareable)) ?? []
    await store.commit({ changes, synced: true })
    assert.equal(store.figures.bytesWritten, 0)
    await store.close()
    assert.deepEqual(counts(folder), { bodies: 2, live: 2 * bodyBytes, names: 2 })
  }))

test('[D5] history is shared too: what was replaced is one body, and stays until the last interest forgets it', () =>
  inFolder(async (folder) => {
    const store = open(folder)
    await store.load()
    const [first, second] = [shareable('a', 2), shareable('a', 3)]
    await writeAll(store, [first], put)
    await writeAll(store, [second], put)
    assert.equal(store.figures.bytesWritten, 2 * bodyBytes)
    store.release(first.shared)
    for (const interest of interests) {
      const { entries } = await store.history(interest, { version: 1, position: 0 }, { entries: 9, bytes: 1 << 20 })
      assert.deepEqual(
        entries.map(({ version, previousVersion, previous }) => [version, previousVersion, previous?.length]),
        [
          [2, 0, undefined],
          [3, 2, bodyBytes],
        ],
      )
    }
    const floors = interests.map((interest) => ({ interest, synced: 3, floor: 3 }))
    await store.commit({ changes: [], interests: floors.slice(1), synced: true })
    assert.equal(
      (await store.history(interests[0] as string, { version: 2, position: 2 }, { entries: 9, bytes: 9 })).entries[0]
        ?.previous?.length,
      bodyBytes,
    )
    await store.commit({ changes: [], interests: floors.slice(0, 1), synced: true })
    await store.close()
    assert.deepEqual(counts(folder), { bodies: 1, live: bodyBytes, names: 1 })
  }))

test('[D5] bytes that no interest holds stay while a change may bring them again, and are dead once released', () =>
  inFolder(async (folder) => {
    const world = new World({ folder, limits: small, disk })
    const one = shareable('a', 2)
    const forget = (interest: string) => ({
      changes: [],
      interests: [{ interest, forget: true as const }],
      synced: true,
    })
    await world.commit({ changes: [seed('/a', one)], synced: true })
    await world.commit(forget('/a'))
    world.follow()
    await world.commit({ changes: [seed('/b', one)], synced: true })
    world.follow()
    assert.deepEqual(found(world).objects.get('/b a'), { version: 2, body: String(one.body) })
    await world.commit(forget('/b'))
    world.release(one.shared)
    await world.close()
    assert.deepEqual(counts(folder), { bodies: 0, live: 0, names: 0 })
  }))

test('[D5] what a killed process could have referred to and no interest holds is gone with the next start', () =>
  inFolder(async (folder) => {
    const world = new World({ folder, limits: small, disk })
    const [one, two] = [shareable('a', 2), shareable('a', 3)]
    await world.commit({ changes: [put('/a', one), put('/a', two), seed('/b', one)], synced: true })
    await world.commit({ changes: [], interests: [{ interest: '/b', forget: true }], synced: true })
    world.follow()
    await world.close()
    assert.deepEqual(counts(folder), { bodies: 2, live: 2 * bodyBytes, names: 2 })
    const again = new World({ folder, limits: small, disk })
    await again.close()
    // The first is only history now: nothing can refer to it.
    assert.deepEqual(counts(folder), { bodies: 2, live: 2 * bodyBytes, names: 1 })
  }))

test('[D5] what a refused write would have held is written by the next', () =>
  inFolder(async (folder) => {
    let fails = true
    const world = new World({ folder, limits: small, disk: faultyDisk({ write: () => fails }) })
    const one = shareable('a', 2)
    assert.equal(await world.commit({ changes: [seed('/a', one)], synced: true }), false)
    assert.equal(one.shared.name, 0)
    fails = false
    assert.ok(await world.commit({ changes: [seed('/b', one), seed('/c', one)], synced: true }))
    world.follow()
    const { objects, named } = found(world)
    assert.deepEqual([[...objects.keys()], [...named]], [['/b a', '/c a'], []])
    await world.close()
  }))

test('[D4] a flipped bit in shared bytes is told of each object that has them, and each can be repaired', () =>
  inFolder(async (folder) => {
    let store = open(folder)
    await store.load()
    await writeAll(store, [shareable('a', 2), shareable('b', 3)])
    await store.close()
    const path = segmentPath(logFolder(folder), 1)
    const bytes = readFileSync(path)
    bytes[bytes.indexOf('a;a;a;') + 10] = 0
    writeFileSync(path, bytes)
    store = open(folder)
    for (const { objects, corrupt } of (await store.load()).interests) {
      assert.deepEqual([corrupt, objects.map(({ key }: LoadedObject) => key)], [['a'], ['b']])
    }
    await writeAll(store, [shareable('a', 2)])
    assert.equal(store.figures.bytesWritten, bodyBytes)
    await store.close()
    store = open(folder)
    for (const { corrupt, objects } of (await store.load()).interests) {
      assert.deepEqual([corrupt, objects.map(({ body }) => body)], [[], [bodyOf('a'), bodyOf('b')]])
    }
    await store.close()
    assert.deepEqual(counts(folder), { bodies: 2, live: 2 * bodyBytes, names: 2 })
  }))

test('[D4] where the frame that held shared bytes is lost, each object that refers to it is told as damaged', () =>
  inFolder(async (folder) => {
    const world = new World({ folder, limits: small, disk })
    const one = shareable('a', 2)
    await world.commit({ changes: [seed('/a', one)], synced: true })
    const end = world.log.end?.offset as number
    await world.commit({ changes: [seed('/b', one)], synced: true })
    await world.commit({ changes: [seed('/c', one)], synced: true })
    await world.close()
    for (const name of readdirSync(folder)) if (name.startsWith('ake.db')) rmSync(join(folder, name))
    const path = segmentPath(logFolder(folder), 1)
    const bytes = readFileSync(path)
    bytes.fill(1, end - bodyBytes - 20, end)
    bytes.fill(1, 60, 70)
    writeFileSync(path, bytes)
    const again = new World({ folder, limits: small, disk })
    const { objects, named } = found(again)
    assert.equal(again.index.losses.length, 1)
    assert.deepEqual([...objects], [])
    assert.deepEqual([...named].sort(), ['/b', '/b a', '/c', '/c a'])
    await again.close()
  }))
