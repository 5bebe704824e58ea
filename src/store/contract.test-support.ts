/** What every engine must do, run against each of them. A new engine adds one entry to contract.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterAll, type Batch, type Change, HistoryGone, type HistoryPage, type Store } from './store.ts'

export const all = { entries: 1_000, bytes: 1 << 30 }
export const start = { version: 0, position: afterAll }

/** `open` gives a fresh store; `reopen`, where there is one, the same content after an orderly end. */
export type Engine = {
  open(historyBytesMax: number): Promise<{ store: Store; reopen?: () => Promise<Store>; remove(): void }>
}

export function put(version: number, key: string, text = `${key}@${version}`, interest = '/pods'): Change {
  return { interest, position: version, version, key, kind: 'put', body: Buffer.from(text) }
}

export function drop(version: number, key: string, interest = '/pods'): Change {
  return { interest, position: version, version, key, kind: 'delete' }
}

export const synced = (...changes: Change[]): Batch => ({ changes, synced: true })

export function steps(page: HistoryPage): string[] {
  return page.entries.map(
    ({ version, kind, key, body, previous }) => `${version} ${kind} ${key} ${previous ?? '-'} → ${body ?? '-'}`,
  )
}

type Check = (
  title: string,
  body: (store: Store, reopen?: () => Promise<Store>) => Promise<void>,
  historyBytesMax?: number,
) => void

/** One test with a store of its own. */
export function checker(name: string, engine: Engine): Check {
  return (title, body, historyBytesMax = 1 << 20) =>
    void test(`${name}: ${title}`, async () => {
      const { store, reopen, remove } = await engine.open(historyBytesMax)
      try {
        await store.load()
        await body(store, reopen)
      } finally {
        await store.close()
        remove()
      }
    })
}

export function storeContract(name: string, engine: Engine): void {
  const check = checker(name, engine)

  check('a fresh store holds nothing', async (store) => {
    assert.deepEqual(await store.load(), { version: 0, interests: [] })
    assert.deepEqual(await store.history('/pods', start, all), { entries: [], more: false })
    assert.equal(store.floor('/pods'), 0)
  })

  check('objects and history change together, in key order', async (store) => {
    await store.commit(synced(put(2, 'b/x'), put(3, 'a/y')))
    await store.commit(synced(put(4, 'b/x', 'newer'), drop(5, 'a/y'), put(6, 'a-b/z')))
    const { version, interests } = await store.load()
    assert.equal(version, 6)
    const [pods] = interests
    assert.deepEqual(
      pods?.objects.map(({ key, version: at, body }) => `${key} ${at} ${body}`),
      ['a-b/z 6 a-b/z@6', 'b/x 4 newer'],
    )
    assert.equal(pods?.lastPosition, 6)
    assert.deepEqual(steps(await store.history('/pods', start, all)), [
      '2 put b/x - → b/x@2',
      '3 put a/y - → a/y@3',
      '4 put b/x b/x@2 → newer',
      '5 delete a/y a/y@3 → -',
      '6 put a-b/z - → a-b/z@6',
    ])
  })

  check('history is read after a cursor, page by page', async (store) => {
    await store.commit(synced(...Array.from({ length: 10 }, (_, i) => put(i + 2, `k${i}`))))
    const page = await store.history('/pods', { version: 4, position: afterAll }, { entries: 3, bytes: 1 << 20 })
    assert.deepEqual(
      page.entries.map((entry) => entry.version),
      [5, 6, 7],
    )
    assert.equal(page.more, true)
    const small = await store.history('/pods', { version: 4, position: 4 }, { entries: 100, bytes: 1 })
    assert.deepEqual(
      small.entries.map((entry) => entry.version),
      [5],
    )
    const rest = await store.history('/pods', { version: 10, position: 10 }, all)
    assert.deepEqual(rest, { entries: rest.entries, more: false })
    assert.deepEqual(
      rest.entries.map((entry) => entry.version),
      [11],
    )
  })

  check('versions may repeat: positions order them', async (store) => {
    const at = (position: number, change: Change): Change => ({ ...change, position })
    await store.commit(synced(at(1, put(5, 'a')), at(2, put(6, 'b'))))
    await store.commit(
      synced(
        at(3, { interest: '/pods', position: 3, version: 6, key: '9', kind: 'gap' }),
        at(4, drop(6, 'a')),
        at(5, drop(6, 'b')),
        at(6, put(8, 'c')),
      ),
    )
    const after = await store.history('/pods', { version: 6, position: 4 }, all)
    assert.deepEqual(
      after.entries.map(({ position, key }) => [position, key]),
      [
        [5, 'b'],
        [6, 'c'],
      ],
    )
    const [pods] = (await store.load()).interests
    assert.deepEqual(pods?.gaps, [{ position: 3, from: 6, to: 9 }])
    assert.deepEqual(
      pods?.objects.map(({ key }) => key),
      ['c'],
    )
  })

  check(
    'a gap is forgotten as a whole: nobody resumes inside what is left of it',
    async (store) => {
      const at = (position: number, change: Change): Change => ({ ...change, position })
      await store.commit(synced(at(1, put(5, 'a')), at(2, put(6, 'b'))))
      const gap: Change = { interest: '/pods', position: 3, version: 6, key: '20', kind: 'gap' }
      await store.commit(synced(gap, at(4, drop(6, 'a')), at(5, drop(6, 'b')), at(6, put(30, 'c'))))
      await store.commit(synced(at(7, put(31, 'd')), at(8, put(32, 'e'))))
      await store.load()
      assert.equal(store.floor('/pods'), 20)
      await assert.rejects(store.history('/pods', { version: 6, position: afterAll }, all), HistoryGone)
      const { entries } = await store.history('/pods', { version: 20, position: afterAll }, all)
      assert.equal(entries[0]?.key, 'c')
    },
    700,
  )

  check('interests are apart', async (store) => {
    await store.commit(synced(put(2, 'x'), put(3, 'x', 'other', '/nodes')))
    const { interests } = await store.load()
    assert.deepEqual(interests.map(({ name: interest, objects }) => `${interest} ${objects[0]?.body}`).sort(), [
      '/nodes other',
      '/pods x@2',
    ])
    assert.equal((await store.history('/nodes', start, all)).entries.length, 1)
  })

  check(
    'history is bounded by bytes, and the floor rises only where something was forgotten',
    async (store) => {
      await store.commit(synced(put(2, 'quiet', 'q', '/nodes')))
      for (let version = 3; version < 203; version++)
        await store.commit(synced(put(version, 'busy', 'x'.repeat(1_000))))
      await store.load()
      assert.ok(store.figures.historyBytes <= 20_000, `${store.figures.historyBytes}`)
      assert.equal(store.floor('/nodes'), 0)
      const floor = store.floor('/pods')
      assert.ok(floor > 150 && floor < 202, `${floor}`)
      await assert.rejects(store.history('/pods', { version: floor - 1, position: afterAll }, all), HistoryGone)
      const { entries } = await store.history('/pods', { version: floor, position: afterAll }, all)
      assert.equal(entries[0]?.version, floor + 1)
      assert.equal(entries[0]?.previous?.length, 1_000)
      assert.equal((await store.history('/nodes', start, all)).entries.length, 1)
      assert.equal((await store.load()).version, 202)
    },
    20_000,
  )

  check('what was committed is there after a restart', async (store, reopen) => {
    if (reopen === undefined) return
    await store.commit(synced(put(2, 'a'), put(3, 'b'), drop(4, 'a')))
    await store.commit({ changes: [put(5, 'c')], synced: false })
    const again = await reopen()
    try {
      const { version, interests } = await again.load()
      assert.equal(version, 5)
      assert.deepEqual(
        interests[0]?.objects.map(({ key, body }) => `${key} ${body}`),
        ['b b@3', 'c c@5'],
      )
      assert.deepEqual(steps(await again.history('/pods', { version: 3, position: afterAll }, all)), [
        '4 delete a a@2 → -',
        '5 put c - → c@5',
      ])
    } finally {
      await again.close()
    }
  })

  check('many writers at once all find their change stored', async (store) => {
    await Promise.all(Array.from({ length: 500 }, (_, i) => store.commit(synced(put(i + 2, `k${i}`)))))
    assert.equal((await store.load()).interests[0]?.objects.length, 500)
    assert.equal(store.figures.commits, 500)
  })
}
