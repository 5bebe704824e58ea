/** A stand-in for the API server: documents as a real one gave them, a switch for its state, and a list of what was asked. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type FakeClock, fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import { openMemory } from '../../store/memory.ts'
import type { Store } from '../../store/store.ts'
import type { ToldSigns } from '../../upstream/told.ts'
import {
  type Reachability,
  type ReachabilityState,
  Unreachable,
  type Upstream,
  type UpstreamRequest,
  type UpstreamResponse,
} from '../../upstream/upstream.ts'
import { CloudCatalog } from './catalog.ts'
import { CloudDocuments } from './documents.ts'

/** Compression of a document takes less, also where all cores are busy. */
const lateMs = 20

type Recorded = {
  path: string
  accept: 'aggregated' | 'plain' | 'any'
  headers: Record<string, string>
  body: string
}

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'testdata', 'discovery.json'), 'utf8')) as {
  documents: Recorded[]
  definition: unknown
}

/** Of a CustomResourceDefinition whose plural no grammar gives: oxen, of kind Ox, listed as OxHerd. */
export const definition = Buffer.from(JSON.stringify(recorded.definition))

export const aggregated =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json'

export class Cloud implements Pick<Upstream, 'ask' | 'reachability' | 'told'> {
  /** What a hub says, where it is behind one. */
  told?: ToldSigns
  readonly asked: string[] = []
  /** What it said, in order: path and status. */
  readonly said: string[] = []
  /** Documents that take this long, in ms; their content is that of the moment they were asked for. */
  readonly slow = new Map<string, number>()
  documents: Recorded[] = structuredClone(recorded.documents)
  /** Whether /api and /apis know the aggregated form. */
  aggregates = true
  /** Answers that come instead. */
  readonly refusals = new Map<string, number>()
  /** Never answers: what waits is ended by its limit. */
  silent = false
  gzips = false
  suspicions: string[] = []
  readonly #clock: FakeClock
  readonly #listeners = new Set<(state: ReachabilityState) => void>()
  #state: ReachabilityState = 'reachable'
  readonly reachability: Reachability

  constructor(clock: FakeClock) {
    this.#clock = clock
    const state = () => this.#state
    this.reachability = {
      get state() {
        return state()
      },
      why: '',
      sinceMs: 0,
      heardAt: 0,
      refusesEdge: false,
      limitMs: 300,
      suspect: (why) => {
        this.suspicions.push(why)
        this.turn('suspect')
      },
      probe: () => Promise.resolve(this.#state === 'reachable'),
      observe: (listener) => {
        this.#listeners.add(listener)
        return () => void this.#listeners.delete(listener)
      },
    }
  }

  turn(state: ReachabilityState): void {
    this.#state = state
    for (const listener of this.#listeners) listener(state)
  }

  document(path: string, accept: Recorded['accept'] = 'plain'): Recorded {
    const found = this.documents.find((one) => one.path === path && one.accept === accept)
    if (found === undefined) throw new Error(`no ${accept} ${path}`)
    return found
  }

  async ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    const answer = await this.#answer(asked)
    const ms = this.slow.get(asked.path)
    if (ms !== undefined) await new Promise<void>((resolve) => void this.#clock.setTimer(ms, resolve))
    this.said.push(`${asked.path} ${answer.status}`)
    return answer
  }

  async #answer({ path, headers = {}, identity, headMsMax = 0 }: UpstreamRequest): Promise<UpstreamResponse> {
    const accept = String(headers.accept)
    this.asked.push(path)
    if (identity.kind !== 'edge') throw new Error('asked in the name of a caller')
    if (this.#state === 'unreachable') throw new Unreachable('refused', false)
    if (this.silent) {
      const { promise, reject } = Promise.withResolvers<never>()
      this.#clock.setTimer(headMsMax, () => reject(new Unreachable(`no answer within ${headMsMax} ms`, true)))
      return promise
    }
    const refusal = this.refusals.get(path)
    if (refusal !== undefined) return answered(refusal, {}, Buffer.from('no'))
    const wantsAll = accept.includes('as=APIGroupDiscoveryList') && accept.includes('v=v2')
    const form = this.aggregates && wantsAll && /^\/apis?$/.test(path) ? 'aggregated' : 'plain'
    const found = this.documents.find((one) => one.path === path && [form, 'any'].includes(one.accept))
    if (found === undefined) return answered(path.includes('?hash=') ? 301 : 404, {}, Buffer.alloc(0))
    if (accept.includes('text/html') && found.accept !== 'any') return answered(406, {}, Buffer.alloc(0))
    const { etag } = found.headers
    if (etag !== undefined && headers['if-none-match'] === etag) return answered(304, { etag }, Buffer.alloc(0))
    const body = Buffer.from(found.body)
    if (!this.gzips || headers['accept-encoding'] !== 'gzip') return answered(200, found.headers, body)
    return answered(200, { ...found.headers, 'content-encoding': 'gzip' }, gzipSync(body))
  }
}

function answered(status: number, headers: Record<string, string>, body: Buffer): UpstreamResponse {
  const pieces = async function* () {
    if (body.length > 0) yield body
  }
  return { status, headers, body: pieces(), heardAt: () => 0 }
}

/** Of a hub, or of an edge that is told by one. */
type Linked = { readonly told?: ToldSigns; readonly isForEdges?: boolean }

export class World {
  readonly clock = fakeClock()
  readonly cloud = new Cloud(this.clock)
  readonly store: Store = openMemory({ historyBytesMax: 0 })
  /** What is told to an operator. */
  readonly lines: string[] = []
  catalog = new CloudCatalog()
  documents: CloudDocuments
  #ending = new AbortController()
  #running: Promise<void> = Promise.resolve()
  readonly #heldBytesMax: number | undefined
  readonly #isAhead: boolean
  readonly #isForEdges: boolean

  constructor(heldBytesMax?: number, isAhead = false, { told, isForEdges = false }: Linked = {}) {
    if (told !== undefined) this.cloud.told = told
    this.#isForEdges = isForEdges
    this.#heldBytesMax = heldBytesMax
    this.#isAhead = isAhead
    this.documents = this.#documents()
  }

  #documents(): CloudDocuments {
    const { clock, cloud: upstream, store, catalog } = this
    const log = createLog({ level: 'info', write: (line) => this.lines.push(line) })
    const limit = this.#heldBytesMax === undefined ? {} : { heldBytesMax: this.#heldBytesMax }
    const [isAhead, isForEdges] = [this.#isAhead, this.#isForEdges]
    const random = () => 0.5
    return new CloudDocuments({ store, upstream, catalog, clock, log, random, isAhead, isForEdges, ...limit })
  }

  async start(): Promise<void> {
    await this.documents.load()
    this.#ending = new AbortController()
    this.#running = this.documents.run(this.#ending.signal)
  }

  async stop(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** The process ends and starts again over the same store. */
  async restart(): Promise<void> {
    await this.stop()
    this.catalog = new CloudCatalog()
    this.documents = this.#documents()
    await this.start()
  }

  async get(path: string, headers: Record<string, string> = {}) {
    const [bare = '', query = ''] = path.split('?')
    const search = new URLSearchParams(query)
    return this.documents.answer(bare, { get: (name) => search.get(name) ?? undefined }, headers)
  }

  /** Lets time pass in small steps, and what it wakes do its work. */
  async pass(ms: number): Promise<void> {
    const steps = Math.max(1, Math.ceil(ms / (ms > 120_000 ? 10_000 : 500)))
    for (let step = 0; step < steps; step++) {
      this.clock.advance(ms / steps)
      await quiet()
    }
    // What was woken last may wait for threads that a busy machine runs late.
    await sleep(lateMs)
    await quiet()
  }
}

/** Compression runs beside the loop: some turns of it, and then some. */
export async function quiet(turns = 30): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn()
  await new Promise((resolve) => setTimeout(resolve, 1))
}
