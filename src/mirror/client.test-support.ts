/** A client of the mirror, as strict as client-go's reflector: it lists, watches, and resumes from the last version it heard. */
import assert from 'node:assert/strict'
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
