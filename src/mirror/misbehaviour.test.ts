/** An API server that answers, and answers wrongly: how often it is asked again, counted over simulated minutes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer, type Fault, type ServerRequest } from './apiserver.test-support.ts'
import { MirrorWorld } from './world.test-support.ts'

/** In any minute for one interest: the first few retries come quickly, and each may be a look, a list and a watch. */
const requestsPerMinuteMax = 40
const minutes = 8

const pod = (metadata: string) => `"apiVersion":"v1","metadata":${metadata}`
const frame = (type: string, object: string) => `{"type":"${type}","object":${object}}\n`
const named = '{"name":"x","namespace":"a","uid":"u9","resourceVersion":"999"}'
const bookmark = (version: number) =>
  frame('BOOKMARK', `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"${version}"}}`)
const failed = (code: number) =>
  frame('ERROR', JSON.stringify({ kind: 'Status', code, message: `the test says ${code}` }))

type Behaviour = (request: ServerRequest, server: ApiServer) => Fault | undefined

const watches =
  (text: string | ((server: ApiServer) => string), open = false): Behaviour =>
  ({ what }, server) => {
    if (what !== 'watch') return undefined
    return { kind: 'text', text: typeof text === 'string' ? text : text(server), open }
  }

/** Something happens in the cluster each time an edge watches. */
const changed = (server: ApiServer) => {
  server.put('pods', 'a/x')
  return frame('MODIFIED', `{"kind":"Pod","apiVersion":"v1",${server.get('pods', 'a/x')?.text.slice(1)}`)
}

const behaviours: Record<string, Behaviour> = {
  'a watch that ends at once': watches(''),
  'a watch that sends one bookmark and ends': watches((server) => bookmark(server.put('configmaps', 'a/x'))),
  'a watch that sends one event each time and ends': watches(changed),
  'an event of another kind': watches(frame('ADDED', `{"kind":"ConfigMap",${pod(named)}}`), true),
  'an event of another version of its kind': watches(
    frame('ADDED', `{"kind":"Pod","apiVersion":"v2","metadata":${named}}`),
    true,
  ),
  'a good event before one of another kind, each time': watches(
    (server) => changed(server) + frame('ADDED', `{"kind":"ConfigMap",${pod(named)}}`),
    true,
  ),
  'an event without metadata': watches(frame('ADDED', '{"kind":"Pod","apiVersion":"v1"}'), true),
  'an event without a version': watches(frame('ADDED', `{"kind":"Pod",${pod('{"name":"x","namespace":"a"}')}}`), true),
  'an event of a version no number holds': watches(
    frame('ADDED', `{"kind":"Pod",${pod(named.replace('999', '9'.repeat(20)))}}`),
    true,
  ),
  'a frame that is not JSON': watches('<html>\n', true),
  'a line without end': watches('x'.repeat(17 * 1024 * 1024), true),
  'a frame that is cut': watches('{"type":"ADD'),
  'every watch is refused as too old': ({ what }) => (what === 'watch' ? { kind: 'status', code: 410 } : undefined),
  'every watch says that it is too old': watches(failed(410), true),
  'every watch is cut off': ({ what }) => (what === 'watch' ? { kind: 'refuse' } : undefined),
  'Retry-After as a date': () => ({ kind: 'status', code: 503, retryAfter: 'Fri, 31 Dec 9999 23:59:59 GMT' }),
  'Retry-After as a date that is past': () => ({
    kind: 'status',
    code: 429,
    retryAfter: 'Sun, 06 Nov 1994 08:49:37 GMT',
  }),
  'Retry-After longer than a timer can hold': () => ({ kind: 'status', code: 429, retryAfter: 1e12 }),
  'Retry-After below zero': () => ({ kind: 'status', code: 429, retryAfter: -1e12 }),
  'Retry-After that is no number': () => ({ kind: 'status', code: 429, retryAfter: 'soon' }),
  'lists that are no lists': ({ what }) => (what === 'watch' ? { kind: 'refuse' } : { kind: 'text', text: 'null' }),
  'a look that is cut': ({ what }) => (what === 'watch' ? { kind: 'refuse' } : { kind: 'cut', after: 10 }),
}
for (const code of [400, 401, 403, 404, 405, 429, 500, 503, Number.NaN]) {
  behaviours[`every watch says ${code}`] = watches(failed(code), true)
}

/** How many requests came in each minute. */
async function counted(world: MirrorWorld): Promise<number[]> {
  const counts: number[] = []
  for (let minute = 0; minute < minutes; minute++) {
    const before = world.server.requests.length
    // In small steps: whatever is set to come at once comes at once.
    await world.pass(60_000, 240)
    counts.push(world.server.requests.length - before)
  }
  return counts
}

for (const [name, behaviour] of Object.entries(behaviours)) {
  const request = { what: 'list', resource: 'pods', path: '', query: new URLSearchParams() } as const
  const spoilsLists = behaviour(request, new ApiServer()) !== undefined
  for (const first of spoilsLists ? [false, true] : [false]) {
    test(`[L4] ${name}, ${first ? 'before' : 'after'} the first sync: asked again with growing pauses`, async () => {
      const server = new ApiServer({ random: (below) => below - 1 })
      server.put('pods', 'a/k0')
      await using world = await MirrorWorld.open({ server })
      const misbehave = () => {
        server.fault = (request) => {
          // A loop that waits for nothing would never let the test say so.
          if (server.requests.length > 5_000) server.reachability.set('unreachable')
          return behaviour(request, server)
        }
      }
      if (first) misbehave()
      const mirrored = world.begin({})
      if (!first) {
        await world.until(() => mirrored?.state.kind === 'synced')
        misbehave()
        server.cutWatches()
      }
      const counts = await counted(world)
      const shown = `${name}: ${counts.join(' ')} requests`
      assert.ok(Math.max(...counts) <= requestsPerMinuteMax, shown)
      // It goes on trying, and nothing of what was synced is lost.
      assert.ok(
        counts.slice(-6).some((count) => count > 0),
        shown,
      )
      if (!first) assert.ok(mirrored?.cache?.get('a/k0') !== undefined)
      // And once the API server is itself again, so is the copy.
      server.fault = () => undefined
      server.put('pods', 'a/k1')
      await world.until(() => mirrored?.cache?.get('a/k1') !== undefined, 900)
    })
  }
}

const page = (continueToken: string, items = '') =>
  `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"${continueToken}"},"items":[${items}]}`

for (const [name, items] of [
  ['empty pages', ''],
  ['the same page again and again', `{"metadata":${named.replace('999', '5')}}`],
] as const) {
  test(`[L4] a list of ${name} without an end is given up, and asked for ever more rarely`, async () => {
    const server = new ApiServer({ random: (below) => below - 1 })
    await using world = await MirrorWorld.open({ server })
    let pages = 0
    server.fault = ({ what }) => {
      if (pages > 5_000) server.reachability.set('unreachable')
      return what === 'watch' ? undefined : { kind: 'text', text: page(`t${pages++}`, items) }
    }
    const mirrored = world.begin({})
    const counts = await counted(world)
    assert.ok(Math.max(...counts) < 150 && (counts.at(-1) as number) <= 40, `${counts.join(' ')} requests`)
    assert.match(JSON.stringify(mirrored?.state), /pages bring nothing new/)
    assert.equal(mirrored?.cache, undefined)
  })
}

test('[L4] a relist that grows without an end is given up, and what was mirrored stays', async () => {
  const server = new ApiServer({ random: (below) => below - 1 })
  server.put('pods', 'a/k0')
  await using world = await MirrorWorld.open({ server, limits: { objects: 10, bytes: 1 << 20 } })
  const mirrored = world.begin({})
  await world.until(() => mirrored?.state.kind === 'synced')
  let pages = 0
  server.fault = ({ what }) => {
    if (what === 'watch') return undefined
    if (pages > 5_000) return { kind: 'status', code: 500 }
    if (what === 'probe') return { kind: 'text', text: page('') }
    const named = (at: number) => `{"metadata":{"name":"x${at}","namespace":"a","uid":"u${at}","resourceVersion":"5"}}`
    return { kind: 'text', text: page(`t${pages}`, named(pages++)) }
  }
  server.compact(server.put('configmaps', 'a/x'))
  server.cutWatches()
  await world.until(() => mirrored?.state.kind === 'tooLarge')
  assert.ok(pages < 60, `${pages} pages`)
  assert.deepEqual(
    [...(mirrored?.cache?.all() ?? [])].map(({ key }) => key),
    ['a/k0'],
  )
  assert.equal(world.place('list', {}).kind, 'local')
  server.fault = () => undefined
  server.put('pods', 'a/k1')
  await world.until(() => mirrored?.cache?.size === 2, 700)
})
