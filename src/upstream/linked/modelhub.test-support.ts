/** A hub with one collection in memory: real sessions and streams over any pair of ends, as a test commands. */
import type { Clock } from '../../base/clock.ts'
import { DigestTree } from '../../link/digest/digest.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../../link/frames/frames.ts'
import { HubSession } from '../../link/session/hub.ts'
import {
  digestEntry,
  type HubEffect,
  type InterestView,
  type LinkEvent,
  type LinkObject,
} from '../../link/session/session.ts'
import { SharedChanges } from '../../link/session/sharedchanges.ts'
import type { LinkHandlers, LinkSocket } from '../../link/socket/linksocket.ts'
import { standardTunnelLimits } from '../../tunnel/limits.ts'
import { RequestServer, type TunnelledReply, type TunnelledRequest } from '../../tunnel/request/serve.ts'
import { TunnelStreams } from '../../tunnel/streams.ts'
import type { LinkWire } from './livelink.ts'

type HubWire = Pick<LinkSocket<unknown>, 'begin' | 'send' | 'close'>

const secret = Buffer.from('a secret of the model hub')
const modelSource = 1

export type ModelHubParts = {
  readonly clock: Clock
  /** What its one collection is called. */
  readonly interest: string
  readonly handle?: (request: TunnelledRequest) => Promise<TunnelledReply>
  /** How far the API server is; without it the hub cannot ask. */
  readonly newest?: () => number
}

export type HubState = { readonly cluster: string; readonly epoch: number; readonly lost: number }

export class ModelHub implements InterestView {
  readonly source = modelSource
  version = 1
  floor = 0
  cluster = 'c1'
  epoch = 1
  /** Said to the next edge that comes. */
  trustsEdges = false
  digest = new DigestTree(secret)
  /** Frames and bytes to edges, and from them. */
  readonly counts = { sent: 0, sentBytes: 0, received: 0, receivedBytes: 0 }
  readonly #parts: ModelHubParts
  readonly #changes = new SharedChanges()
  /** How long ago it last heard of the cluster, of the one source that it has. */
  ageMs = 0
  #objects = new Map<string, LinkObject>()
  #history: LinkEvent[] = []
  #lost = 0
  readonly #ends = new Set<ModelEnd>()

  constructor(parts: ModelHubParts) {
    this.#parts = parts
  }

  get ends(): readonly ModelEnd[] {
    return [...this.#ends]
  }

  accept(wire: HubWire): ModelEnd {
    const { clock, interest, handle, newest } = this.#parts
    const session = new HubSession({
      ...{ hub: 'model', release: '1', cluster: this.cluster, epoch: this.epoch, lost: this.#lost, digestKey: secret },
      ...{ now: clock.steady(), changes: this.#changes, admit: () => undefined },
      ...{ ageMs: () => this.ageMs, trustsEdges: this.trustsEdges },
    })
    const gone = () => void this.#ends.delete(end)
    const end: ModelEnd = new ModelEnd({ wire, session, view: this, interest, clock, handle, newest, gone })
    this.#ends.add(end)
    return end
  }

  /** `isTold`: or no link hears of it, as if it had got lost without a sign. */
  change(key: string, item: LinkObject | undefined, version: number, isTold = true, isRelabelled = false): void {
    const previous = this.#objects.get(key)
    this.version = version
    if (item === undefined) {
      this.#objects.delete(key)
      this.digest.remove(key)
    } else {
      this.#objects.set(key, item)
      this.digest.put(digestEntry(item))
    }
    const event = { key, version, item, previous, isRelabelled }
    this.#history.push(event)
    if (isTold) for (const end of this.#ends) end.event(event)
  }

  /** A list has told it that these are all there are: as the history of a mirror has such a gap. */
  differ(objects: readonly LinkObject[], version: number): void {
    const [from, found] = [this.version, new Map(objects.map((item) => [item.key, item]))]
    const gone = [...this.#objects.values()].filter(({ key, uid }) => found.get(key)?.uid !== uid)
    for (const { key } of gone) this.change(key, undefined, from, true, true)
    const changed = objects.filter((item) => this.#objects.get(item.key)?.version !== item.version)
    for (const item of changed.sort((a, b) => a.version - b.version)) {
      const isPutBack = item.version <= from
      this.change(item.key, item, isPutBack ? from + 1 : item.version, true, isPutBack)
    }
    this.version = version
    if (gone.length > 0) this.floor = version
  }

  /** Everything that happened so far, but its result. */
  forget(): void {
    this.#history = []
    this.floor = this.version
  }

  /** Another past: these objects are all there is. */
  restore(objects: readonly LinkObject[], version: number): void {
    this.#lost = Math.max(this.#lost, this.version)
    this.epoch++
    this.restart(objects, version)
    for (const { session, tick } of this.#ends) {
      session.lost(this.epoch, this.#lost)
      tick()
    }
  }

  /** Another process in its place, that knows these objects and no other past. */
  restart(objects: readonly LinkObject[], version: number): void {
    this.version = version
    this.#objects = new Map(objects.map((item) => [item.key, item]))
    this.digest = new DigestTree(secret)
    for (const item of objects) this.digest.put(digestEntry(item))
    this.forget()
  }

  /** What the hubs of a cluster have written down of it. */
  get state(): HubState {
    return { cluster: this.cluster, epoch: this.epoch, lost: this.#lost }
  }

  /** Another process in its place that stands before another cluster. */
  stand({ cluster, epoch, lost }: HubState, objects: readonly LinkObject[], version: number): void {
    Object.assign(this, { cluster, epoch })
    this.#lost = lost
    this.restart(objects, version)
  }

  progress(): void {
    for (const { session, tick } of this.#ends) {
      session.progress(modelSource, this.version)
      tick()
    }
  }

  drain(withinMs: number): void {
    for (const { session, tick } of this.#ends) {
      session.drain(withinMs, 'another hub is nearer', this.#parts.clock.steady())
      tick()
    }
  }

  get(key: string): LinkObject | undefined {
    return this.#objects.get(key)
  }

  *behind(after: string): Generator<LinkObject> {
    for (const key of [...this.#objects.keys()].sort()) if (key > after) yield this.#objects.get(key) as LinkObject
  }

  since(version: number): readonly LinkEvent[] {
    return this.#history.filter((event) => event.version > version)
  }

  near(): undefined {
    return undefined
  }
}

type EndParts = {
  readonly wire: HubWire
  readonly session: HubSession
  readonly view: ModelHub
  readonly interest: string
  readonly clock: Clock
  readonly handle: ModelHubParts['handle']
  readonly newest: ModelHubParts['newest']
  readonly gone: () => void
}

/** One link of an edge. */
export class ModelEnd {
  readonly session: HubSession
  /** What came from the edge. */
  readonly frames: LinkFrame[] = []
  streams: TunnelStreams | undefined
  /** Nothing that comes is read, and nothing is said. */
  isStill = false
  readonly #parts: EndParts
  readonly #interests = new Set<number>()
  #isFull = false

  constructor(parts: EndParts) {
    this.#parts = parts
    this.session = parts.session
    parts.wire.begin({
      frame: (bytes) => this.#receive(bytes),
      ready: () => {
        this.#isFull = false
        this.#pump()
      },
      closed: () => {
        this.streams?.close('the edge is gone')
        parts.gone()
      },
    })
  }

  readonly tick = (): void => {
    queueMicrotask(() => this.#act(this.session.tick(this.#parts.clock.steady())))
  }

  event(event: LinkEvent): void {
    for (const number of this.#interests) this.session.event(number, event)
    if (this.#interests.size > 0) this.tick()
  }

  #receive(bytes: Buffer): void {
    if (this.isStill) return
    const { counts } = this.#parts.view
    counts.received++
    counts.receivedBytes += bytes.length
    const frame = decodeFrame(Buffer.from(bytes)) as LinkFrame
    this.frames.push(frame)
    this.#act(this.session.receive(frame, this.#parts.clock.steady()))
  }

  #act(effects: readonly HubEffect[]): void {
    const { view, interest, wire, newest } = this.#parts
    for (const effect of effects)
      if (effect.effect === 'send') this.#send(effect.frame)
      else if (effect.effect === 'close') wire.close('done', effect.sentence)
      else if (effect.effect === 'tunnel') this.streams?.receive(effect.frame)
      else if (effect.effect === 'release') this.#interests.delete(effect.interest)
      else if (effect.effect === 'ahead') {
        if (newest !== undefined && this.session.measured(effect.interest, newest())) this.tick()
      } else if (effect.effect === 'open' && effect.name === interest) {
        this.#interests.add(effect.interest)
        this.session.opened(effect.interest, view)
        this.tick()
      } else if (effect.effect === 'open') {
        this.session.refuse(effect.interest, { reason: 'unknown', retryAfterMs: 0, sentence: 'no such thing' })
        this.tick()
      }
    if (this.session.state === 'open') this.#openStreams()
  }

  #openStreams(): void {
    const { handle } = this.#parts
    if (this.streams !== undefined || handle === undefined) return
    const server = new RequestServer({ handle, callerRequestsMax: 100 })
    this.streams = new TunnelStreams({
      ...{ side: 'hub', limits: standardTunnelLimits },
      accept: (incoming) => server.accept(incoming),
      ready: () => this.#pump(),
    })
  }

  #pump(): void {
    for (;;) {
      const frame = this.streams?.next(!this.#isFull)
      if (frame === undefined) return
      this.#send(frame)
    }
  }

  #send(frame: LinkFrame): void {
    if (this.isStill) return
    const { counts } = this.#parts.view
    const bytes = encodeFrame(frame)
    counts.sent++
    counts.sentBytes += bytes.length
    if (!this.#parts.wire.send(bytes)) this.#isFull = true
  }
}

/** Two ends in memory, without a socket: what is sent arrives in order in a later turn, as long as the line holds. */
export class MemoryLine {
  readonly edge: LinkWire
  readonly hub: HubWire
  /** So many more arrive at the edge before the line breaks. */
  framesMax = Number.POSITIVE_INFINITY
  #isCut = false
  readonly #handlers: { edge?: LinkHandlers; hub?: LinkHandlers } = {}

  constructor(address = 'memory:') {
    const peer = { address, resumed: false, endsAtMs: 0 }
    this.edge = { ...this.#end('edge'), peer, cut: (why) => this.cut(why) }
    this.hub = this.#end('hub')
  }

  /** Both sides notice. */
  cut(why = 'connection closed'): void {
    if (this.#isCut) return
    this.#isCut = true
    queueMicrotask(() => {
      this.#handlers.edge?.closed({ by: 'line', why })
      this.#handlers.hub?.closed({ by: 'line', why })
    })
  }

  #end(side: 'edge' | 'hub'): HubWire {
    const other = side === 'edge' ? 'hub' : 'edge'
    return {
      begin: (handlers) => {
        this.#handlers[side] = handlers
      },
      send: (frame) => {
        if (this.#isCut) return false
        const bytes = Buffer.from(frame)
        setImmediate(() => {
          if (other === 'edge' && this.framesMax-- === 0) this.cut()
          if (!this.#isCut) this.#handlers[other]?.frame(bytes)
        })
        return true
      },
      close: (_code, why) => void setImmediate(() => this.cut(why)),
    }
  }
}

/** What an edge knows whose copies have come to these epochs; any hub is of its cluster. */
export function knownBy(epochs: ReadonlyMap<string, number>) {
  const known = () => {
    const epoch = Math.max(0, ...epochs.values())
    return { cluster: epoch === 0 ? '' : 'c1', epoch }
  }
  return { known, admit: () => Promise.resolve(undefined) }
}
