/** A client of the mirror, as strict as client-go's reflector: it lists, watches, and resumes from the last version it heard. */
import assert from 'node:assert/strict'
import type { Cache } from '../cache/cache.ts'
import type { Form } from '../cache/event.ts'
import type { Watcher } from '../cache/watcher.ts'
import type { Read, ReadRoute } from '../endpoint/request/mirror/front.ts'
import { type Status, StatusError } from '../kube/status.ts'
import { filterOf, type MirrorWorld, settle, type Wish } from './world.test-support.ts'

const form: Form = {
  frame: (type, item) => Buffer.from(`${type} ${item.key} ${item.bytes}\n`),
  bookmark: (version, end) => Buffer.from(`${end ? 'SYNCED' : 'BOOKMARK'} ${version}\n`),
}

/** Frames come a chunk at a time, and one by one out of it: the connection may be cut between any two. */
export class Client {
  readonly wish: Wish
  #world: MirrorWorld
  readonly objects = new Map<string, string>()
  readonly heard: string[] = []
  version = 0
  lists = 0
  /** Every 410 it was told, with the version it had asked for, where that came from, and whether the history begins behind it. */
  readonly expired: { readonly version: number; readonly fromCloud: boolean; readonly isBelowFloor: boolean }[] = []
  /** Whether its state came past the mirror, and nothing since. */
  fromCloud = false
  /** Hears whenever it was told that it knows everything up to its version. */
  claims: () => void = () => undefined
  watcher: Watcher | undefined
  /** What its state came from, and its last watch was of. */
  from: Cache | undefined
  #frames: string[] = []
  #pulling = false
  #holding = false
  readonly #watchList: boolean
  /** What this stream has told, and the uids that were told as deleted. */
  readonly #told = new Set<string>()
  readonly #gone = new Set<string>()

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

  #hold(place: Extract<ReadRoute, { kind: 'hold' }>): void {
    this.#holding = true
    const { interests } = this.#world
    void place.mirrored.synced(10_000).then(() => {
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
    } else if ('cache' in place) {
      const { cache } = place
      const items = cache.list(filterOf(this.wish, cache.plan))
      this.from = cache
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
      this.#relist(cache)
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
    this.#told.clear()
    this.from = cache
    this.watcher = cache.watch({ filter, form, start, bookmarks: true, errorFrame })
  }

  #relist(cache = this.from): void {
    const isBelowFloor = this.version < (cache?.history.floor ?? 0)
    this.expired.push({ version: this.version, fromCloud: this.fromCloud, isBelowFloor })
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
      if (type === 'BOOKMARK' || type === 'SYNCED') {
        this.version = Number(key)
        this.claims()
      } else {
        const version = Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion)
        this.#follows(type, key, text)
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
    // What it has from now on it has been told here.
    if (before !== 0 && this.version > before) this.fromCloud = false
    if (before !== 0) assert.ok(this.version >= before, `${put}: versions went back from ${before} to ${this.version}`)
  }

  /**
   * Whether the event can come next: not one that this stream had, nor one behind another that it never had. Of a gap, whose order
   * a list does not tell, the next stream may tell again what the client had (decision 3 of docs/architecture.md).
   */
  #follows(type: string, key: string, text: string): void {
    const known = this.objects.get(key)
    const says = () => `${JSON.stringify(this.wish)} at ${this.version}: ${type} ${text}, which knows ${known}`
    const { uid } = (JSON.parse(text) as { metadata: { uid: string } }).metadata
    const told = type === 'DELETED' ? uid : text
    const isAgain = type === 'DELETED' ? known === undefined && this.#gone.has(uid) : known === text
    if (isAgain) assert.ok(!this.#told.has(told), `an event twice in one stream: ${says()}`)
    else assert.equal(known !== undefined, type !== 'ADDED', `an event was missed: ${says()}`)
    this.#told.add(told)
    if (type === 'DELETED') this.#gone.add(uid)
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

  /** Its edge has another mirror: that of another cluster. */
  moveTo(world: MirrorWorld): void {
    this.cut()
    this.#world = world
  }

  /** It ends, and another that knows nothing comes. */
  leave(): void {
    this.cut()
    this.version = 0
    this.objects.clear()
  }

  /**
   * Its list came past the mirror, at a version that the copy passed while it had otherwise what is listed there: within a difference that gave that version
   * out too, or up to the first one after a start, or where a link left changes out that were overtaken. Nothing tells it from a client of the
   * copy's own, and it may keep what came and went (decision 3 of docs/architecture.md). Of any other difference it is told 410.
   */
  async isTakenForOwn(cache: Cache): Promise<boolean> {
    const { version, watcher, objects, wish } = this
    const { history } = cache
    if (!this.fromCloud || version === 0 || cache.isGone(version)) return false
    if (version > cache.version || version < history.floor) return false
    const gap = history.unknownAt(version)
    if (gap !== undefined) {
      // One that was ahead until then is told of any.
      if (watcher !== undefined) return false
      const given = [...history.window.after({ version: gap.from, position: gap.position })]
      if (!given.some((event) => event.version === version)) return false
    }
    const then = await cache.listAt(version, filterOf(wish, cache.plan))
    return then.length !== objects.size || then.some(({ key, bytes }) => objects.get(key) !== String(bytes))
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

/** Lets time pass and the clients do their work until it holds. */
export async function stepping(
  world: MirrorWorld,
  clients: readonly Client[],
  holds: () => boolean,
  seconds = 120,
): Promise<void> {
  for (let step = 0; step < seconds * 4 && !holds(); step++) {
    await settle()
    for (const client of clients) client.step()
    await world.pass(250)
  }
  assert.ok(holds(), 'it never came to that')
}
