/** What a mirror asks of every engine: first syncs by seeds, interests that come and go, and records beside them. */
import assert from 'node:assert/strict'
import { all, checker, drop, type Engine, put, start, steps, synced } from './contract.test-support.ts'
import { sealBytes } from './seal.ts'
import { afterAll, type Change, HistoryGone, type LoadedInterest, type Store } from './store.ts'

function seed(version: number, key: string, text = `${key}@${version}`, interest = '/pods'): Change {
  return { interest, position: 0, version, key, kind: 'seed', body: Buffer.from(text) }
}

async function loaded(store: Store, name = '/pods'): Promise<LoadedInterest | undefined> {
  return (await store.load()).interests.find((interest) => interest.name === name)
}

const contents = (interest: LoadedInterest | undefined) =>
  interest?.objects.map(({ key, version, body }) => `${key} ${version} ${body}`)

export function mirrorContract(name: string, engine: Engine): void {
  const check = checker(name, engine)

  /** The same question to the store, and to what is there after a restart. */
  const now = async (
    store: Store,
    reopen: (() => Promise<Store>) | undefined,
    ask: (store: Store) => Promise<void>,
  ) => {
    await ask(store)
    if (reopen === undefined) return
    const again = await reopen()
    try {
      await ask(again)
    } finally {
      await again.close()
    }
  }

  check('seeds are objects without history, and nothing of what they replace is kept', async (store, reopen) => {
    await store.commit(synced(seed(9, 'b'), seed(7, 'a')))
    await store.commit(synced(seed(5, 'c'), seed(11, 'b', 'newer')))
    await store.load()
    assert.equal(store.figures.historyBytes, 0)
    await now(store, reopen, async (asked) => {
      const pods = await loaded(asked)
      assert.deepEqual(contents(pods), ['a 7 a@7', 'b 11 newer', 'c 5 c@5'])
      assert.equal(pods?.synced, undefined)
      assert.equal(pods?.lastPosition, 0)
      assert.equal((await asked.load()).version, 0)
      assert.deepEqual((await asked.history('/pods', start, all)).entries, [])
    })
  })

  check('what follows a first sync has the seeds as its past', async (store) => {
    await store.commit(synced(seed(5, 'a'), seed(6, 'b')))
    await store.commit({ ...synced(), interests: [{ interest: '/pods', synced: 8, floor: 8 }] })
    await store.commit(synced(put(9, 'a', 'newer'), drop(10, 'b')))
    assert.deepEqual(steps(await store.history('/pods', { version: 8, position: afterAll }, all)), [
      '9 put a a@5 → newer',
      '10 delete b b@6 → -',
    ])
    const { entries } = await store.history('/pods', { version: 8, position: afterAll }, all)
    assert.equal(entries[0]?.previousVersion, 5)
  })

  check('a seed over an object with history ends that history, and hands out nothing false', async (store) => {
    await store.commit(synced(put(5, 'a'), put(6, 'b', 'same size')))
    await store.commit(synced(seed(8, 'b', 'different')))
    await store.commit(synced(seed(9, 'c', 'SAME size'), seed(9, 'd', 'same SIZE')))
    assert.deepEqual(steps(await store.history('/pods', start, all)), ['5 put a - → a@5'])
    await assert.rejects(store.history('/pods', { version: 5, position: 5 }, all), HistoryGone)
    const [pods] = (await store.load()).interests
    assert.deepEqual(contents(pods), ['a 5 a@5', 'b 8 different', 'c 9 SAME size', 'd 9 same SIZE'])
  })

  check(
    '[D5] shared bytes are written once, and serve each interest until it lets go of them',
    async (store, reopen) => {
      const shared = { name: 0 }
      const body = Buffer.from('shared')
      const names = ['/pods', '/some', '/more']
      await Promise.all(names.map((interest) => store.commit(synced({ ...seed(5, 'a', '', interest), body, shared }))))
      const more = store.figures.bytesWritten - body.length
      assert.ok(more === 0 || more === sealBytes)
      await store.commit(synced(put(6, 'a', 'newer'), drop(7, 'a', '/some')))
      const past = { ...synced(), interests: [{ interest: '/more', forget: true as const }] }
      await store.commit(past)
      store.release(shared)
      await store.commit(synced({ ...seed(5, 'a', '', '/late'), body, shared: { name: 0 } }))
      assert.equal(store.figures.bytesWritten, 2 * body.length + 'newer'.length + 3 * more)
      await now(store, reopen, async (asked) => {
        assert.deepEqual(contents(await loaded(asked)), ['a 6 newer'])
        assert.deepEqual(contents(await loaded(asked, '/some')), [])
        assert.equal(await loaded(asked, '/more'), undefined)
        assert.deepEqual(contents(await loaded(asked, '/late')), ['a 5 shared'])
        assert.deepEqual(steps(await asked.history('/pods', start, all)), ['6 put a shared → newer'])
        assert.deepEqual(steps(await asked.history('/some', start, all)), ['7 delete a shared → -'])
      })
    },
  )

  check('[A1] an interest is complete up to what was said or to its newest entry', async (store, reopen) => {
    await store.commit({ changes: [seed(5, 'a')], interests: [{ interest: '/pods', synced: 20 }], synced: false })
    assert.equal((await loaded(store))?.synced, 20)
    await store.commit({ changes: [], interests: [{ interest: '/empty', synced: 4, floor: 4 }], synced: false })
    await store.commit(synced(put(30, 'b'), put(31, 'x', 'x', '/unsaid')))
    await store.commit({ changes: [seed(1, 's', 's', '/cut')], synced: false })
    await now(store, reopen, async (asked) => {
      const { interests } = await asked.load()
      const found = Object.fromEntries(interests.map((one) => [one.name, one.synced]))
      assert.deepEqual(found, { '/pods': 30, '/empty': 4, '/unsaid': 31, '/cut': undefined })
    })
  })

  check('a floor that was said counts at once, and never falls', async (store, reopen) => {
    const say = (version: number, floor: number) =>
      store.commit({ changes: [], interests: [{ interest: '/pods', synced: version, floor }], synced: true })
    await say(10, 8)
    assert.equal(store.floor('/pods'), 8)
    await say(11, 3)
    assert.equal(store.floor('/pods'), 8)
    await assert.rejects(store.history('/pods', { version: 7, position: afterAll }, all), HistoryGone)
    await now(store, reopen, async (asked) => {
      const pods = await loaded(asked)
      assert.deepEqual([pods?.floor, pods?.synced, asked.floor('/pods')], [8, 11, 8])
    })
  })

  check('a forgotten interest leaves nothing behind, and the others are untouched', async (store, reopen) => {
    await store.commit(synced(seed(2, 'a'), put(3, 'a'), put(4, 'b'), drop(5, 'b'), put(6, 'n', 'n', '/nodes')))
    await store.commit({ changes: [], interests: [{ interest: '/pods', synced: 7, floor: 2 }], synced: true })
    const forget = { interest: '/pods', forget: true as const }
    await store.commit({ changes: [], interests: [forget, { interest: '/never', forget: true }], synced: true })
    assert.equal(store.floor('/pods'), 0)
    await store.load()
    assert.equal(store.figures.historyBytes, 128 + 'n'.length)
    await now(store, reopen, async (asked) => {
      const { version, interests } = await asked.load()
      assert.deepEqual([version, interests.map((one) => one.name)], [6, ['/nodes']])
      assert.deepEqual((await asked.history('/pods', start, all)).entries, [])
    })
  })

  check('an interest that is forgotten and written in one batch starts new', async (store, reopen) => {
    await store.commit(synced(put(50, 'a'), put(51, 'b')))
    await store.commit({ changes: [], interests: [{ interest: '/pods', synced: 60, floor: 50 }], synced: true })
    // A cluster restored to lower versions; the order in which the parts are written does not matter.
    const interests = [
      { interest: '/pods', synced: 7 },
      { interest: '/pods', forget: true as const },
    ]
    await store.commit({ changes: [seed(3, 'c')], interests, synced: true })
    assert.equal(store.floor('/pods'), 0)
    await now(store, reopen, async (asked) => {
      const pods = await loaded(asked)
      assert.deepEqual([pods?.floor, pods?.synced, contents(pods)], [0, 7, ['c 3 c@3']])
      assert.deepEqual((await asked.history('/pods', start, all)).entries, [])
    })
    if (reopen !== undefined) return
    const same = [...interests, { interest: '/pods', synced: 7, floor: 7 }]
    await store.commit({ changes: [], interests: same, synced: true })
    assert.equal(store.floor('/pods'), 7)
  })

  check('records are kept by kind and key', async (store, reopen) => {
    const large = Buffer.alloc(10 << 20, 'large')
    const record = (kind: string, key: string, value: Buffer | undefined) => ({ kind, key, value })
    const text = (value: string) => Buffer.from(value)
    const first = [
      record('token', 'b', text('1')),
      record('token', 'a', text('2')),
      record('openapi', 'v3', large),
      record('token', 'gone', text('3')),
    ]
    await store.commit({ changes: [], records: first, synced: true })
    const second = [record('token', 'b', text('newer')), record('token', 'gone', undefined)]
    await store.commit({ changes: [], records: [...second, record('token', 'never', undefined)], synced: true })
    await store.commit({ changes: [], records: [record('token', 'empty', text(''))], synced: false })
    await now(store, reopen, async (asked) => {
      const tokens = await asked.records('token')
      assert.deepEqual(
        tokens.map(({ key, value }) => `${key} ${value}`),
        ['a 2', 'b newer', 'empty '],
      )
      assert.equal(String(await asked.record('token', 'a')), '2')
      assert.equal(await asked.record('token', 'gone'), undefined)
      assert.equal(await asked.record('openapi', 'a'), undefined)
      assert.ok((await asked.record('openapi', 'v3'))?.equals(large))
      assert.deepEqual(await asked.records('nothing'), [])
    })
  })

  check('everything in one batch: interests, objects and records together', async (store, reopen) => {
    const interests = [{ interest: '/pods', synced: 9, floor: 5 }]
    const records = [{ kind: 'caller', key: 'x', value: Buffer.from('y') }]
    await store.commit({ changes: [put(9, 'a')], interests, records, synced: true })
    assert.equal(store.figures.commits, 1)
    await now(store, reopen, async (asked) => {
      const pods = await loaded(asked)
      assert.deepEqual([pods?.floor, pods?.synced, contents(pods)], [5, 9, ['a 9 a@9']])
      assert.equal(String(await asked.record('caller', 'x')), 'y')
    })
  })
}
