/** What a box mirrors over its link, in memory and as an edge does, and a client's watch of it that is open all the time. */
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Form } from '../../src/cache/event.ts'
import { MirrorCopy } from '../../src/cache/mirrorcopy.ts'
import { interestOf, resourceOfName } from '../../src/mirror/interest.ts'
import { Interests } from '../../src/mirror/interests.ts'
import { filterOf, known, scopeOf } from '../../src/mirror/world.test-support.ts'
import { openMemory } from '../../src/store/memory.ts'
import type { OpenFollow } from '../../src/upstream/follow/follow.ts'
import type { EdgeLink } from '../../src/upstream/linked/edgelink.ts'
import { followLinked } from '../../src/upstream/linked/followlinked.ts'
import type { Upstream } from '../../src/upstream/upstream.ts'

const syncedMsMax = 60_000
const historyBytesMax = 1024 * 1024
const limits = { objects: 1_000, bytes: historyBytesMax }

const form: Form = {
  frame: (type, { bytes }) => Buffer.from(`${type} ${bytes}\n`),
  bookmark: (version) => Buffer.from(`BOOKMARK ${version}\n`),
}

type Parts = { readonly link: EdgeLink; readonly upstream: Upstream; readonly node: string }

export class BoxCopy {
  /** What the client of the watch was told, objects and bookmarks. */
  heard = ''
  /** Why the watch is over; it never is. */
  over: string | undefined
  /** How often the pods were read as a whole. */
  wholes = 0
  readonly #ending = new AbortController()
  readonly #parts: Parts
  #running: Promise<unknown> = Promise.resolve()

  private constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Resolves when the watch is open. */
  static async open(parts: Parts): Promise<BoxCopy> {
    const copy = new BoxCopy(parts)
    await copy.#begin()
    return copy
  }

  async end(): Promise<void> {
    this.#ending.abort()
    await this.#running
  }

  async #begin(): Promise<void> {
    const { link, upstream, node } = this.#parts
    const [clock, log, store] = [systemClock, silentLog, openMemory({ historyBytesMax })]
    const passed = new Map<string, number>()
    const epochs = {
      of: (name: string) => passed.get(name),
      reached: (name: string, epoch: number) => void passed.set(name, epoch),
    }
    const nameOf: Parameters<typeof followLinked>[0]['nameOf'] = (scope) => interestOf(scope).name
    const follow = this.#counted(followLinked({ link, upstream, epochs, nameOf, limits, clock }))
    const interests = await Interests.open({
      ...{ store, upstream, follow, clock, log, spreadMs: 0 },
      find: (_group, _version, resource) => known(resource),
      confirm: () => Promise.resolve(false),
    })
    const { planOf, lostOf } = interests
    const copy = await MirrorCopy.open({ store, clock, log, planOf, lostOf, resourceOf: resourceOfName })
    interests.attach(copy)
    const { signal } = this.#ending
    this.#running = Promise.all([interests.run(signal), copy.run(signal)])
    const wish = { fields: `spec.nodeName=${node}` }
    const mirrored = interests.begin(scopeOf(wish), known(), { standing: true })
    const outcome = await mirrored?.synced(syncedMsMax)
    const cache = mirrored?.cache
    if (cache === undefined) throw new Error(`the pods of ${node} are not mirrored: ${outcome}`)
    const watcher = cache.watch({
      ...{ filter: filterOf(wish, cache.plan), form, bookmarks: true },
      start: { kind: 'after', version: cache.version },
      errorFrame: ({ code }) => Buffer.from(`ERROR ${code}\n`),
    })
    void this.#hear(watcher)
  }

  async #hear(watcher: AsyncIterable<Buffer>): Promise<void> {
    for await (const frames of watcher) this.heard += frames.toString()
    if (!this.#ending.signal.aborted) this.over = `it ended after ${this.heard.slice(-200)}`
  }

  #counted(follow: OpenFollow): OpenFollow {
    return (collection) => {
      const follower = follow(collection)
      const told = (kind: string) => {
        if (kind === 'complete') this.wholes++
      }
      return {
        ...follower,
        follow: async function* (from, signal) {
          for await (const step of follower.follow(from, signal)) {
            told(step.kind)
            yield step
          }
        },
      }
    }
  }
}
