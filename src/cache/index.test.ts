/** The ways to find things quickly, each against looking at everything. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Dispatch } from './dispatch.ts'
import { Event } from './event.ts'
import { type Asked, bytesOf, filterFor, openWorld, plan, type Thing } from './fixture.test-support.ts'
import { type Item, makeItem } from './item.ts'
import { Ordered } from './ordered.ts'

const namespaces = ['a', 'a-b', 'a.b', 'a0', 'ab', 'b']
const key = fc
  .tuple(fc.constantFrom(...namespaces), fc.constantFrom('x', 'y', 'z-1'))
  .map(([ns, name]) => `${ns}/${name}`)
const thing: fc.Arbitrary<Thing> = fc.record({
  value: fc.constant(''),
  labels: fc.dictionary(fc.constantFrom('app', 'tier'), fc.constantFrom('', 'web', 'api'), { maxKeys: 2 }),
  node: fc.constantFrom('', 'n1', 'n2'),
})
const asked: fc.Arbitrary<Asked> = fc.record(
  {
    namespace: fc.constantFrom('', ...namespaces),
    name: fc.constantFrom('x', 'y'),
    labels: fc.constantFrom('', 'app=web', 'app=', 'app!=web', 'app', '!app', 'app in (web,api),tier=api'),
    fields: fc.constantFrom('', 'spec.nodeName=n1', 'spec.nodeName=', 'spec.nodeName!=n1', 'metadata.name=x'),
  },
  { requiredKeys: [] },
)

const itemOf = (at: string, of: Thing, version = 1): Item => makeItem(bytesOf(at, version, of), version, plan)

test('objects stay in key order, and a namespace is exactly its own', () => {
  const steps = fc.array(fc.tuple(key, fc.boolean()), { maxLength: 60 })
  fc.assert(
    fc.property(steps, (changes) => {
      const ordered = new Ordered()
      const model = new Map<string, Item>()
      for (const [at, stays] of changes) {
        const item = itemOf(at, { value: '' })
        if (stays) ordered.set(item)
        else ordered.delete(at)
        if (stays) model.set(at, item)
        else model.delete(at)
        assert.equal(ordered.get(at), model.get(at))
      }
      const expected = [...model.keys()].sort()
      assert.deepEqual(
        ordered.all().map((item) => item.key),
        expected,
      )
      assert.equal(ordered.size, expected.length)
      for (const namespace of namespaces) {
        assert.deepEqual(
          ordered.inNamespace(namespace).map((item) => item.key),
          expected.filter((one) => one.startsWith(`${namespace}/`)),
        )
      }
      for (const at of model.keys()) assert.equal(ordered.get(at), model.get(at))
    }),
  )
})

test('an event reaches exactly the watchers whose filter it concerns', () => {
  const maybe = fc.option(thing, { nil: undefined })
  fc.assert(
    fc.property(fc.array(asked, { maxLength: 12 }), key, maybe, maybe, (filters, at, before, now) => {
      const dispatch = new Dispatch<{ filter: ReturnType<typeof filterFor>; receive(event: Event): void }>(plan)
      const heard = filters.map(() => 0)
      const receivers = filters.map((one, index) => ({
        filter: filterFor(one),
        receive: (event: Event) => {
          if (event.typeFor(filterFor(one)) !== undefined) (heard[index] as number)++
        },
      }))
      for (const receiver of receivers) dispatch.add(receiver)
      const previous = before && itemOf(at, before)
      const item = now && itemOf(at, now, 2)
      const event = new Event({ position: 1, version: 2, key: at, item, previous })
      dispatch.send(event)
      const concerned = receivers.map(({ filter }) => (event.typeFor(filter) === undefined ? 0 : 1))
      assert.deepEqual(heard, concerned)
      for (const receiver of receivers) dispatch.delete(receiver)
      assert.equal(dispatch.size, 0)
      dispatch.send(event)
      assert.deepEqual(heard, concerned)
    }),
  )
})

test('a list by index is the list by looking at everything, through every change', async () => {
  const world = await openWorld()
  // Enough for indexes to be used at all.
  for (let i = 0; i < 80; i++) await world.put(`c/${i}`, { value: '', labels: { app: 'web' }, node: `n${i % 3}` })
  const steps = fc.array(fc.tuple(key, fc.option(thing, { nil: undefined }), asked), { minLength: 1, maxLength: 10 })
  await fc.assert(
    fc.asyncProperty(steps, async (changes) => {
      for (const [at, now, wanted] of changes) {
        if (now !== undefined) await world.put(at, now)
        else if (world.cache.get(at) !== undefined) await world.remove(at)
        const filter = filterFor(wanted)
        assert.deepEqual(
          world.cache.list(filter).map((item) => item.key),
          world.cache
            .all()
            .filter((item) => filter.matches(item))
            .map((item) => item.key),
        )
      }
    }),
    { numRuns: 50 },
  )
})

test('[A5] a frame is built once for all who share its form, and a deletion carries its own version', () => {
  let built = 0
  const counting = {
    frame: (_: string, item: Item) => {
      built++
      return item.bytes
    },
    bookmark: () => Buffer.alloc(0),
  }
  const previous = itemOf('a/x', { value: 'é😀' }, 9)
  const event = new Event({ position: 1, version: 1_000, key: 'a/x', item: undefined, previous })
  const first = event.shared('DELETED').frame(counting)
  assert.equal(event.shared('DELETED').frame(counting), first)
  assert.equal(built, 1)
  assert.equal(first.toString(), bytesOf('a/x', 1_000, { value: 'é😀' }).toString())
  assert.equal(event.shared('DELETED').item.metadataEnd, makeItem(first, 1_000, plan).metadataEnd)
})
