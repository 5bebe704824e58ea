/** A cluster with everything that ever was in it, and hubs that follow it with short histories, at paces of their own. */
import { DigestTree } from '../digest/digest.ts'
import { HubSession } from './hub.ts'
import type { SessionLimits } from './limits.ts'
import { digestEntry, type HubEffect, type InterestView, type LinkEvent, type LinkObject } from './session.ts'
import { SharedChanges } from './sharedchanges.ts'

const digestKey = Buffer.from('a secret of the hubs')

type Entry = LinkEvent & { readonly source: number }

/** An object as the simulation spells it: what an edge reads off its bytes. */
export function identify(bytes: Buffer): { readonly uid: string } {
  const text = bytes.toString('latin1', 0, 80)
  return { uid: text.slice(text.indexOf('u='), text.indexOf(';')) }
}

/** `s0` is a source, `s0/a` what is in one namespace of it, `s0?x` what has a label. */
export function selects(name: string): { readonly source: number; matches(item: LinkObject): boolean } {
  const source = Number(name[1])
  if (name[2] === '/') return { source, matches: ({ key }) => key.startsWith(`${name[3]}/`) }
  if (name[2] === '?') return { source, matches: ({ bytes }) => bytes.includes('label=x') }
  return { source, matches: () => true }
}

export class SimulatedCluster {
  readonly uid: string
  epoch = 1
  /** The versions of earlier epochs were at most this. */
  lost = 0
  version = 10
  log: Entry[] = []
  #objects = new Map<string, LinkObject>()
  #uids = 0

  constructor(uid: string) {
    this.uid = uid
  }

  /** A write, or a deletion where there is no text. */
  change(source: number, key: string, text: string | undefined, isNew = false): void {
    const place = `${source} ${key}`
    const previous = this.#objects.get(place)
    if (text === undefined && previous === undefined) return
    if (isNew && previous !== undefined) this.change(source, key, undefined)
    this.version++
    const version = this.version
    const uid = previous === undefined || isNew ? `u=${this.uid}.${this.epoch}.${++this.#uids}` : previous.uid
    const bytes = Buffer.from(`${uid};v=${version};${text}`)
    const item = text === undefined ? undefined : { key, uid, version, bytes }
    this.log.push({ source, key, version, item, previous: isNew ? undefined : previous })
    if (item === undefined) this.#objects.delete(place)
    else this.#objects.set(place, item)
  }

  /** What was there at a version. */
  at(source: number, version: number): Map<string, LinkObject> {
    const objects = new Map<string, LinkObject>()
    for (const entry of this.log) {
      if (entry.version > version) break
      if (entry.source !== source) continue
      if (entry.item === undefined) objects.delete(entry.key)
      else objects.set(entry.key, entry.item)
    }
    return objects
  }

  /** An earlier state is put back; versions go on from there and mean something else. */
  restore(to: number): void {
    this.lost = Math.max(this.lost, this.version)
    this.epoch++
    this.restoreUnseen(to)
  }

  /** The same while no hub runs, with the state of the hubs: no hub knows of it. */
  restoreUnseen(to: number): void {
    this.version = to
    this.log = this.log.filter(({ version }) => version <= to)
    this.#objects = new Map()
    for (const source of [0, 1])
      for (const [key, item] of this.at(source, to)) this.#objects.set(`${source} ${key}`, item)
  }
}

class SimulatedSource {
  version = 0
  floor = 0
  objects = new Map<string, LinkObject>()
  history: LinkEvent[] = []
}

class View implements InterestView {
  readonly source: number
  readonly #of: SimulatedSource
  readonly #matches: (item: LinkObject) => boolean
  digest = new DigestTree(digestKey)

  constructor(name: string, sources: readonly SimulatedSource[]) {
    const { source, matches } = selects(name)
    this.source = source
    this.#matches = matches
    this.#of = sources[source] as SimulatedSource
    this.reset()
  }

  reset(): void {
    this.digest = new DigestTree(digestKey)
    for (const item of this.behind('')) this.digest.put(digestEntry(item))
  }

  get version(): number {
    return this.#of.version
  }

  get floor(): number {
    return this.#of.floor
  }

  get(key: string): LinkObject | undefined {
    const item = this.#of.objects.get(key)
    return item !== undefined && this.#matches(item) ? item : undefined
  }

  *behind(after: string): Generator<LinkObject> {
    for (const key of [...this.#of.objects.keys()].sort()) {
      const item = key > after ? this.get(key) : undefined
      if (item !== undefined) yield item
    }
  }

  *since(version: number): Generator<LinkEvent> {
    for (const event of this.#of.history) {
      const seen = event.version > version ? this.see(event) : undefined
      if (seen !== undefined) yield seen
    }
  }

  near(key: string): LinkObject | undefined {
    for (const item of this.behind('')) if (item.key !== key) return item
    return undefined
  }

  see({ key, version, item, previous }: LinkEvent): LinkEvent | undefined {
    const after = item !== undefined && this.#matches(item) ? item : undefined
    const before = previous !== undefined && this.#matches(previous) ? previous : undefined
    return after === undefined && before === undefined ? undefined : { key, version, item: after, previous: before }
  }

  apply({ key, item }: LinkEvent): void {
    if (item === undefined) this.digest.remove(key)
    else this.digest.put(digestEntry(item))
  }
}

/** One link of an edge at a hub. */
export type HubEnd = { readonly session: HubSession; readonly interests: Map<number, string> }

export class SimulatedHub {
  readonly name: string
  uid = ''
  epoch = 0
  lost = 0
  readonly ends = new Set<HubEnd>()
  readonly #historyMax: number
  readonly #limits: SessionLimits
  /** Of documents, unless there are none. */
  signs: readonly Buffer[] = []
  readonly #sources = [new SimulatedSource(), new SimulatedSource()]
  readonly #views = new Map<string, View>()
  #changes = new SharedChanges()
  /** Whom it asks how far the API server is. */
  #cluster: SimulatedCluster

  constructor(name: string, cluster: SimulatedCluster, parts: { historyMax: number; limits: SessionLimits }) {
    this.name = name
    this.#historyMax = parts.historyMax
    this.#limits = parts.limits
    this.#cluster = cluster
    this.start(cluster)
  }

  /** With nothing but a list, of the cluster as it is. Its edges are told where it is the same cluster. */
  start(cluster: SimulatedCluster): void {
    this.#cluster = cluster
    const { uid, epoch, lost } = cluster
    const isPutBack = uid === this.uid && epoch !== this.epoch
    Object.assign(this, { uid, epoch, lost })
    for (const [number, source] of this.#sources.entries()) {
      source.objects = cluster.at(number, cluster.version)
      source.version = cluster.version
      source.floor = cluster.version
      source.history = []
    }
    for (const view of this.#views.values()) view.reset()
    if (isPutBack) for (const { session } of this.ends) session.lost(epoch, lost)
  }

  connect(now: number): HubEnd {
    const { name: hub, uid: cluster, epoch, lost } = this
    const session = new HubSession({
      ...{ hub, release: '1', cluster, epoch, lost, digestKey, now },
      changes: this.#changes,
      admit: () => undefined,
      signs: () => this.signs,
      limits: this.#limits,
    })
    const end = { session, interests: new Map<number, string>() }
    this.ends.add(end)
    return end
  }

  /** What the hub does with the wishes of an edge. */
  serve(end: HubEnd, effect: HubEffect): void {
    if (effect.effect === 'open' && !/^s[01]/.test(effect.name))
      end.session.refuse(effect.interest, { reason: 'unknown', retryAfterMs: 0, sentence: 'no such thing' })
    else if (effect.effect === 'open') {
      end.interests.set(effect.interest, effect.name)
      end.session.opened(effect.interest, this.#view(effect.name))
    } else if (effect.effect === 'release') end.interests.delete(effect.interest)
    else if (effect.effect === 'ahead') end.session.measured(effect.interest, this.#cluster.version)
    else if (effect.effect === 'close') this.ends.delete(end)
  }

  /** Follows a source up to a version. */
  advance(cluster: SimulatedCluster, number: number, upTo: number): void {
    const source = this.#sources[number] as SimulatedSource
    if (cluster.uid !== this.uid || cluster.epoch !== this.epoch || upTo <= source.version) return
    for (const entry of cluster.log) {
      if (entry.source !== number || entry.version <= source.version || entry.version > upTo) continue
      this.#publish(source, number, entry)
    }
    source.version = upTo
  }

  progress(number: number): void {
    const { version } = this.#sources[number] as SimulatedSource
    for (const { session } of this.ends) session.progress(number, version)
  }

  #publish(source: SimulatedSource, number: number, event: LinkEvent): void {
    if (event.item === undefined) source.objects.delete(event.key)
    else source.objects.set(event.key, event.item)
    source.version = event.version
    source.history.push(event)
    if (source.history.length > this.#historyMax) source.floor = (source.history.shift() as LinkEvent).version
    for (const [name, view] of this.#views) {
      const seen = view.source === number ? view.see(event) : undefined
      if (seen === undefined) continue
      view.apply(seen)
      for (const { session, interests } of this.ends)
        for (const [interest, wanted] of interests) if (wanted === name) session.event(interest, seen)
    }
  }

  #view(name: string): View {
    let view = this.#views.get(name)
    if (view === undefined) {
      view = new View(name, this.#sources)
      this.#views.set(name, view)
    }
    return view
  }
}
