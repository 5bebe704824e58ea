/**
 * How many durable commits a second, at the store's interface, with 64 writers that each wait for theirs? Beside it the
 * same rows written by node:sqlite in the plain way: on the caller's thread, one synced transaction each.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import { openDurable } from '../src/store/durable.ts'
import type { Question } from './bench.ts'
import { makePods, podCount } from './fixture.ts'

const writers = 64
const roundMs = 4_000

/** The most of these counts: a disk shared with others is only ever slower than it could be. */
const rounds = 3

/** Small enough to be reached within a round, so that forgetting old history is part of the price. */
const historyBytesMax = 64 * 1024 * 1024

/** Not the system's temporary folder, which may be memory: a sync must reach a disk. */
const parent = import.meta.dirname

type Row = { readonly key: string; readonly body: Buffer }

export const commit: Question = {
  name: 'commit',
  ask: async ({ say }) => {
    const rows = makePods(podCount).map(({ namespace, name, object }): Row => {
      return { key: `${namespace}/${name}`, body: Buffer.from(JSON.stringify(object)) }
    })
    let ours = 0
    let plain = 0
    for (let round = 0; round < rounds; round++) {
      ours = Math.max(ours, await inFolder((folder) => throughStore(folder, rows)))
      plain = Math.max(plain, await inFolder(async (folder) => inThread(folder, rows)))
      say(`  commits/s so far: ake ${Math.round(ours)}, node:sqlite ${Math.round(plain)}`)
    }
    const measured = { ake: ours, 'node:sqlite': plain }
    return [{ name: 'durable commits, 64 writers', unit: 'commits/s', measured, atLeast: 20_000 }]
  },
}

async function inFolder(work: (folder: string) => Promise<number>): Promise<number> {
  const folder = await mkdtemp(join(parent, '.commit-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function throughStore(folder: string, rows: readonly Row[]): Promise<number> {
  const store = openDurable({ folder, historyBytesMax })
  await store.load()
  let version = 0
  const began = performance.now()
  const end = began + roundMs
  const writer = async () => {
    while (performance.now() < end) {
      version += 1
      const { key, body } = rows[version % rows.length]!
      const change = { interest: 'pods', position: version, version, key, kind: 'put', body } as const
      await store.commit({ changes: [change], synced: true })
    }
  }
  await Promise.all(Array.from({ length: writers }, writer))
  const perSecond = (version * 1_000) / (performance.now() - began)
  await store.close()
  return perSecond
}

function inThread(folder: string, rows: readonly Row[]): number {
  const db = new DatabaseSync(join(folder, 'plain.db'))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  db.exec(`
    CREATE TABLE bodies (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, checksum INTEGER NOT NULL, bytes BLOB NOT NULL);
    CREATE TABLE objects (key TEXT PRIMARY KEY, body INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE history (version INTEGER PRIMARY KEY, key TEXT NOT NULL, body INTEGER NOT NULL);
  `)
  const addBody = db.prepare('INSERT INTO bodies (version, checksum, bytes) VALUES (?, ?, ?)')
  const setObject = db.prepare('INSERT OR REPLACE INTO objects VALUES (?, ?)')
  const addEntry = db.prepare('INSERT INTO history VALUES (?, ?, ?)')
  let version = 0
  const began = performance.now()
  const end = began + roundMs
  while (performance.now() < end) {
    version += 1
    const { key, body } = rows[version % rows.length]!
    db.exec('BEGIN IMMEDIATE')
    const id = addBody.run(version, crc32(body), body).lastInsertRowid
    setObject.run(key, id)
    addEntry.run(version, key, id)
    db.exec('COMMIT')
  }
  const perSecond = (version * 1_000) / (performance.now() - began)
  db.close()
  return perSecond
}
