/**
 * A mirror over the model API server for tests: it can be killed at any instant and opened again over the same store, whose
 * disk can refuse. And its clients, each as strict as client-go's reflector: list, watch, resume from the last version heard.
 */
import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { Copy } from '../cache/copy.ts'
import type { Form } from '../cache/event.ts'
import { type Filter, makeFilter, planFor } from '../cache/filter.ts'
import type { Watcher } from '../cache/watcher.ts'
import { builtinFacts } from '../kube/builtin.ts'
import { selectableFields } from '../kube/fields.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import type { Resource } from '../kube/resource.ts'
import { parseLabelSelector } from '../kube/selector.ts'
import { type Status, StatusError } from '../kube/status.ts'
import { openMemory } from '../store/memory.ts'
import { type Batch, type Store, StoreRefused } from '../store/store.ts'
import { type Asked, Unreachable, type Upstream } from '../upstream/upstream.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Front, type Place, type Read } from './front.ts'
import { type Interest, interestOf, type Scope } from './interest.ts'
import { Interests } from './interests.ts'
import type { ListingLimits } from './listing.ts'
import type { Mirrored } from './mirror.ts'

export type Wish = {
  readonly resource?: string
  readonly namespace?: string
  readonly labels?: string
  readonly fields?: string
}

const catalog = new Map<string, Mirrored>(
  ['pods', 'configmaps', 'nodes', 'leases', 'events'].map((name) => {
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
      commit: async (batch: Batch) => {
        if (this.over) await never
        if (refuses()) throw new StoreRefused('the test fills the disk', true)
        await inner.commit(batch)
        if (this.over) await never
      },
      history: (name, cursor, limit) => inner.history(name, cursor, limit),
      floor: (name) => inner.floor(name),
      records: (kind) => inner.records(kind),
      record: (kind, key) => inner.record(kind, key),
      figures: inner.figures,
      close: async () => {},
    }
  }

  upstream(inner: Upstream, signal: AbortSignal): Upstream {
    return {
      reachability: inner.reachability,
      ask: async (asked: Asked) => {
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

export class MirrorWorld {
  readonly server: ApiServer
  readonly limits: ListingLimits
  readonly confirmed: Interest[] = []
  confirms = false
  refusing = false
  store: Store
  interests!: Interests
  copy!: Copy
  front!: Front
  #life = new Life()
  #killing = new AbortController()
  #stopping = new AbortController()
  #running: Promise<unknown> = Promise.resolve()

  constructor(parts: { server?: ApiServer; store?: Store; limits?: ListingLimits } = {}) {
    this.server = parts.server ?? new ApiServer()
    this.store = parts.store ?? openMemory({ historyBytesMax: 1 << 30 })
    this.limits = parts.limits ?? { objects: 10_000, bytes: 1 << 28 }
  }

  static async open(parts: { server?: ApiServer; store?: Store; limits?: ListingLimits } = {}): Promise<MirrorWorld> {
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
      limits: this.limits,
      clock,
      log: silentLog,
      find: (_group, _version, resource) => catalog.get(resource),
      confirm: async (interest) => {
        this.confirmed.push(interest)
        return this.confirms
      },
    })
    const { planOf, lostOf } = this.interests
    this.copy = await Copy.open({ store, clock, log: silentLog, planOf, lostOf, mirrors: true })
    this.interests.attach(this.copy)
    this.front = new Front({ interests: this.interests, upstream, clock })
    const { signal } = this.#stopping
    this.#running = Promise.all([this.interests.run(signal), this.copy.run(signal)])
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

  begin(wish: Wish, options: { held?: boolean; firstVersion?: number } = {}) {
    return this.interests.begin(scopeOf(wish), known(wish.resource), options)
  }

  place(verb: Read['verb'], wish: Wish, more: Partial<Read> = {}): Place {
    const read: Read = {
      verb,
      known: known(wish.resource),
      scope: scopeOf(wish),
      state: 'any',
      version: 0,
      caller: 'somebody',
      ...more,
    }
    return this.front.place(read)
  }

  kept(wish: Wish) {
    const { name } = interestOf(scopeOf(wish))
    return [...this.interests.all].find((one) => one.interest.name === name)
  }
}

const form: Form = {
  frame: (type, item) => Buffer.from(`${type} ${item.key} ${item.bytes}\n`),
  bookmark: (version, end) => Buffer.from(`${end ? 'SYNCED' : 'BOOKMARK'} ${version}\n`),
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

/** Frames come a chunk at a time, and one by one out of it: the connection may be cut between any two. */
export class Client {
  readonly wish: Wish
  readonly #world: MirrorWorld
  readonly objects = new Map<string, string>()
  readonly heard: string[] = []
  version = 0
  lists = 0
  /** Every 410 it was told, with the version it had asked for and where that came from. */
  readonly expired: { readonly version: number; readonly fromCloud: boolean }[] = []
  /** Whether its state came past the mirror. */
  fromCloud = false
  watcher: Watcher | undefined
  #frames: string[] = []
  #pulling = false
  #holding = false
  readonly #watchList: boolean

  constructor(world: MirrorWorld, wish: Wish, watchList = false) {
    this.#world = world
    this.wish = wish
    this.#watchList = watchList
  }

  /** One step of whatever it is at. */
  step(): void {
    if (this.#holding) return
    try {
      if (this.watcher !== undefined) this.#hear()
      else if (this.version === 0 && !this.#watchList) this.#list()
      else this.#watch()
    } catch (error) {
      // Told to come again.
      if (!(error instanceof StatusError) || ![429, 503].includes(error.code)) throw error
    }
  }

  #hold(place: Extract<Place, { kind: 'hold' }>): void {
    this.#holding = true
    const { interests } = this.#world
    void place.kept.synced(10_000).then(() => {
      if (interests === this.#world.interests) this.#holding = false
    })
  }

  #list(): void {
    const place = this.#world.place('list', this.wish)
    if (place.kind === 'hold') this.#hold(place)
    else if (place.kind === 'forward') {
      const { server } = this.#world
      this.#take(server.listed(this.wish.resource ?? 'pods', this.wish), server.version)
      this.fromCloud = true
    } else {
      const { cache } = place
      const items = cache.list(filterOf(this.wish, cache.plan))
      this.#take(new Map(items.map((item) => [item.key, String(item.bytes)])), cache.version)
      this.fromCloud = false
    }
  }

  #take(objects: Map<string, string>, version: number): void {
    this.lists++
    for (const text of objects.values()) this.#check(text)
    this.objects.clear()
    for (const [key, text] of objects) this.objects.set(key, text)
    this.version = version
  }

  #watch(): void {
    const whole = this.version === 0
    const more: Partial<Read> = whole ? {} : { state: 'version', version: this.version }
    const place = this.#world.place('watch', this.wish, more)
    if (place.kind === 'hold') this.#hold(place)
    if (place.kind !== 'local') return
    const { cache } = place
    // What the endpoint says before it opens a watch.
    if (!whole && (cache.isGone(this.version) || this.version < cache.history.floor)) {
      this.#relist()
      return
    }
    const filter = filterOf(this.wish, cache.plan)
    const errorFrame = ({ code }: Status) => Buffer.from(`ERROR ${code}\n`)
    if (whole) this.objects.clear()
    const start = whole
      ? { kind: 'state' as const, items: cache.list(filter), closingBookmark: true }
      : { kind: 'after' as const, version: this.version }
    if (whole) this.lists++
    if (whole) this.fromCloud = false
    this.watcher = cache.watch({ filter, form, start, bookmarks: true, errorFrame })
  }

  #relist(): void {
    this.expired.push({ version: this.version, fromCloud: this.fromCloud })
    this.version = 0
    this.watcher = undefined
    this.#frames = []
  }

  #hear(): void {
    const { watcher } = this
    if (watcher === undefined || this.#pulling) return
    if (this.#frames.length > 0) {
      const frames = this.#frames.splice(0, 1)
      // Put back by a restore: the object's own version is an old one, and the bookmark that follows makes up for it.
      if (this.#frames[0]?.startsWith('BOOKMARK')) frames.push(this.#frames.shift() as string)
      this.#apply(frames)
      return
    }
    this.#pulling = true
    void watcher.next().then(({ value, done }) => {
      if (this.watcher !== watcher) return
      this.#pulling = false
      if (done === true) {
        this.watcher = undefined
      } else this.#frames.push(...(value as Buffer).toString().trimEnd().split('\n'))
    })
  }

  #apply(frames: string[]): void {
    const before = this.version
    let put: number | undefined
    for (const frame of frames) {
      this.heard.push(frame)
      const [type = '', key = '', ...rest] = frame.split(' ')
      const text = rest.join(' ')
      if (type === 'ERROR') {
        assert.equal(key, '410', frame)
        this.#relist()
        return
      }
      if (type === 'BOOKMARK' || type === 'SYNCED') this.version = Number(key)
      else {
        const version = Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion)
        if (type === 'DELETED') this.objects.delete(key)
        else {
          this.#check(text)
          this.objects.set(key, text)
        }
        put = version
        // The objects of a WatchList come in the order of their names; its end says how far it is.
        if (before !== 0) this.version = version
      }
    }
    if (before !== 0) assert.ok(this.version >= before, `${put}: versions went back from ${before} to ${this.version}`)
  }

  #check(text: string): void {
    assert.ok(this.#world.server.ever.has(text), `the API server never had ${text}`)
  }

  /** Its connection breaks: frames on the way are lost with it. */
  cut(): void {
    void this.watcher?.return()
    this.watcher = undefined
    this.#pulling = false
    this.#holding = false
    this.#frames = []
    if (this.version === 0) this.objects.clear()
  }

  get idle(): boolean {
    return this.watcher !== undefined && this.#frames.length === 0 && this.#pulling
  }

  /** Whether what it knows is what the API server has. */
  isRight(): boolean {
    const truth = this.#world.server.listed(this.wish.resource ?? 'pods', this.wish)
    return truth.size === this.objects.size && [...truth].every(([key, text]) => this.objects.get(key) === text)
  }

  assertRight(): void {
    const truth = this.#world.server.listed(this.wish.resource ?? 'pods', this.wish)
    const sorted = [...this.objects].sort(([a], [b]) => (a < b ? -1 : 1))
    assert.deepEqual(sorted, [...truth], `${JSON.stringify(this.wish)} at ${this.version}`)
  }
}
