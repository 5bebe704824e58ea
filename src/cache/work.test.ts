/** How much is done, counted: what one read or one change costs must not grow with all that is there. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Dispatch } from './dispatch.ts'
import { Event, type Form } from './event.ts'
import { after, bytesOf, filterFor, form, openWorld, plan, Reader } from './fixture.test-support.ts'
import { makeItem } from './item.ts'
import { Ordered } from './ordered.ts'

const objects = 1_000

async function filled() {
  const world = await openWorld()
  for (let at = 0; at < objects; at++) {
    await world.put(`ns${at % 10}/p${at}`, { value: 'v', labels: { app: `a${at % 100}` }, node: `n${at % 100}` })
  }
  return world
}

test('one object is found by its name, and a list by name or by an equality looks at nothing else (kubeedge 8.1)', async () => {
  const { cache } = await filled()
  const byNode = filterFor({ fields: 'spec.nodeName=n7' })
  assert.equal(cache.list(byNode).length, objects / 100, 'its index is made once')
  const ranges = [mock.method(Ordered.prototype, 'all'), mock.method(Ordered.prototype, 'inNamespace')]
  try {
    assert.equal(cache.get('ns3/p3')?.key, 'ns3/p3')
    assert.equal(cache.get('ns3/none'), undefined)
    assert.equal(cache.list(filterFor({ namespace: 'ns3', name: 'p3' })).length, 1)
    let looked = 0
    const counted = {
      ...byNode,
      matches: (item: Parameters<typeof byNode.matches>[0]) => {
        looked++
        return byNode.matches(item)
      },
    }
    assert.equal(cache.list(counted).length, objects / 100)
    assert.equal(looked, objects / 100)
    for (const range of ranges) assert.equal(range.mock.callCount(), 0)
  } finally {
    for (const range of ranges) range.mock.restore()
  }
})

test('[A8] a field selector of thousands of terms reads each field of an object once or twice', () => {
  const [terms, item] = [3_000, makeItem(bytesOf('ns1/p1', 1, { value: '', node: 'n1' }), 1, plan)]
  let read = 0
  const counted = new Proxy(item, {
    get: (of, name) => {
      if (name === 'name' || name === 'fields') read++
      return Reflect.get(of, name)
    },
  })
  for (const field of ['metadata.name', 'spec.nodeName']) {
    const refused = Array.from({ length: terms }, (_, i) => `${field}!=x${i}`)
    read = 0
    assert.equal(filterFor({ fields: refused.join(',') }).matches(counted), true)
    assert.ok(read <= 2, `${read} reads of ${field}`)
    const [own] = field === 'metadata.name' ? ['p1'] : ['n1']
    for (const [last, matches] of [
      [`${field}!=${own}`, false],
      [`${field}=${own}`, true],
      [`${field}=other`, false],
      [`${field}=${own},${field}=other`, false],
    ] as const) {
      assert.equal(filterFor({ fields: [...refused, last].join(',') }).matches(item), matches, last)
    }
  }
})

test('a change is handed to the watchers that it may concern, not to all (kubeedge 8.8)', () => {
  const dispatch = new Dispatch<{ filter: ReturnType<typeof filterFor>; receive(event: Event): void }>(plan)
  let handed = 0
  const receive = () => {
    handed++
  }
  for (let at = 0; at < objects; at++) {
    dispatch.add({ filter: filterFor({ namespace: `ns${at}` }), receive })
    dispatch.add({ filter: filterFor({ fields: `spec.nodeName=n${at}` }), receive })
    dispatch.add({ filter: filterFor({ namespace: 'ns1', name: `p${at}` }), receive })
  }
  const previous = makeItem(bytesOf('ns1/p1', 1, { value: '', node: 'n1' }), 1, plan)
  const item = makeItem(bytesOf('ns1/p1', 2, { value: '', node: 'n2' }), 2, plan)
  dispatch.send(new Event({ position: 1, version: 2, key: 'ns1/p1', item, previous }))
  // Its namespace, its name, the node it left and the one it came to.
  assert.equal(handed, 4)
})

test('a frame is spelled once for all watchers, and who watches again is told nothing twice (kubeedge 8.9)', async () => {
  const world = await filled()
  let spelled = 0
  const counting: Form = {
    frame: (type, item) => {
      spelled++
      return form.frame(type, item)
    },
    bookmark: form.bookmark,
  }
  const start = after(world.cache.version)
  const parts = { filter: filterFor({}), form: counting, start, bookmarks: false, errorFrame: () => Buffer.alloc(0) }
  const watchers = Array.from({ length: 100 }, () => world.cache.watch(parts))
  const next = watchers.map((watcher) => watcher.next())
  const read = mock.method(world.store, 'history')
  await world.put('ns0/p0', 'changed')
  for (const { value } of await Promise.all(next)) assert.match(String(value), /^MODIFIED \d+ ns0\/p0 changed/)
  assert.equal(spelled, 1)
  const again = new Reader(world.cache, after(world.cache.version - 1))
  assert.equal((await again.drain(1)).length, 1)
  assert.equal(read.mock.callCount(), 0, 'what is recent is in memory')
  for (const watcher of watchers) await watcher.return()
})

test('what is shared is never changed: a deletion has bytes of its own (kubeedge 1.5)', async () => {
  const world = await openWorld()
  await world.put('a/x', 'v')
  const held = world.cache.get('a/x')
  const before = String(held?.bytes)
  const reader = new Reader(world.cache, after(world.cache.version))
  await world.put('a/y', 'v')
  await world.remove('a/x')
  assert.match((await reader.drain(2)).join(), /DELETED \d+ a\/x v@4/)
  assert.equal(String(held?.bytes), before)
})
