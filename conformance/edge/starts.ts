/**
 * Where a copy begins and where it widens, events flow already: a WATCH that comes first with a version, a wide watch beside
 * a narrow one, and many watches that cost the API server one.
 */
import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { Client, Watch } from '../../test/process.ts'
import { ask } from '../oracle.ts'
import { type Edge, type Site, watchesUpstream } from '../site.ts'

const settledMsMax = 30_000
/** Long enough that whatever was to come has come. */
const silenceMs = 1_500
const writesWhileWidening = 400
const nodes = 3
const informers = 20

export type Meta = { readonly name: string; readonly uid: string; readonly resourceVersion: string }
export type Frame = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: { readonly code?: number; readonly metadata: Meta }
}
type Versioned = { readonly metadata: Meta }
type Listed = Versioned & { readonly items: readonly Versioned[] }

function directTo({ oracle }: Site): Client {
  return new Client({ url: oracle.url, credentials: oracle })
}

function framesOf(watch: Watch): readonly Frame[] {
  return watch.frames as unknown as readonly Frame[]
}

/** One line for each event, as an API server and an edge must agree on it. */
function spelled(frames: readonly Frame[]): string[] {
  return frames
    .filter(({ type }) => type !== 'BOOKMARK')
    .map(({ type, object: { metadata } }) => `${type} ${metadata.name} ${metadata.resourceVersion}`)
}

async function makeSpace(client: Client, name: string): Promise<string> {
  await client.json('POST', '/api/v1/namespaces', { metadata: { name } })
  return `/api/v1/namespaces/${name}/configmaps`
}

async function makeMaps(client: Client, path: string, names: readonly string[]): Promise<string[]> {
  const versions: string[] = []
  for (const name of names) {
    const { metadata } = await client.json<Versioned>('POST', path, { metadata: { name } })
    versions.push(metadata.resourceVersion)
  }
  return versions
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix}-${at}`)
}

/** A WATCH that comes first with version n: synced at exactly n, or 410 and synced, or silent until n is passed. */
export async function exact(site: Site, edge: Edge): Promise<string> {
  const direct = directTo(site)
  const client = edge.client()
  const open = (path: string, version: number | string) =>
    new Watch(client, `${path}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`)
  try {
    const here = await makeSpace(direct, 'exact-here')
    await makeMaps(direct, here, numbered('before', 10))
    const from = (await direct.json<Listed>('GET', here)).metadata.resourceVersion
    await makeMaps(direct, here, numbered('after', 10))
    await direct.json('DELETE', `${here}/before-3`)
    if (site.hubs.length > 0) {
      // A hub's history begins with the first edge that asks: what was before that it cannot tell.
      await refusedWith410(client, `${here}?watch=1&resourceVersion=${from}`)
    } else {
      const truth = new Watch(direct, `${here}?watch=1&resourceVersion=${from}`)
      const seen = open(here, from)
      await truth.until((frames) => frames.length === 11)
      await seen.until((frames) => frames.length >= 11)
      assert.deepEqual(spelled(framesOf(seen)), spelled(framesOf(truth)), 'a watch from an exact version')
    }

    const ahead = await makeSpace(direct, 'exact-ahead')
    const now = Number((await direct.json<Listed>('GET', ahead)).metadata.resourceVersion)
    const future = open(ahead, now + 15)
    const versions = await makeMaps(direct, ahead, numbered('map', 10))
    assert.ok(Number(versions.at(-1)) <= now + 15, 'others wrote so much that the future is over')
    await pause(silenceMs)
    assert.deepEqual(spelled(framesOf(future)), [], 'a watch from the future is silent')
    const later = (await makeMaps(direct, ahead, numbered('later', 20))).map(Number).filter((one) => one > now + 15)
    await future.until((frames) => frames.filter(({ type }) => type !== 'BOOKMARK').length >= later.length)
    const heard = framesOf(future).filter(({ type }) => type !== 'BOOKMARK')
    assert.deepEqual(
      heard.map(({ object }) => Number(object.metadata.resourceVersion)),
      later,
    )

    const gone = await makeSpace(direct, 'exact-gone')
    const old = (await direct.json<Listed>('GET', gone)).metadata.resourceVersion
    await makeMaps(direct, gone, numbered('map', 5))
    direct.close()
    await site.oracle.expire()
    await reachable(site, edge)
    const told = await refusedWith410(client, `${gone}?watch=1&resourceVersion=${old}`)
    const relist = await client.json<Listed>('GET', `${gone}?resourceVersion=0`)
    assert.equal(relist.items.length, 5, 'the relist finds a synced interest')
    const begun = site.hubs.length > 0 ? '410' : '11 events'
    return `${begun} from an exact version, 410 (${told}) and a full relist, silent up to ${now + 15} and ${later.length} events after it`
  } finally {
    client.close()
    direct.close()
  }
}

async function reachable(site: Site, edge: Edge): Promise<void> {
  const reaches = async () => (await edge.status()).upstream.state === 'reachable'
  const waiting = { withinMs: settledMsMax, everyMs: 100, signal: site.signal }
  await until(reaches, 'the edge reaches its API server', waiting)
}

/** As an ERROR event or as the answer itself: clients take both. */
async function refusedWith410(client: Client, path: string): Promise<string> {
  const watch = new Watch(client, path)
  const status = await new Promise<number>((resolve) =>
    watch.stream.once('response', (headers) => resolve(Number(headers[':status']))),
  )
  if (status === 410) return 'as a status'
  await watch.until((frames) => frames.length > 0)
  const [frame] = framesOf(watch)
  assert.deepEqual([frame?.type, frame?.object.code], ['ERROR', 410])
  return 'as an ERROR event'
}

/** However many watch a resource, and in however many ways, the API server has one watch and was listed once. */
export async function twenty(site: Site, edge: Edge): Promise<string> {
  const before = (await watchesUpstream(site.oracle)).get('endpoints') ?? 0
  const listsBefore = await listsUpstream(site, 'endpoints')
  const clients = Array.from({ length: informers }, () => edge.client())
  try {
    const watches = await Promise.all(
      clients.map(async (client, at) => {
        const path = '/api/v1/endpoints'
        if (at % 2 === 0) {
          const ways = 'sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan'
          const watch = new Watch(client, `${path}?watch=1&${ways}`)
          await watch.until((frames) => frames.some(({ type }) => type === 'BOOKMARK'))
          return watch
        }
        const { metadata } = await client.json<Listed>('GET', `${path}?resourceVersion=0`)
        const watch = new Watch(client, `${path}?watch=1&resourceVersion=${metadata.resourceVersion}`)
        await watch.opened()
        return watch
      }),
    )
    const made = await ask(site.oracle, '/api/v1/namespaces/default/endpoints', {
      method: 'POST',
      body: { metadata: { name: 'twenty' } },
    })
    assert.equal(made.status, 201)
    const isThere = (frames: readonly { object: { metadata: { name: string } } }[]) =>
      frames.some(({ object }) => object.metadata.name === 'twenty')
    await Promise.all(watches.map((watch) => watch.until(isThere)))
    const cost = ((await watchesUpstream(site.oracle)).get('endpoints') ?? 0) - before
    const lists = (await listsUpstream(site, 'endpoints')) - listsBefore
    assert.equal(cost, 1, 'watches upstream')
    assert.ok(lists <= 1, `${lists} lists upstream`)
    return `${informers} watches, half of them WatchLists, cost ${cost} watch and ${lists} list upstream`
  } finally {
    for (const client of clients) client.close()
  }
}

async function listsUpstream({ oracle }: Site, resource: string): Promise<number> {
  const { body } = await ask(oracle, '/metrics')
  let sum = 0
  for (const [, labels, count] of body.matchAll(/^apiserver_request_total\{([^}]*)\} (\S+)$/gm)) {
    if (labels?.includes('verb="LIST"') && labels.includes(`resource="${resource}"`)) sum += Number(count)
  }
  return sum
}

/** A narrow watch is open, then a wide one begins, while pods come, change and go: neither loses or doubles an event. */
export async function widening(site: Site, edge: Edge): Promise<string> {
  const direct = directTo(site)
  const [one, two] = [edge.client(), edge.client()]
  const before = (await watchesUpstream(site.oracle)).get('pods') ?? 0
  await makeSpace(direct, 'widening')
  await direct.json('POST', '/api/v1/namespaces/widening/serviceaccounts', { metadata: { name: 'default' } })
  const mine = 'fieldSelector=spec.nodeName%3Dnode-0'
  try {
    const listed = await one.json<Listed>('GET', `/api/v1/pods?resourceVersion=0&${mine}`)
    const from = listed.metadata.resourceVersion
    const narrow = new Watch(one, `/api/v1/pods?watch=1&resourceVersion=${from}&${mine}`)
    const narrowTruth = new Watch(direct, `/api/v1/pods?watch=1&resourceVersion=${from}&${mine}`)
    let wide: Watch | undefined
    let wideTruth: Watch | undefined
    const widen = async () => {
      const { metadata } = await two.json<Listed>('GET', '/api/v1/pods?resourceVersion=0')
      const query = `watch=1&resourceVersion=${metadata.resourceVersion}`
      wide = new Watch(two, `/api/v1/pods?${query}`)
      wideTruth = new Watch(direct, `/api/v1/pods?${query}`)
    }
    let widened: Promise<void> | undefined
    for (let count = 0; count < writesWhileWidening; count++) {
      if (count === writesWhileWidening / 4) widened = widen()
      await writePod(direct, count)
    }
    await widened
    await makePod(direct, 'last', 0)
    const isLast = (frames: readonly { object: { metadata: { name: string } } }[]) =>
      frames.some(({ object }) => object.metadata.name === 'last')
    const all = [narrow, narrowTruth, wide, wideTruth] as readonly Watch[]
    await Promise.all(all.map((watch) => watch.until(isLast, settledMsMax)))
    const [narrowSeen, narrowTrue, wideSeen, wideTrue] = all.map((watch) => spelled(framesOf(watch)))
    assert.deepEqual(wideSeen, wideTrue, 'the wide watch')
    assert.deepEqual(narrowSeen, narrowTrue, 'the narrow watch')
    let upstream = 0
    const isOne = async () => {
      upstream = ((await watchesUpstream(site.oracle)).get('pods') ?? 0) - before - 2
      return upstream === 1
    }
    const waiting = { withinMs: settledMsMax, everyMs: 100, signal: site.signal }
    await until(isOne, 'one upstream watch of pods', waiting).catch((error: Error) => {
      throw new Error(`${error.message}: there are ${upstream}`)
    })
    const states = (await edge.status()).interests
      .filter(({ resource }) => resource === 'pods')
      .map(({ state }) => state)
    assert.deepEqual(states.toSorted(), ['fed', 'synced'])
    return `${narrowSeen?.length} events on the narrow watch and ${wideSeen?.length} on the wide one, each as from the API server; ${upstream} watch upstream`
  } finally {
    for (const client of [one, two, direct]) client.close()
  }
}

/** Each third write makes a pod, the next changes it, the last deletes an earlier one. */
async function writePod(direct: Client, count: number): Promise<void> {
  const number = Math.floor(count / 3)
  const path = '/api/v1/namespaces/widening/pods'
  if (count % 3 === 0) await makePod(direct, `pod-${number}`, number % nodes)
  else if (count % 3 === 1) {
    const pod = await direct.json<Versioned & { metadata: { labels?: object } }>('GET', `${path}/pod-${number}`)
    const metadata = { ...pod.metadata, labels: { count: String(count) } }
    await direct.json('PUT', `${path}/pod-${number}`, { ...pod, metadata })
  } else if (number >= 10) {
    await direct.json('DELETE', `${path}/pod-${number - 10}?gracePeriodSeconds=0`)
  }
}

async function makePod(direct: Client, name: string, node: number): Promise<void> {
  const containers = [{ name: 'main', image: 'registry.example/image:1' }]
  const spec = { nodeName: `node-${node}`, terminationGracePeriodSeconds: 0, containers }
  await direct.json('POST', '/api/v1/namespaces/widening/pods', { metadata: { name }, spec })
}
