/**
 * An edge as it stands in the field: a real API server of its own, the line to it that can be cut, and `ake edge` processes
 * behind that line which are ended and started again under their clients. What a proof counts about them is asked here.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../src/base/until.test-support.ts'
import { Client } from '../test/process.ts'
import type { Ake } from './ake.ts'
import { type EdgeWay, startEdge } from './edge/edge.ts'
import { Hub, issueEdge } from './hubs.ts'
import { type Link, startLink } from './link.ts'
import { ask, type Oracle, startOracle } from './oracle.ts'

const askAgainMs = 100
const discoveredMsMax = 30_000
/**
 * A client whose connection breaks before its watch is answered lists again by itself (client-go tries again only what was
 * refused), against any server: an edge lives long enough to answer dozens that come at once on a busy machine.
 */
const lifeMsMin = 3_000
/** As long as client-go waits at most between two tries (30 s and as much again by chance), and some more. */
const backMsMax = 62_000
/** A watch of client-go that lived for longer may end without an event. */
const youngMsMax = 1_200

export type Kept = {
  readonly resource: string
  readonly group: string
  readonly namespace?: string
  readonly labels?: string
  readonly fields?: string
  readonly state: string
  readonly why?: string
  readonly objects: number
  readonly resourceVersion: number
  readonly watchers: number
}

export type EdgeStatus = {
  readonly upstream: { readonly state: string; readonly why: string }
  readonly cluster: { readonly uid?: string; readonly other?: string; readonly changes: number }
  readonly interests: readonly Kept[]
  readonly passedThrough: readonly { readonly resource: string; readonly state?: string; readonly why: string }[]
}

/** One `ake edge`, the same one for its clients however often it is started. */
export class Edge {
  readonly #start: () => Promise<Ake>
  readonly #dir: string
  #ake: Ake
  #restarts = 0
  #startedMs = performance.now()
  /**
   * Watches that its clients hold once all have come back: it is not ended before. client-go waits for up to a minute
   * before it tries again, and lists by itself where a watch ends in its first second without an event.
   */
  watches = 0

  constructor(ake: Ake, { dir, start }: { dir: string; start: () => Promise<Ake> }) {
    this.#ake = ake
    this.#dir = dir
    this.#start = start
  }

  get ake(): Ake {
    return this.#ake
  }

  get kubeconfig(): string {
    return this.#ake.kubeconfig
  }

  /** How often it was started again: a step that holds something against one life of it asks. */
  get restarts(): number {
    return this.#restarts
  }

  /** `between` happens to its folder while it is down. */
  async restart(how: 'kill' | 'orderly', between: (dir: string) => void = () => {}): Promise<void> {
    this.#restarts++
    await pause(Math.max(0, this.#startedMs + lifeMsMin - performance.now()))
    if (this.watches > 0) await this.#untilWatched()
    if (how === 'kill') await this.#ake.kill()
    else {
      const code = await this.#ake.stop()
      if (code !== 0) throw new Error(`an orderly end of ake edge had the exit code ${code}`)
    }
    between(this.#dir)
    this.#ake = await this.#start()
    this.#startedMs = performance.now()
  }

  async #untilWatched(): Promise<void> {
    const give = performance.now() + backMsMax
    for (;;) {
      const { interests } = await this.status()
      const watches = interests.reduce((sum, { watchers }) => sum + watchers, 0)
      if (watches >= this.watches || performance.now() > give) break
      await pause(200)
    }
    await pause(youngMsMax)
  }

  /** A connection of its own, as its administrator. */
  client(): Client {
    return new Client({ url: this.#ake.url, credentials: this.#ake })
  }

  async status(): Promise<EdgeStatus> {
    const client = this.client()
    try {
      return await client.json<EdgeStatus>('GET', '/ake/status')
    } finally {
      client.close()
    }
  }

  /** Memory of its own that is resident, in MB; undefined while it is being started. */
  memoryMb(): number | undefined {
    try {
      const text = readFileSync(`/proc/${this.#ake.pid}/status`, 'latin1')
      const kb = /RssAnon:\s+(\d+) kB/.exec(text)?.[1]
      return kb === undefined ? undefined : Number(kb) / 1024
    } catch {
      return undefined
    }
  }
}

export type Site = {
  readonly dir: string
  readonly oracle: Oracle
  readonly link: Link
  readonly signal: AbortSignal
  /** Another `ake edge` behind the line, or where its kubeconfig says, if it has one of its own. */
  edge(name: string, args?: readonly string[], kubeconfig?: string): Promise<Edge>
  edges(): readonly Edge[]
  /** Through which its edges reach the API server, one line for all; none where they reach it straight. */
  readonly hubs: readonly Hub[]
  /** Watches of each resource that the API server had before any hub or edge. */
  readonly ownWatches: ReadonlyMap<string, number>
  stop(): Promise<void>
}

type Options = {
  readonly dir: string
  readonly signal: AbortSignal
  readonly progress: (line: string) => void
  /** How many hubs stand between; they trust their edges, whose clients are administrators here. */
  readonly hubs?: number
}

/** An API server of its own: its clients would not survive what is done to this one. */
export async function startSite({ dir, signal, progress, hubs: count = 0 }: Options): Promise<Site> {
  mkdirSync(dir, { recursive: true })
  const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
  const link = await startLink({ target: { host: '127.0.0.1', port: oracle.port } })
  const edges: Edge[] = []
  const hubs: Hub[] = []
  const hubDir = join(dir, 'hub')
  const ownWatches = await watchesUpstream(oracle)
  while (hubs.length < count) {
    const parts = { dir: hubDir, kubeconfig: oracle.kubeconfig, args: ['--trust-edges', '--drain', '5s'], signal }
    hubs.push(await Hub.start(parts, `hub-${hubs.length + 1}`))
  }
  if (count > 0) link.lead(...hubs.map(({ port }) => ({ host: '127.0.0.1', port })))
  const wayOf = async (name: string, pointed: string | undefined): Promise<EdgeWay> => {
    if (pointed !== undefined) return { server: [], kubeconfig: pointed }
    if (count === 0) return { server: link.url, kubeconfig: oracle.kubeconfig }
    return { hub: [`wss://127.0.0.1:${link.port}`], credential: await issueEdge(hubDir, name) }
  }
  return {
    dir,
    oracle,
    link,
    signal,
    edge: async (name, args = [], pointed) => {
      const options = { ...(await wayOf(name, pointed)), dir: join(dir, name), args, signal }
      const first = await startEdge(options)
      const edge = new Edge(first, { dir: options.dir, start: () => startEdge({ ...options, port: first.port }) })
      edges.push(edge)
      await untilDiscovered(edge, signal)
      return edge
    },
    edges: () => edges,
    hubs,
    ownWatches,
    stop: async () => {
      await Promise.all(edges.map((edge) => edge.ake.kill()))
      await Promise.all(hubs.map((hub) => hub.end('kill')))
      await link.close()
      oracle.stop()
    },
  }
}

/** Each edge has noticed that its API server is there, or that it is not. */
export async function untilReachable(site: Site, reachable: boolean, withinMs: number): Promise<void> {
  const what = `an edge ${reachable ? 'finds its API server again' : 'notices that its API server cannot be reached'}`
  const haveNoticed = async () => {
    const all = await Promise.all(site.edges().map((edge) => edge.status()))
    return all.every(({ upstream }) => (upstream.state === 'reachable') === reachable)
  }
  await until(haveNoticed, what, { withinMs, everyMs: askAgainMs, signal: site.signal })
}

/** How many watches of each resource the API server holds open now, its own included. */
export async function watchesUpstream(oracle: Oracle): Promise<ReadonlyMap<string, number>> {
  const { body } = await ask(oracle, '/metrics')
  const found = new Map<string, number>()
  for (const [, labels, count] of body.matchAll(/^apiserver_longrunning_requests\{([^}]*)\} (\S+)$/gm)) {
    if (!/verb="WATCH"/.test(labels as string)) continue
    const resource = /resource="([^"]*)"/.exec(labels as string)?.[1] ?? ''
    found.set(resource, (found.get(resource) ?? 0) + Number(count))
  }
  return found
}

/** So that a seed is enough to see a failure again; `below` gives integers from 0. */
export type Random = {
  below(limit: number): number
  of<T>(choices: readonly T[]): T
  shuffled<T>(all: readonly T[]): T[]
}

export function seeded(seed: number): Random {
  let state = seed >>> 0
  const below = (limit: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return (state >>> 8) % limit
  }
  return {
    below,
    of: (choices) => choices[below(choices.length)]!,
    shuffled: (all) => {
      const left = [...all]
      return all.map(() => left.splice(below(left.length), 1)[0]!)
    },
  }
}

/** The gate repeats what it did, so that a change alone can turn it red; `--all` and steps without a `gate` seed look for more. AKE_SEED repeats a run that failed. */
export function chooseSeed(
  { all, gate }: { readonly all: boolean; readonly gate: number } = { all: true, gate: 0 },
): number {
  return Number(process.env.AKE_SEED ?? (all ? Math.floor(Math.random() * 1e9) : gate))
}

/** On its very first start an edge passes on what it has not discovered yet: a proof wants what comes after that. */
export async function untilDiscovered(edge: Pick<Edge, 'status'>, signal: AbortSignal): Promise<void> {
  const knows = async () => (await edge.status()).interests.length > 0
  await until(knows, 'the edge knows what there is', { withinMs: discoveredMsMax, everyMs: askAgainMs, signal })
}
