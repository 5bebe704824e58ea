/**
 * A mirror over the model API server for tests: it can be killed at any instant and opened again over the same store, whose
 * disk can refuse.
 */
import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { type Log, silentLog } from '../base/log.ts'
import { type Filter, makeFilter, planFor } from '../cache/filter.ts'
import { MirrorCopy } from '../cache/mirrorcopy.ts'
import { type AskedInterests, Front, type Read, type ReadRoute } from '../endpoint/request/mirror/front.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { selectableFields } from '../kube/fields.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import type { Resource } from '../kube/resource.ts'
import type { Scope } from '../kube/scope.ts'
import { parseLabelSelector } from '../kube/selector.ts'
import { openMemory } from '../store/memory.ts'
import { type Batch, type Store, StoreRefused } from '../store/store.ts'
import { followDirect } from '../upstream/follow/direct.ts'
import type { OpenFollow } from '../upstream/follow/follow.ts'
import type { ListingLimits } from '../upstream/follow/listing.ts'
import { Unreachable, type Upstream, type UpstreamRequest } from '../upstream/upstream.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Comparison } from './comparison.ts'
import { Contact } from './contact.ts'
import type { BudgetLimits } from './eviction.ts'
import { type Interest, interestOf, resourceOfName } from './interest.ts'
import { Interests } from './interests.ts'
import type { Mirrored } from './mirror.ts'

export type Wish = {
  readonly resource?: string
  readonly namespace?: string
  readonly labels?: string
  readonly fields?: string
}

const catalog = new Map<string, Mirrored>(
  ['pods', 'configmaps', 'secrets', 'nodes', 'leases', 'events', 'namespaces'].map((name) => {
    const facts = builtinFacts().resources.find((one) => one.resource === name && one.version === 'v1') as Resource
    const fields = selectableFields(facts)
    return [name, { resource: facts, fields, plan: planFor([fields.paths]), mirrorable: name !== 'events' }]
  }),
)

export function known(resource = 'pods'): Mirrored {
  return catalog.get(resource) as Mirrored
}

export function scopeOf({ resource = 'pods', namespace = '', labels = '', fields = '' }: Wish): Scope {
  const { group, version } = known(resource).resource
  return {
    group,
    version,
    resource,
    namespace,
    labels: parseLabelSelector(labels),
    fields: parseFieldSelector(fields),
  }
}

/** Lets everything that waits for nothing but its turn do its work. */
export async function settle(turns = 2): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await nextTurn()
}

/** One life of the process: once it is over, nothing it began reaches the disk, the cloud or the clock any more. */
class Life {
  over = false

  clock(inner: Clock): Clock {
    return {
      now: () => inner.now(),
      steady: () => inner.steady(),
      setTimer: (ms, fn) => inner.setTimer(ms, () => this.over || fn()),
    }
  }

  store(inner: Store, refuses: () => boolean): Store {
    return {
      load: inner.load.bind(inner),
      release: (shared) => this.over || inner.release(shared),
      commit: async (batch: Batch) => {
        if (this.over) await never
        if (refuses()) throw new StoreRefused('the test fills the disk', true)
        await inner.commit(batch)
        if (this.over) await never
      },
      history: (name, cursor, limit) => inner.history(name, cursor, limit),
      floor: (name) => inner.floor(name),
      mendFrom: (held) => inner.mendFrom(held),
      records: (kind) => inner.records(kind),
      record: (kind, key) => inner.record(kind, key),
      figures: inner.figures,
      close: async () => {},
    }
  }

  upstream(inner: Upstream, signal: AbortSignal): Upstream {
    return {
      reachability: inner.reachability,
      ask: async (asked: UpstreamRequest) => {
        if (this.over) await never
        const both = asked.signal === undefined ? signal : AbortSignal.any([asked.signal, signal])
        return await inner.ask({ ...asked, signal: both })
      },
      connect: () => Promise.reject(new Unreachable('no upgrades here', false)),
      addresses: () => [],
      run: async () => {},
    }
  }
}

const never = new Promise<never>(() => {})

type WorldParts = {
  server?: ApiServer
  store?: Store
  limits?: ListingLimits
  log?: Log
  budget?: Partial<BudgetLimits>
  compares?: boolean
  /** Another way to follow than directly. */
  follow?: OpenFollow
  proofs?: AskedInterests
  /** The newest version that clients may have of another cluster. */
  lost?: number
  /** Hears that the cluster was put back. */
  onRestored?: () => void
}

export class MirrorWorld {
  readonly server: ApiServer
  readonly limits: ListingLimits
  readonly #budget: Partial<BudgetLimits>
  readonly #follow: OpenFollow | undefined
  readonly #proofs: AskedInterests | undefined
  readonly #lost: number
  readonly #onRestored: (() => void) | undefined
  readonly confirmed: Interest[] = []
  readonly log: Log
  /** Resources that discovery does not know. */
  readonly unknown = new Set<string>()
  /** Whether the copy is compared with the cloud at leisure. */
  readonly #compares: boolean
  comparison!: Comparison
  /** How often it was told that the cluster was put back. */
  restores = 0
  confirms: boolean | ((interest: Interest, callers: readonly string[]) => Promise<boolean>) = false
  refusing = false
  store: Store
  interests!: Interests
  copy!: MirrorCopy
  front!: Front
  #life = new Life()
  #killing = new AbortController()
  #stopping = new AbortController()
  #running: Promise<unknown> = Promise.resolve()

  constructor(parts: WorldParts = {}) {
    this.server = parts.server ?? new ApiServer()
    this.store = parts.store ?? openMemory({ historyBytesMax: 1 << 30 })
    this.log = parts.log ?? silentLog
    this.#compares = parts.compares ?? false
    this.limits = parts.limits ?? { objects: 10_000, bytes: 1 << 28 }
    this.#budget = parts.budget ?? {}
    this.#follow = parts.follow
    this.#proofs = parts.proofs
    this.#lost = parts.lost ?? 0
    this.#onRestored = parts.onRestored
  }

  static async open(parts: WorldParts = {}): Promise<MirrorWorld> {
    const world = new MirrorWorld(parts)
    await world.start()
    return world
  }

  async start(): Promise<void> {
    const life = new Life()
    this.#life = life
    this.#killing = new AbortController()
    this.#stopping = new AbortController()
    const clock = life.clock(this.server.clock)
    const store = life.store(this.store, () => this.refusing)
    const upstream = life.upstream(this.server, this.#killing.signal)
    this.interests = await Interests.open({
      store,
      upstream,
      follow: this.#follow ?? followDirect({ upstream, limits: this.limits, clock }),
      budget: this.#budget,
      random: this.server.random,
      clock,
      log: this.log,
      lost: this.#lost,
      onRestored: () => {
        this.restores++
        this.#onRestored?.()
      },
      find: (_group, _version, resource) => (this.unknown.has(resource) ? undefined : catalog.get(resource)),
      confirm: async (interest, _code, callers) => {
        this.confirmed.push(interest)
        return typeof this.confirms === 'boolean' ? this.confirms : await this.confirms(interest, callers)
      },
    })
    const { planOf, lostOf } = this.interests
    this.copy = await MirrorCopy.open({ store, clock, log: silentLog, planOf, lostOf, resourceOf: resourceOfName })
    this.interests.attach(this.copy)
    const { interests, log } = this
    const { reachability } = upstream
    const contact = await Contact.open({ store, interests, reachability, clock, nowMs: () => clock.now() })
    this.front = new Front({ interests, upstream, clock, contact, proofs: this.#proofs })
    const all = () => interests.all
    this.comparison = new Comparison({
      all,
      reachability: upstream.reachability,
      clock,
      log,
      random: this.server.random,
    })
    const { signal } = this.#stopping
    const comparing = this.#compares ? this.comparison.run(signal) : undefined
    this.#running = Promise.all([this.interests.run(signal), this.copy.run(signal), comparing])
  }

  /** The process is killed: whatever was under way never happened, unless it was committed. */
  crash(): void {
    this.#life.over = true
    this.#killing.abort()
  }

  async reopen(): Promise<void> {
    this.crash()
    await this.start()
  }

  /** Ends in order. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await settle()
    this.server.clock.advance(10_000)
    await this.#running
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async pass(ms: number, steps = Math.max(1, Math.ceil(ms / 1_000))): Promise<void> {
    for (let step = 0; step < steps; step++) {
      this.server.clock.advance(ms / steps)
      await settle()
    }
  }

  /** Lets time pass until it holds. */
  async until(holds: () => boolean, seconds = 120): Promise<void> {
    await settle()
    for (let step = 0; step < seconds * 4 && !holds(); step++) await this.pass(250)
    assert.ok(holds(), 'it never came to that')
  }

  begin(wish: Wish, options: { standing?: boolean; firstVersion?: number; by?: string[] } = {}) {
    return this.interests.begin(scopeOf(wish), known(wish.resource), options)
  }

  place(verb: Read['verb'], wish: Wish, more: Partial<Read> = {}): ReadRoute {
    return this.front.route(readOf(verb, wish, more))
  }

  /** A GET that was passed on found its object. */
  found(wish: Wish, more: Partial<Read> = {}): void {
    this.front.found(readOf('get', wish, more))
  }

  mirrored(wish: Wish) {
    const { name } = interestOf(scopeOf(wish))
    return [...this.interests.all].find((one) => one.interest.name === name)
  }
}

export function readOf(verb: Read['verb'], wish: Wish, more: Partial<Read>): Read {
  const scope = scopeOf(wish)
  return { verb, known: known(wish.resource), scope, state: 'any', version: 0, caller: 'somebody', ...more }
}

export function filterOf(wish: Wish, plan: Parameters<typeof makeFilter>[0]['plan']): Filter {
  const { resource, fields } = known(wish.resource)
  const { namespace, labels, fields: wanted } = scopeOf(wish)
  return makeFilter({
    namespaced: resource.namespaced,
    namespace,
    labels,
    fields: fields.resolve(wanted),
    paths: fields.paths,
    plan,
  })
}
