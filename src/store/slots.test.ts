/** The engine that overwrites bodies in place against the one that cannot mix them up: random batches, and restarts. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { Database } from './database.ts'
import { openMemory } from './memory.ts'
import { afterAll, type Batch, type Change, HistoryGone, type Store } from './store.ts'

const all = { entries: 10_000, bytes: 1 << 30 }
const interests = ['/a', '/b']
const keys = ['k1', 'k2', 'k3', 'k4'] as const
type Key = (typeof keys)[number]

const step = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({
      do: fc.constantFrom('put', 'put', 'delete', 'seed' as const),
      interest: fc.constantFrom(...interests),
      key: fc.constantFrom(...keys),
      size: fc.constantFrom(10, 11, 12, 300, 5_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), interest: fc.constantFrom(...interests) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('restart', 'fail' as const) }) },
)

function batchOf(
  one: Extract<typeof step extends fc.Arbitrary<infer Step> ? Step : never, { interest: string }>,
  version: number,
): Batch {
  if (!('key' in one)) return { changes: [], interests: [{ interest: one.interest, forget: true }], synced: false }
  const change: Change = {
    interest: one.interest,
    position: version,
    version,
    key: one.key,
    kind: one.do as Change['kind'],
  }
  const body = Buffer.alloc(one.size, `${version};`)
  return { changes: [one.do === 'delete' ? change : { ...change, body }], synced: false }
}

function write(database: Database, ...batches: Batch[]): void {
  const whole = ({ changes, interests: said = [] }: Batch) => ({
    changes: changes.map((change) => ({ ...change, body: change.body })),
    interests: said,
    records: [],
  })
  database.commit(batches.map(whole), false)
}

/** What both have to agree on: every object, and every step of history that both still have. */
async function compare(database: Database, memory: Store): Promise<void> {
  const loaded = (await memory.load()).interests
  for (const name of interests) {
    const expected = loaded.find((one) => one.name === name)?.objects ?? []
    const found = [...database.objects(name)].map(({ key, version, bytes }) => `${key} ${version} ${text(bytes)}`)
    assert.deepEqual(
      found,
      expected.map(({ key, version, body }) => `${key} ${version} ${text(body)}`),
    )
    const floor = Math.max(database.interests().find((one) => one.name === name)?.floor ?? 0, memory.floor(name))
    const after = { version: floor, position: afterAll }
    const expectedSteps = await memory
      .history(name, after, all)
      .then(
        ({ entries }) => entries.map(({ version, body, previous }) => `${version} ${text(previous)} ${text(body)}`),
        gone,
      )
    const steps = await Promise.resolve()
      .then(() => database.history(name, after, all).entries)
      .then(
        (entries) => entries.map((one) => `${one.version} ${text(one.previous?.bytes)} ${text(one.body?.bytes)}`),
        gone,
      )
    assert.deepEqual(steps, expectedSteps)
  }
}

const text = (bytes: Uint8Array | undefined) => bytes && `${bytes.length} ${Buffer.from(bytes.subarray(0, 12))}`

function gone(error: unknown): string {
  assert.ok(error instanceof HistoryGone)
  return 'gone'
}

test('bodies that are overwritten never show through an object or a step of history', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-slots-'))
  let run = 0
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 160 }), async (plan) => {
        const path = join(folder, `${run++}.db`)
        const historyBytesMax = 9_000
        let database = new Database({ path, historyBytesMax })
        const memory = openMemory({ historyBytesMax })
        let version = 1
        for (const one of plan) {
          version++
          if (one.do === 'restart') {
            database.close()
            database = new Database({ path, historyBytesMax })
          } else if ('interest' in one) {
            write(database, batchOf(one, version))
            await memory.commit(batchOf(one, version))
          } else {
            // The last change repeats a place in history: all of it is taken back.
            const twice = batchOf({ do: 'put', interest: '/a', key: 'k1', size: 11 }, version)
            const replaced = batchOf({ do: 'seed', interest: '/a', key: 'k2', size: 300 }, version)
            assert.throws(() => write(database, replaced, twice, twice))
          }
        }
        await compare(database, memory)
        database.close()
        database = new Database({ path, historyBytesMax })
        await compare(database, memory)
        database.close()
        const db = new DatabaseSync(path)
        const unknown = db
          .prepare(
            `SELECT count(*) AS n FROM bodies WHERE id NOT IN (SELECT body FROM heads) AND id NOT IN (SELECT body FROM slots)
             AND id NOT IN (SELECT previous FROM history WHERE previous IS NOT NULL)`,
          )
          .get() as { n: number }
        db.close()
        assert.equal(unknown.n, 0, 'a body is neither used nor waiting to be')
        rmSync(path)
      }),
      { numRuns: 40 },
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a slot whose new body is gone with its interest is not used once more', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-slots-'))
  const path = join(folder, 'ake.db')
  const historyBytesMax = 1 << 20
  const seed = (interest: string, key: Key, version: number) =>
    batchOf({ do: 'seed', interest, key, size: 11 }, version)
  try {
    let database = new Database({ path, historyBytesMax })
    write(database, seed('/b', 'k1', 1))
    // The first body of k1 is free now, and k2's is written over it.
    write(database, seed('/b', 'k1', 2))
    write(database, seed('/a', 'k2', 3))
    write(database, batchOf({ do: 'forget', interest: '/a' }, 4))
    database.close()
    database = new Database({ path, historyBytesMax })
    write(database, seed('/b', 'k3', 5))
    const found = [...database.objects('/b')].map(({ key, version, bytes }) => `${key} ${version} ${bytes?.length}`)
    database.close()
    assert.deepEqual(found, ['k1 2 11', 'k3 5 11'])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
