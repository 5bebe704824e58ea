import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Item, makeItem } from '../../cache/item.ts'
import { type ListPage, listItemForm } from '../../kube/listpage.ts'
import { planFields, scanObject, uidAt } from '../../kube/object.ts'
import { ApiServer, type ServerRequest } from '../../mirror/apiserver.test-support.ts'
import { known, scopeOf, settle, type Wish } from '../../mirror/world.test-support.ts'
import { Unreachable, type Upstream } from '../upstream.ts'
import { Busy, Expired, Refused, TooLarge } from './follow.ts'
import { type CloudListing, type ListingLimits, type ListingParts, listItemOf, readListing } from './listing.ts'
import { Ahead, Source } from './source.ts'

type Options = { wish?: Wish; exactly?: number; limits?: ListingLimits } & Partial<
  Pick<ListingParts, 'source' | 'standing' | 'known' | 'measured'>
>

function filled(objects: number, pageMax: number): ApiServer {
  const server = new ApiServer()
  server.pageMax = pageMax
  for (let i = 0; i < objects; i++) server.put('pods', `a/k${i}`, { value: 'first' })
  return server
}

/** Reads a list and lets time pass until it is there, or is not to be had. */
async function read(
  server: Upstream & { clock: ApiServer['clock'] },
  options: Options = {},
): Promise<CloudListing & Disposable> {
  const { wish = {}, exactly, limits = { objects: 1_000, bytes: 1 << 20 }, standing = () => undefined } = options
  const { source = new Source({ upstream: server, clock: server.clock, scope: scopeOf(wish) }) } = options
  const { signal } = new AbortController()
  const { plan } = known()
  const parts = { source, custom: false, plan, standing, known: options.known, limits, clock: server.clock, signal }
  let over = false
  const reading = readListing({
    ...parts,
    ...(exactly && { exactly }),
    ...(options.measured && { measured: options.measured }),
  }).finally(() => {
    over = true
  })
  reading.catch(() => {})
  for (let step = 0; step < 100 && !over; step++) {
    await settle()
    server.clock.advance(250)
  }
  const listing = await reading
  return { ...listing, [Symbol.dispose]: () => listing.watch?.close() }
}

function contents(server: ApiServer, { objects }: CloudListing): Map<string, string> {
  const texts = [...objects].map(([key, found]): [string, string] => {
    return [key, found === 'same' ? (server.get('pods', key)?.text ?? '') : String(found.bytes)]
  })
  return new Map(texts.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The types of the next frames of its watch. */
async function frameTypes({ watch }: CloudListing, count: number): Promise<string[]> {
  const types: string[] = []
  while (types.length < count) {
    const { value } = (await watch?.frames.next()) ?? {}
    for (const { type } of (value ?? []) as readonly { type: string }[]) types.push(type)
  }
  return types
}

/** A source that remembers its pages. */
class WatchedSource extends Source {
  readonly pages: ListPage[] = []

  override async page(...asked: Parameters<Source['page']>): Promise<ListPage> {
    const page = await super.page(...asked)
    this.pages.push(page)
    return page
  }
}

/** Does something once, just before the server answers a request of this kind for the nth time. */
function before(server: ApiServer, what: ServerRequest['what'], nth: number, act: () => void): void {
  let left = nth
  server.fault = (request) => {
    if (request.what === what && --left === 0) act()
    return undefined
  }
}

test('what is kept of a large page is whole, and the page itself takes no memory any longer', async () => {
  const server = new ApiServer()
  server.pageMax = 30
  const value = 'v'.repeat(10_000)
  for (let i = 0; i < 31; i++) server.put('pods', `a/k${i}`, { value: `${i} ${value}` })
  const source = new WatchedSource({ upstream: server, clock: server.clock, scope: scopeOf({}) })
  using listing = await read(server, { source })
  const [large, small] = source.pages
  assert.deepEqual([large?.items.length, large?.items[0]?.buffer.byteLength], [30, 0])
  assert.equal(small?.items[0]?.length, small && server.get('pods', 'a/k9')?.text.length)
  const texts = [...contents(server, listing)]
  assert.equal(texts.length, 31)
  for (const [key, text] of texts) assert.ok(text.includes(`"${key.slice('a/k'.length)} ${value}"`))
})

test('[A5] a list in pages at one version, with the watch open before the second page', async () => {
  const server = filled(7, 3)
  before(server, 'page', 1, () => {
    assert.equal(server.watches.size, 1)
    server.put('pods', 'a/k6', { value: 'second' })
    server.put('pods', 'a/new')
  })
  using listing = await read(server)
  assert.deepEqual([listing.version, listing.listKind, listing.objects.size], [8, 'PodList', 7])
  assert.ok([...contents(server, listing).values()].every((text) => text.includes('first')))
  assert.deepEqual(
    server.requests.map((one) => one.what),
    ['list', 'watch', 'page', 'page'],
  )
  assert.deepEqual(await frameTypes(listing, 2), ['MODIFIED', 'ADDED'])
  listing.watch?.close()
  assert.equal(server.watches.size, 0)
})

test('a list that fits into one page opens no watch', async () => {
  const server = filled(3, 3)
  using listing = await read(server)
  assert.equal(listing.watch, undefined)
  assert.equal(server.count('watch'), 0)
})

test('[A5] what the copy holds with the same uid and version is only named', async () => {
  const server = filled(3, 9)
  const { uid, version } = server.get('pods', 'a/k1') ?? assert.fail()
  const named = async (held: { uid: string; version: number }) => {
    using listing = await read(server, { standing: (key) => (key === 'a/k1' ? held : undefined) })
    return [...listing.objects.values()].map((one) => one === 'same')
  }
  assert.deepEqual(await named({ uid, version }), [false, true, false])
  assert.deepEqual(await named({ uid, version: version + 1 }), [false, false, false])
  assert.deepEqual(await named({ uid: 'another', version }), [false, false, false])
})

test('[D5] of what is held for others in these very bytes nothing is kept twice', async () => {
  const server = filled(3, 9)
  const listed = await read(server)
  const itemOf = (key: string) => listed.objects.get(key) as Item
  const { bytes, version } = itemOf('a/k1')
  const other = Buffer.from(bytes.toString().replace('first', 'fir5t'))
  for (const held of [itemOf('a/k1'), makeItem(other, version, known().plan)]) {
    const asked: string[] = []
    using listing = await read(server, {
      known: (key, at) => {
        asked.push(`${key} ${at}`)
        return key === 'a/k1' ? held : undefined
      },
    })
    assert.deepEqual(
      asked,
      [...listing.objects.keys()].map((key) => `${key} ${itemOf(key).version}`),
    )
    assert.equal(listing.objects.get('a/k1') === held, held.bytes === bytes)
    assert.deepEqual(contents(server, listing), contents(server, listed))
  }
})

test('a page that breaks off is asked for again, from where it broke off', async () => {
  const server = filled(9, 3)
  let broken = 0
  server.fault = ({ what }) => {
    if (what !== 'page' || ++broken > 3) return undefined
    if (broken === 1) return { kind: 'cut', after: 40 }
    return broken === 2 ? { kind: 'refuse' } : { kind: 'status', code: 502 }
  }
  using listing = await read(server)
  assert.equal(listing.objects.size, 9)
  assert.deepEqual([server.count('list'), server.count('page')], [1, 5])
})

test('a cut connection takes page and watch: the pages go on all the same, and a watch from the same version', async () => {
  const server = filled(9, 3)
  before(server, 'page', 2, () => {
    server.put('pods', 'a/k0', { value: 'second' })
    server.cutWatches()
  })
  using listing = await read(server)
  assert.deepEqual([listing.version, listing.objects.size, server.count('list')], [10, 9, 1])
  const other = filled(9, 3)
  let cut = false
  other.fault = ({ what }) => {
    if (what !== 'page' || cut) return undefined
    cut = true
    other.put('pods', 'a/k0', { value: 'second' })
    other.cutWatches()
    return { kind: 'cut', after: 10 }
  }
  const again = await read(other)
  assert.deepEqual([again.version, again.objects.size, other.count('list'), other.count('watch')], [10, 9, 1, 2])
  assert.deepEqual(await frameTypes(again, 1), ['MODIFIED'])
})

test('pages are not asked for for ever', async () => {
  const server = filled(4, 3)
  server.fault = ({ what }) => (what === 'page' ? { kind: 'refuse' } : undefined)
  await assert.rejects(read(server), Unreachable)
  assert.equal(server.count('page'), 8)
  assert.equal(server.watches.size, 0, 'its watch is given back')
})

test('an expired token is followed by the inconsistent one, and the watch makes one version of it', async () => {
  const server = filled(9, 3)
  before(server, 'page', 2, () => {
    server.put('pods', 'a/k0', { value: 'second' })
    server.remove('pods', 'a/k1')
    server.remove('pods', 'a/k7')
    server.put('pods', 'a/k8', { value: 'second' })
    server.compact()
  })
  using listing = await read(server)
  assert.equal(server.count('list'), 1)
  assert.equal(listing.version, server.version)
  assert.deepEqual(contents(server, listing), server.listed('pods'))
})

test('what happened after the newest listed object stays with the watch', async () => {
  const server = filled(9, 3)
  before(server, 'page', 2, () => {
    server.remove('pods', 'a/k8')
    server.remove('pods', 'a/k0')
    server.compact()
  })
  using listing = await read(server)
  // Nothing listed is newer than the first page: at its version k0 was there, and its deletion comes next.
  assert.deepEqual([listing.version, listing.objects.has('a/k0'), listing.objects.has('a/k8')], [10, true, false])
  assert.deepEqual(await frameTypes(listing, 2), ['DELETED', 'DELETED'])
})

test('an inconsistent rest without a living watch is of no use: the list is given up', async () => {
  const server = filled(9, 3)
  before(server, 'page', 2, () => {
    server.put('pods', 'a/k0', { value: 'second' })
    server.compact()
    server.endWatches()
  })
  await assert.rejects(read(server), Busy)
  assert.equal(server.watches.size, 0)
})

test('the version of a list can be a certain one; what is too old or ahead is told apart', async () => {
  const server = filled(5, 2)
  server.put('pods', 'a/k0', { value: 'second' })
  using listing = await read(server, { exactly: 4 })
  assert.deepEqual([listing.version, listing.objects.size], [4, 3])
  await assert.rejects(read(server, { exactly: 99 }), Ahead)
  server.compact()
  await assert.rejects(read(server, { exactly: 4 }), Expired)
})

test('too many objects, or too many bytes, are not read to their end', async () => {
  const server = filled(9, 2)
  const wish = { fields: 'metadata.name!=k99' } // of what is selected it is not told how many follow
  await assert.rejects(read(server, { wish, limits: { objects: 5, bytes: 1 << 20 } }), TooLarge)
  assert.equal(server.count('page'), 2)
  assert.equal(server.watches.size, 0)
  await assert.rejects(read(server, { limits: { objects: 99, bytes: 200 } }), TooLarge)
})

test('whether a list that did not fit fits by now is seen by its first page; its objects are measured again each day', async () => {
  const server = filled(9, 2)
  const measured = { objectBytes: 0, atMs: Number.NEGATIVE_INFINITY }
  /** What became of it, and how many pages were read behind the first. */
  const pages = async (limits: ListingLimits) => {
    const before = server.count('page')
    const outcome = await read(server, { limits, measured }).then(
      ({ objects }) => objects.size,
      (error: Error) => (error instanceof TooLarge ? (error.foreseen ? 'foreseen' : 'read') : error),
    )
    return [outcome, server.count('page') - before]
  }
  const bytes = Buffer.byteLength(server.get('pods', 'a/k0')?.text ?? '')
  const small = { objects: 99, bytes: Math.round(6.5 * bytes) }
  assert.deepEqual(await pages({ objects: 5, bytes: 1 << 20 }), ['foreseen', 0])
  assert.deepEqual(await pages(small), ['read', 3])
  assert.deepEqual(await pages(small), ['foreseen', 0])
  assert.deepEqual(await pages({ objects: 99, bytes: 8 * bytes }), ['foreseen', 0])
  server.clock.advance(86_400_000)
  assert.deepEqual(await pages(small), ['read', 3])
  assert.deepEqual(await pages({ objects: 99, bytes: 10 * bytes }), [9, 4])
  for (let i = 0; i < 4; i++) server.remove('pods', `a/k${i}`)
  assert.deepEqual(await pages(small), [5, 2])
})

test('a refusal is a refusal, with its code', async () => {
  for (const code of [401, 403, 404]) {
    const server = filled(1, 5)
    server.fault = () => ({ kind: 'status', code })
    await assert.rejects(read(server), (error: unknown) => error instanceof Refused && error.code === code)
  }
})

test('lists are asked for packed, watches are not; nothing is asked for at version 0', async () => {
  const server = filled(5, 2)
  const asked: string[] = []
  const packing: Upstream & { clock: ApiServer['clock'] } = Object.assign(Object.create(server), {
    ask: async (one: Parameters<Upstream['ask']>[0]) => {
      asked.push(`${one.headers?.['accept-encoding']} ${one.path}`)
      const answer = await server.ask(one)
      if (one.path.includes('watch=')) return answer
      const chunks: Buffer[] = []
      for await (const chunk of answer.body) chunks.push(chunk)
      const body = [gzipSync(Buffer.concat(chunks))].values() as unknown as typeof answer.body
      const headers = { ...answer.headers, 'content-encoding': 'gzip' }
      return { ...answer, headers, body: Object.assign(body, { [Symbol.asyncIterator]: () => body }) }
    },
  })
  using listing = await read(packing)
  assert.equal(listing.objects.size, 5)
  for (const one of asked) {
    assert.equal(one.startsWith(one.includes('watch=') ? 'identity' : 'gzip'), true, one)
    assert.ok(!/resourceVersion=0(&|$)/.test(one), one)
  }
})

test('an object scanned once, as it came, is the same as its kept form scanned', () => {
  const plan = planFields(['spec.nodeName', 'metadata.name'])
  const inside = '"metadata":{"uid":"u1","labels":{"app":"x"},"name":"n","namespace":"a","resourceVersion":"17"}'
  const rest = `${inside},"spec":{"nodeName":"node-1"}`
  const spellings = [
    `{${rest}}`,
    `{"kind":"Pod","apiVersion":"v1",${rest}}`,
    `{"apiVersion":"v1",${rest}}`,
    `{ "kind": "Pod" , ${rest}}`,
    `{ ${rest} }`,
    `{${rest},"kind":"Pod"}`,
    '{"kind":"Pod","metadata":{"name":"n"}}',
    '{"kind":"Pod"}',
  ]
  for (const text of spellings) {
    for (const custom of [false, true]) {
      const object = Buffer.from(text)
      const item = listItemOf(object, scanObject(object, plan), { custom, version: 17 })
      const expected = makeItem(listItemForm(object, custom), 17, plan)
      assert.deepEqual(
        { ...item, uid: item.uid },
        { ...expected, uid: uidAt(object, scanObject(object).uidStart) },
        `${text} ${custom}`,
      )
    }
  }
})
