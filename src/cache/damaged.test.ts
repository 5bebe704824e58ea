/** What is left readable beside an object whose stored bytes are damaged. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Make, Store } from '../store/store.ts'
import { type Asked, filterFor, openWorld } from './fixture.test-support.ts'

test('[D4] a damaged object stands in the way of lists that could hold it, and of no others', async () => {
  const first = await openWorld()
  for (const key of ['a/x', 'b/x', 'b/y']) await first.put(key, '1')
  const { store } = first
  const load: Store['load'] = async (make?: Make<unknown>) => {
    const { version, interests } = await store.load(make as Make<unknown>)
    const damaged = interests.map((one) => ({ ...one, objects: one.objects.slice(0, 2), corrupt: ['b/y'] }))
    return { version, interests: damaged } as never
  }
  const world = await openWorld({ store: Object.assign(Object.create(store) as Store, { load }) })
  const names = (asked: Asked) => world.cache.list(filterFor(asked)).map(({ key }) => key)
  assert.deepEqual(names({ namespace: 'a' }), ['a/x'])
  assert.deepEqual(names({ namespace: 'b', name: 'x' }), ['b/x'])
  for (const asked of [{}, { namespace: 'b' }, { namespace: 'b', name: 'y' }]) {
    assert.throws(() => names(asked), /damaged/)
  }
})
