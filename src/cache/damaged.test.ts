/** What is left readable beside an object whose stored bytes are damaged. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Make, Store } from '../store/store.ts'
import { type Asked, after, filterFor, openWorld, Reader, type World } from './fixture.test-support.ts'

/** Opened again over the same objects, of which the named ones are damaged. */
async function reopened(first: World, corrupt: readonly string[]): Promise<World> {
  const { store } = first
  const load: Store['load'] = async (make?: Make<unknown>) => {
    const { version, interests } = await store.load(make as Make<unknown>)
    const damaged = interests.map((one) => {
      const objects = (one.objects as { key: string }[]).filter(({ key }) => !corrupt.includes(key))
      return { ...one, objects, corrupt }
    })
    return { version, interests: damaged } as never
  }
  const damagedStore = new Proxy(store, {
    get: (target, name) => {
      if (name === 'load') return load
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return openWorld({ store: damagedStore })
}

test('[D4] a damaged object stands in the way of lists that could hold it, and of no others', async () => {
  const first = await openWorld()
  for (const key of ['a/x', 'b/x', 'b/y']) await first.put(key, '1')
  const world = await reopened(first, ['b/y'])
  const names = (asked: Asked) => world.cache.list(filterFor(asked)).map(({ key }) => key)
  assert.deepEqual(names({ namespace: 'a' }), ['a/x'])
  assert.deepEqual(names({ namespace: 'b', name: 'x' }), ['b/x'])
  for (const asked of [{}, { namespace: 'b' }, { namespace: 'b', name: 'y' }]) {
    assert.throws(() => names(asked), /damaged/)
  }
})

test('[A4, D4] every watch that may have had a damaged object hears that it is gone, whatever its selector asks for', async () => {
  const first = await openWorld()
  const version = await first.put('b/y', { value: '1', labels: { app: 'web' }, node: 'n1' })
  const world = await reopened(first, ['b/y'])
  const may: Asked[] = [
    {},
    { namespace: 'b' },
    { namespace: 'b', name: 'y' },
    { labels: 'app=web' },
    { labels: '!gone' },
  ]
  may.push({ fields: 'spec.nodeName=n1' }, { fields: 'spec.nodeName!=n2' }, { namespace: 'b', labels: 'app=web' })
  const cannot: Asked[] = [{ namespace: 'a' }, { namespace: 'b', name: 'z' }, { namespace: 'a', labels: 'app=web' }]
  // Across namespaces, by a name that its reader may be limited to.
  cannot.push({ fields: 'metadata.name=z' })
  may.push({ fields: 'metadata.name=y' })
  const readers = [...may, ...cannot].map((asked) => new Reader(world.cache, after(version), asked))
  for (const reader of readers) await reader.drain()
  await world.remove('b/y')
  for (const [index, reader] of readers.entries()) {
    const frames = await reader.drain()
    const expected = index < may.length ? [`DELETED ${version + 1} b/y undefined@${version + 1}`] : []
    assert.deepEqual(frames, expected, JSON.stringify([...may, ...cannot][index]))
    await reader.close()
  }
})

test('[A4, D4] a watch hears of a damaged object that is another one now: as changed, or as one that left its selector', async () => {
  const first = await openWorld()
  const version = await first.put('b/y', { value: '1', labels: { app: 'web' }, node: 'n1' })
  const world = await reopened(first, ['b/y'])
  const readers = ['app=web', 'app=db'].map((labels) => new Reader(world.cache, after(version), { labels }))
  for (const reader of readers) await reader.drain()
  await world.put('b/y', { value: '2', labels: { app: 'db' } })
  const [web, db] = await Promise.all(readers.map((reader) => reader.drain()))
  assert.deepEqual(web, [`DELETED ${version + 1} b/y undefined@${version + 1}`])
  assert.deepEqual(db, [`MODIFIED ${version + 1} b/y 2@${version + 1}`])
  for (const reader of readers) await reader.close()
})
