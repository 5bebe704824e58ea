/** A copy of made-up objects for tests, and readers of its watches that note every frame they were given. */
import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type FakeClock, fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { planFields } from '../kube/object.ts'
import { parseLabelSelector } from '../kube/selector.ts'
import { openMemory } from '../store/memory.ts'
import type { Store } from '../store/store.ts'
import { AuthorityCopy } from './authoritycopy.ts'
import type { Cache } from './cache.ts'
import type { Form } from './event.ts'
import { type Filter, makeFilter } from './filter.ts'
import type { Stream } from './stream.ts'
import type { StreamEvent, StreamStart } from './subscription.ts'
import type { Watcher, WatchStart } from './watcher.ts'

export const interest = '/pods'
export const plan = planFields(['spec.nodeName'])

export type Thing = { readonly value: string; readonly labels?: Record<string, string>; readonly node?: string }

export function bytesOf(key: string, version: number, { value, labels, node }: Thing): Buffer {
  const [namespace, name] = key.split('/')
  const spec = node === undefined ? {} : { nodeName: node }
  const metadata = { name, namespace, resourceVersion: String(version), ...(labels === undefined ? {} : { labels }) }
  return Buffer.from(JSON.stringify({ metadata, spec, value }))
}

export type World = {
  readonly store: Store
  readonly clock: FakeClock
  readonly copy: AuthorityCopy
  readonly cache: Cache
  put(key: string, thing: Thing | string): Promise<number>
  remove(key: string): Promise<number>
}

export async function openWorld(parts: { store?: Store; clock?: FakeClock; historyBytesMax?: number } = {}) {
  const clock = parts.clock ?? fakeClock()
  const store = parts.store ?? openMemory({ historyBytesMax: parts.historyBytesMax ?? 1 << 30 })
  const copy = await AuthorityCopy.open({ store, clock, log: silentLog, planOf: () => plan })
  const world: World = {
    store,
    clock,
    copy,
    cache: copy.cache(interest),
    put: async (key, thing) => {
      const content = typeof thing === 'string' ? { value: thing } : thing
      return (await copy.put(interest, key, (version) => bytesOf(key, version, content))).version
    },
    remove: async (key) => (await copy.remove(interest, key)).version,
  }
  return world
}

export type Asked = {
  readonly namespace?: string
  readonly name?: string
  readonly labels?: string
  readonly fields?: string
}

export function filterFor({ namespace = '', name, labels = '', fields = '' }: Asked): Filter {
  const paths = { 'spec.nodeName': { path: 'spec.nodeName' } }
  return makeFilter({
    namespaced: true,
    namespace,
    ...(name === undefined ? {} : { name }),
    labels: parseLabelSelector(labels),
    fields: parseFieldSelector(fields),
    paths,
    plan,
  })
}

export const form: Form = {
  frame: (type, item) => Buffer.from(`${type} ${item.version} ${item.key} ${labelled(item.bytes)}\n`),
  bookmark: (version, end) => Buffer.from(`${end ? 'SYNCED' : 'BOOKMARK'} ${version}\n`),
}

/** The version is read from the bytes: a frame's object has to carry its own label. */
function labelled(bytes: Buffer): string {
  const { value, metadata } = JSON.parse(bytes.toString()) as { value: string; metadata: { resourceVersion: string } }
  return `${value}@${metadata.resourceVersion}`
}

/** Large values are for the queues: in a message only their length matters. */
export function shortened(frame: string): string {
  return frame.replace(/v{20,}/, (filler) => `v*${filler.length}`)
}

/** Rounds of the event loop after which a pull of what is in memory has long been answered. */
const idleTurns = 20

/** Pulls what a watch or a stream tells, one pull at a time. */
abstract class Puller {
  readonly frames: string[] = []
  ended = false
  #pulling: Promise<void> | undefined

  protected abstract take(): Promise<Buffer | undefined>

  /** Takes one chunk; does nothing while an earlier pull still waits. */
  pull(): Promise<void> {
    this.#pulling ??= this.take().then((chunk) => {
      this.#pulling = undefined
      if (chunk === undefined) this.ended = true
      else this.frames.push(...chunk.toString().trimEnd().split('\n').map(shortened))
    })
    return this.#pulling
  }

  /**
   * Takes everything that is there without waiting for more: ends when a pull stays open for some rounds of the loop. From
   * a store in another thread `frames` says how many there have to be before that counts.
   */
  async drain(frames = 0): Promise<string[]> {
    const deadlineMs = Date.now() + 20_000
    while (!this.ended) {
      let isOver = false
      const pulled = this.pull().finally(() => {
        isOver = true
      })
      for (let turn = 0; turn < idleTurns && !isOver; turn++) await nextTurn()
      if (isOver) await pulled
      else if (this.frames.length >= frames || Date.now() > deadlineMs) break
    }
    return this.frames
  }
}

export class Reader extends Puller {
  readonly watcher: Watcher

  constructor(cache: Cache, start: WatchStart, asked: Asked = {}, bookmarks = false) {
    super()
    const errorFrame = ({ code, message }: { code?: number; message?: string }) =>
      Buffer.from(`ERROR ${code} ${message}\n`)
    this.watcher = cache.watch({ filter: filterFor(asked), form, start, bookmarks, errorFrame })
  }

  protected async take(): Promise<Buffer | undefined> {
    return (await this.watcher.next()).value as Buffer | undefined
  }

  async close(): Promise<void> {
    await this.watcher.return()
  }
}

/** Notes a stream's events as the frames of a watch would tell them. */
export class StreamReader extends Puller {
  readonly stream: Stream
  readonly events: StreamEvent[] = []
  /** What it was told of each object; undefined once that is gone. */
  readonly #has = new Map<string, Buffer | undefined>()

  constructor(cache: Cache, start: StreamStart, asked: Asked = {}, bookmarks = false) {
    super()
    this.stream = cache.stream({ filter: filterFor(asked), start, bookmarks })
  }

  protected async take(): Promise<Buffer | undefined> {
    const { value } = await this.stream.next()
    if (value === undefined) return undefined
    this.events.push(...value)
    return Buffer.concat(value.map((event) => this.#spell(event)))
  }

  #spell(event: StreamEvent): Buffer {
    if (event.type === 'BOOKMARK') return form.bookmark(event.version, event.endsState)
    const { type, item, previous } = event
    // What it had is told with the change, so that a difference can be sent; of what came before it nothing is known.
    if (this.#has.has(item.key)) assert.equal(previous?.bytes.toString(), this.#has.get(item.key)?.toString())
    this.#has.set(item.key, type === 'DELETED' ? undefined : item.bytes)
    return form.frame(type, item)
  }

  async close(): Promise<void> {
    await this.stream.return()
  }
}

export const after = (version: number): WatchStart => ({ kind: 'after', version })
