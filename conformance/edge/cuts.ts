/**
 * Watches at an edge that are cut anywhere and begin anywhere. A difference of 200 objects that the edge had to find by
 * listing again is cut after every event, and after every two, from versions before it, inside it and after it: a client that
 * resumes ends with exactly what the API server has, or is told to list again where it knows more than the edge ever did. And no gap where a copy begins or widens (edgestarts.ts).
 */
import { readFileSync } from 'node:fs'
import { until } from '../../src/base/until.test-support.ts'
import { Client, Watch } from '../../test/process.ts'
import { chooseSeed, type Edge, type Random, type Site, seeded, startSite } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { exact, type Frame, type Meta, twenty, widening } from './starts.ts'

const space = 'cuts'
const collection = `/api/v1/namespaces/${space}/configmaps`
/** A quarter each is deleted, deleted and made again, and changed; the last one stays. As many are added. */
const quarter = 50
const caughtUpMsMax = 60_000
/** The last event of all: who has seen it has seen everything before. */
const sentinel = 'zz-sentinel'

type Listed = { readonly metadata: Meta; readonly items: readonly { readonly metadata: Meta }[] }

/** What a client holds: by name, the uid and version. */
type Held = ReadonlyMap<string, string>
/** One that was listed elsewhere may have to list again: what came and went while the edge was cut off it alone has seen. */
type Start = { readonly name: string; readonly version: string; readonly held: Held; readonly isElsewhere: boolean }

export const step: Step = { name: 'edge-cuts', tier: 'default', minutes: 3, run: (context) => run(context, 0) }

/** The same through a hub, which is killed while the line is cut, so that it can replay nothing: contents are compared. */
export const hubStep: Step = { name: 'hub-cuts', tier: 'all', minutes: 4, run: (context) => run(context, 1) }

async function run(context: StepContext, hubs: number): Promise<StepResult> {
  const seed = chooseSeed({ all: context.all, gate: 20_262 })
  context.progress(`AKE_SEED=${seed}`)
  const site = await startSite({ dir: context.dir, signal: context.signal, progress: context.progress, hubs })
  const notes: string[] = []
  let passed = 0
  let failed = 0
  try {
    const edge = await site.edge('edge', ['--log-level', 'debug'])
    const parts = {
      exact: () => exact(site, edge),
      twenty: () => twenty(site, edge),
      widening: () => widening(site, edge),
      difference: () => difference(site, edge, seeded(seed), context.progress),
    }
    for (const [name, part] of Object.entries(parts)) {
      // Of what changes twice within a moment a link tells the last state alone (L1): which events there are is no question then.
      if (!context.only(name) || (hubs > 0 && name === 'widening')) continue
      try {
        const note = await part()
        context.progress(`${name}: ${note}`)
        notes.push(`${name}: ${note}`)
        passed++
      } catch (error) {
        failed++
        notes.push(`${name}: ${error instanceof Error ? error.stack : String(error)}`, `AKE_SEED=${seed} repeats it`)
      }
    }
    return { passed, failed, notes }
  } finally {
    await site.stop()
  }
}

async function difference(site: Site, edge: Edge, random: Random, progress: (line: string) => void): Promise<string> {
  const { oracle } = site
  let direct = new Client({ url: oracle.url, credentials: oracle })
  await direct.json('POST', '/api/v1/namespaces', { metadata: { name: space } })
  for (let at = 0; at < 4 * quarter; at++) await direct.json('POST', collection, { metadata: { name: named(at) } })
  const starts: Start[] = []
  const note = async (name: string, client: Client, query = '?resourceVersion=0') => {
    const listed = await client.json<Listed>('GET', `${collection}${query}`)
    const isElsewhere = client === direct
    starts.push({ name, version: listed.metadata.resourceVersion, held: heldOf(listed), isElsewhere })
  }
  const before = edge.client()
  await note('from the first list', before)
  for (let at = 0; at < quarter; at += 5) await change(direct, named(at), 'early')
  await caughtUp(site, edge, direct)
  await note('from the middle of the history', before)
  for (let at = 2; at < quarter; at += 5) await change(direct, named(at), 'late')
  await caughtUp(site, edge, direct)
  await note('from the last version before the cut', before)
  const first = starts[0] as Start
  const live = {
    'an open watch': new Watch(before, watchPath(first.version, false)),
    'an open watch with bookmarks': new Watch(before, watchPath(first.version, true)),
  }

  await site.link.set('refuse')
  const deeds = random.shuffled(deedsOf())
  for (const [at, deed] of deeds.entries()) {
    if (at === Math.floor(deeds.length / 3)) await note('from a version inside of what was missed', direct, '')
    await deed(direct)
  }
  await note('from a version that the edge reaches later', direct, '')
  await oracle.expire()
  for (const hub of site.hubs) await hub.restart('kill')
  direct.close()
  direct = new Client({ url: oracle.url, credentials: oracle })
  await site.link.set('up')
  await caughtUp(site, edge, direct)
  if (!(await hadToCompare(site, starts))) throw new Error('the edge did not have to list again: nothing was proved')
  const { metadata: last } = await direct.json<Listed>('POST', collection, { metadata: { name: sentinel } })
  await caughtUp(site, edge, direct)
  const truth = heldOf(await direct.json<Listed>('GET', collection))

  let cuts = 0
  let relists = 0
  for (const life of ['as found', 'after kill -9']) {
    if (life !== 'as found') await edge.restart('kill')
    const client = edge.client()
    const streams = new Streams(client, last.resourceVersion)
    for (const start of starts) {
      for (const bookmarks of [false, true]) {
        const whole = await streams.from(start.version, bookmarks)
        if (start.isElsewhere && isExpired(whole)) {
          relists++
          continue
        }
        cuts += await cutEverywhere({ start, whole, bookmarks, streams, truth, name: `${start.name}, ${life}` })
      }
    }
    for (const [name, watch] of life === 'as found' ? Object.entries(live) : []) {
      await watch.until(endsWithSentinel)
      const whole = upToSentinel(watch.frames as unknown as Frame[])
      const bookmarks = name.includes('bookmarks')
      cuts += await cutEverywhere({ start: first, whole, bookmarks, streams, truth, name })
    }
    progress(`${life}: ${cuts} cuts so far, ${streams.opened} different resumed streams`)
    client.close()
  }
  before.close()
  direct.close()
  return `${cuts} cuts of ${starts.length} starting versions and ${Object.keys(live).length} open watches: each ends with the API server's ${truth.size} objects; ${relists} watches from lists of the API server itself had to list again`
}

/** What the edge missed was told to it neither by an API server nor by a hub that remembers it. */
async function hadToCompare({ dir, hubs }: Site, starts: readonly Start[]): Promise<boolean> {
  if (hubs.length === 0) return /mirror\.expired/.test(readFileSync(`${dir}/edge.log`, 'utf8'))
  const last = Number(starts.find(({ isElsewhere }) => isElsewhere)?.version)
  const [hub] = hubs
  const status = await hub?.status<{ resources: readonly { name: string; historyFrom: number }[] }>()
  const its = status?.resources.filter(({ name }) => /configmaps/.test(name)) ?? []
  return its.length > 0 && its.every(({ historyFrom }) => historyFrom > last)
}

type Cutting = {
  readonly name: string
  readonly start: Start
  readonly whole: readonly Frame[]
  readonly bookmarks: boolean
  readonly streams: Streams
  readonly truth: Held
}

/** After every event, and once more after every event of what was resumed. */
async function cutEverywhere({ name, start, whole, bookmarks, streams, truth }: Cutting): Promise<number> {
  let cuts = 0
  const held = new Map(start.held)
  let version = start.version
  const check = (end: Held, how: string) => {
    cuts++
    const wrong = differs(end, truth)
    if (wrong !== undefined) throw new Error(`${name}, bookmarks ${bookmarks}, ${how}: ${wrong}`)
  }
  for (let at = 0; at <= whole.length; at++) {
    const resumed = await streams.from(version, bookmarks)
    const state = new Map(held)
    let then = version
    for (const [next, frame] of resumed.entries()) {
      // The second cut: what follows from there was heard of before, or is heard of now.
      const rest = await streams.from(then, bookmarks)
      const twice = new Map(state)
      for (const one of rest) apply(twice, one)
      check(twice, `cut after ${at} events, and again after ${next}, at ${version} and ${then}`)
      then = apply(state, frame)
    }
    check(state, `cut after ${at} events at ${version}`)
    const frame = whole[at]
    if (frame !== undefined) version = apply(held, frame)
  }
  check(held, 'uncut')
  return cuts
}

/** Resumed watches up to the last event; what one shows depends on its version alone, so each is opened once. */
class Streams {
  readonly #client: Client
  /** The version of the last event: from there on there is nothing more to tell. */
  readonly #last: number
  readonly #known = new Map<string, Promise<readonly Frame[]>>()

  constructor(client: Client, last: string) {
    this.#client = client
    this.#last = Number(last)
  }

  get opened(): number {
    return this.#known.size
  }

  from(version: string, bookmarks: boolean): Promise<readonly Frame[]> {
    if (Number(version) >= this.#last) return Promise.resolve([])
    const path = watchPath(version, bookmarks)
    const known = this.#known.get(path)
    if (known !== undefined) return known
    const read = this.#read(path)
    this.#known.set(path, read)
    return read
  }

  async #read(path: string): Promise<readonly Frame[]> {
    const watch = new Watch(this.#client, path)
    try {
      await watch.until((frames) => endsWithSentinel(frames) || frames.some(({ type }) => type === 'ERROR'))
    } catch (error) {
      throw new Error(`${path}: ${(error as Error).message}`)
    } finally {
      watch.stream.close()
    }
    return upToSentinel(watch.frames as unknown as Frame[])
  }
}

function endsWithSentinel(
  frames: readonly { readonly object: { readonly metadata: { readonly name: string } } }[],
): boolean {
  return frames.some(({ object }) => object.metadata.name === sentinel)
}

function isExpired([first]: readonly Frame[]): boolean {
  return first?.type === 'ERROR' && first.object.code === 410
}

function upToSentinel(frames: readonly Frame[]): readonly Frame[] {
  const end = frames.findIndex(({ object }) => object.metadata.name === sentinel)
  return end < 0 ? frames : frames.slice(0, end + 1)
}

/** As a reflector does: the state changes, and the version to resume from is the frame's. */
function apply(held: Map<string, string>, { type, object }: Frame): string {
  if (type === 'ERROR') throw new Error(`a watch was told ${JSON.stringify(object)}`)
  const { name, uid, resourceVersion } = object.metadata
  if (type === 'DELETED') held.delete(name)
  else if (type !== 'BOOKMARK') held.set(name, `${uid} ${resourceVersion}`)
  return resourceVersion
}

function differs(have: Held, want: Held): string | undefined {
  for (const [name, one] of want) if (have.get(name) !== one) return `${name} is ${have.get(name)}, truly ${one}`
  for (const name of have.keys()) if (!want.has(name)) return `${name} is a ghost`
  return undefined
}

function heldOf({ items }: Listed): Held {
  return new Map(items.map(({ metadata }) => [metadata.name, `${metadata.uid} ${metadata.resourceVersion}`]))
}

function named(at: number): string {
  return `map-${String(at).padStart(3, '0')}`
}

function watchPath(version: string, bookmarks: boolean): string {
  return `${collection}?watch=1&resourceVersion=${version}${bookmarks ? '&allowWatchBookmarks=true' : ''}`
}

async function change(client: Client, name: string, value: string): Promise<void> {
  await client.json('PUT', `${collection}/${name}`, { metadata: { name }, data: { value } })
}

type Deed = (client: Client) => Promise<void>

/** Four for each of so many numbers: each concerns an object of its own, so any order will do. */
function deedsOf(): Deed[] {
  return Array.from({ length: quarter }, (_, at): Deed[] => [
    async (client) => void (await client.json('DELETE', `${collection}/${named(at)}`)),
    async (client) => {
      const name = named(quarter + at)
      await client.json('DELETE', `${collection}/${name}`)
      await client.json('POST', collection, { metadata: { name }, data: { value: 'again' } })
    },
    (client) => change(client, named(2 * quarter + at), 'changed'),
    async (client) => void (await client.json('POST', collection, { metadata: { name: `new-${at}` } })),
  ]).flat()
}

/** The edge shows what the API server has. */
async function caughtUp(site: Site, edge: Edge, direct: Client): Promise<void> {
  const client = edge.client()
  const truth = heldOf(await direct.json<Listed>('GET', collection))
  try {
    let wrong: string | undefined
    const shows = async () => {
      wrong = differs(heldOf(await client.json<Listed>('GET', `${collection}?resourceVersion=0`)), truth)
      return wrong === undefined
    }
    const waiting = { withinMs: caughtUpMsMax, everyMs: 100, signal: site.signal }
    await until(shows, 'the edge shows what the API server has', waiting).catch((error: Error) => {
      throw new Error(`${error.message}: ${wrong}`)
    })
  } finally {
    client.close()
  }
}
