/** A hub over the model API server, and edges with real sessions before it, on lines in memory that can be held up or cut. */
import assert from 'node:assert/strict'
import { createLog, type Log } from '../../base/log.ts'
import { Warnings } from '../../base/warnings.ts'
import { planFor } from '../../cache/filter.ts'
import { builtinFacts } from '../../kube/builtin.ts'
import { selectableFields } from '../../kube/fields.ts'
import { DigestTree } from '../../link/digest/digest.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../../link/frames/frames.ts'
import { EdgeSession } from '../../link/session/edge.ts'
import type { SessionLimits } from '../../link/session/limits.ts'
import {
  digestEntry,
  type EdgeEffect,
  type InterestWish,
  type PartialSnapshot,
  type StagedChange,
} from '../../link/session/session.ts'
import { standardLinkLimits } from '../../link/socket/limits.ts'
import type { LinkClose, LinkHandlers } from '../../link/socket/linksocket.ts'
import type { ApiServer } from '../../mirror/apiserver.test-support.ts'
import type { Mirrored } from '../../mirror/mirror.ts'
import { MirrorWorld, settle } from '../../mirror/world.test-support.ts'
import { openMemory } from '../../store/memory.ts'
import { standardTunnelLimits } from '../../tunnel/limits.ts'
import { type IncomingStream, TunnelStreams } from '../../tunnel/streams.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import { HubSources } from '../sources/sources.ts'
import type { PeerSocket } from './linkededge.ts'
import { HubPeers } from './peers.ts'
import type { EdgeRights, PeerPolicies } from './rights.ts'

const digestKey = Buffer.from('a secret of the hubs')
const allRights: EdgeRights = { judge: () => Promise.resolve(undefined), left: () => undefined }

const catalog = new Map<string, Mirrored>(
  builtinFacts().resources.map((resource) => {
    const { group, version, resource: plural } = resource
    const fields = selectableFields(resource)
    const mirrored = { resource, fields, plan: planFor([fields.paths]), mirrorable: plural !== 'events' }
    return [`${group}/${version}/${plural}`, mirrored]
  }),
)

type Copied = { readonly version: number; readonly bytes: Buffer }

/** What an edge keeps of an interest, over any number of links. */
export class EdgeCopy {
  readonly name: string
  version = 0
  wish: InterestWish = 'resume'
  objects = new Map<string, Copied>()
  ahead = new Map<string, Buffer>()
  staged: StagedChange[] = []
  partial: PartialSnapshot | undefined
  number = 0
  /** How it began, each time. */
  readonly starts: string[] = []
  refusal: { readonly reason: string; readonly sentence: string; readonly retryAfterMs: number } | undefined

  constructor(name: string) {
    this.name = name
  }

  get names(): string[] {
    return [...this.objects.keys()].sort()
  }

  value(key: string): string | undefined {
    const bytes = this.objects.get(key)?.bytes
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as { value: string }).value
  }
}

/** The hub's end, as a socket would be. */
class MemoryLine implements PeerSocket {
  readonly peer: EdgePeer
  readonly #edge: TestEdge
  handlers: LinkHandlers | undefined
  /** What is sent waits meanwhile. */
  isHeldUp = false
  isOver = false
  closed: { readonly code: LinkClose | 'cut'; readonly why: string } | undefined
  readonly #held: Buffer[] = []
  #isFull = false
  bufferedBytes = 0
  bufferedMost = 0

  constructor(peer: EdgePeer, edge: TestEdge) {
    this.peer = peer
    this.#edge = edge
  }

  begin(handlers: LinkHandlers): void {
    this.handlers = handlers
  }

  send(frame: Buffer): boolean {
    if (this.isOver) return false
    this.#held.push(Buffer.from(frame))
    this.bufferedBytes += frame.length
    this.bufferedMost = Math.max(this.bufferedMost, this.bufferedBytes)
    if (!this.isHeldUp) queueMicrotask(() => this.#deliver())
    this.#isFull ||= this.bufferedBytes >= standardLinkLimits.fullBytes
    return !this.#isFull
  }

  release(): void {
    this.isHeldUp = false
    this.#deliver()
  }

  #deliver(): void {
    if (this.isHeldUp) return
    for (const frame of this.#held.splice(0)) {
      this.bufferedBytes -= frame.length
      this.#edge.receive(decodeFrame(frame) as LinkFrame, this)
    }
    if (!this.#isFull || this.isOver || this.bufferedBytes > standardLinkLimits.fullBytes / 2) return
    this.#isFull = false
    this.handlers?.ready()
  }

  close(code: LinkClose, why: string): void {
    this.#deliver()
    this.#end({ code, why })
  }

  cut(why: string): void {
    this.#end({ code: 'cut', why })
  }

  #end(closed: NonNullable<MemoryLine['closed']>): void {
    if (this.isOver) return
    this.isOver = true
    this.closed = closed
    this.handlers?.closed({ by: 'us', why: closed.why })
  }

  /** The line breaks. */
  lose(): void {
    if (this.isOver) return
    this.isOver = true
    this.handlers?.closed({ by: 'line', why: 'connection closed' })
  }
}

export class TestEdge {
  readonly name: string
  /** What it says that it is. */
  hello: string
  readonly copies: EdgeCopy[]
  session: EdgeSession | undefined
  streams: TunnelStreams | undefined
  line: MemoryLine | undefined
  readonly received: LinkFrame[] = []
  ended: { readonly reason: string; readonly sentence: string; readonly retryAfterMs: number } | undefined
  moves: number | undefined
  /** Hears whenever the edge claims that its copy is what the cluster had at its version. */
  claims: (copy: EdgeCopy) => void = () => undefined
  /** Hears what goes wrong while frames are taken: that is in a turn of the line, or of the hub, which no test awaits. */
  failed: (error: unknown) => void = (error) => {
    throw error
  }
  cluster = ''
  epoch = 0
  #digestKey: Buffer = digestKey
  /** The hub that it comes to with its next link. */
  world: HubWorld

  constructor(world: HubWorld, name: string, interests: readonly string[]) {
    this.world = world
    this.name = name
    this.hello = name
    this.copies = interests.map((interest) => new EdgeCopy(interest))
  }

  copy(name = this.copies[0]?.name): EdgeCopy {
    return this.copies.find((copy) => copy.name === name) as EdgeCopy
  }

  connect(more: { endsAtMs?: number; issuedAtMs?: number; from?: string } = {}): MemoryLine {
    const { clock } = this.world.mirror.server
    const endsAtMs = more.endsAtMs ?? clock.now() + 365 * 24 * 3_600_000
    const certificate = {
      serial: '1',
      fingerprint: 'aa',
      signer: 'hub' as const,
      authority: '',
      issuedAtMs: more.issuedAtMs ?? 0,
      vouchedAtMs: 0,
      endsAtMs,
    }
    const { from = '10.0.0.1' } = more
    const line = new MemoryLine({ name: this.name, certificate, resumed: false, from }, this)
    this.#begin(line)
    this.world.peers.accept(line)
    this.tick()
    return line
  }

  /** Over another line, which takes what the edge sends; what comes is told by `receive`. */
  over(send: (bytes: Buffer) => void): MemoryLine {
    const certificate = {
      serial: '',
      fingerprint: '',
      signer: 'hub' as const,
      authority: '',
      issuedAtMs: 0,
      vouchedAtMs: 0,
      endsAtMs: 0,
    }
    const line = new MemoryLine({ name: this.name, certificate, resumed: false, from: '' }, this)
    line.begin({ frame: send, ready: () => undefined, closed: () => undefined })
    this.#begin(line)
    this.tick()
    return line
  }

  #begin(line: MemoryLine): void {
    const now = this.world.mirror.server.clock.steady()
    this.line = line
    this.ended = undefined
    this.received.length = 0
    const { cluster, epoch, hello: edge } = this
    const held = (number: number, key: string) => this.#numbered(number)?.ahead.get(key)
    this.session = new EdgeSession({ edge, release: '1', cluster, epoch, keepaliveMs: 30_000, held, now })
    this.streams = undefined
    for (const copy of this.copies) {
      const { version, wish, partial } = copy
      copy.number = this.session.subscribe(copy.name, { epoch, version, wish, partial })
      copy.ahead = new Map([...copy.objects].map(([key, { bytes }]) => [key, bytes]))
    }
  }

  /** As an edge would do from time to time. */
  tick(): void {
    this.#do(this.session?.tick(this.world.mirror.server.clock.steady()) ?? [])
  }

  receive(frame: LinkFrame, from: MemoryLine): void {
    if (from !== this.line) return
    this.received.push(frame)
    try {
      this.#do(this.session?.receive(frame, this.world.mirror.server.clock.steady()) ?? [])
    } catch (error) {
      this.failed(error)
    }
  }

  send(frame: LinkFrame): void {
    if (this.line?.isOver === false) this.line.handlers?.frame(encodeFrame(frame))
  }

  sendStreams = (): void => {
    for (let frame = this.streams?.next(true); frame !== undefined; frame = this.streams?.next(true)) this.send(frame)
  }

  #numbered(number: number): EdgeCopy | undefined {
    return this.copies.find((copy) => copy.number === number)
  }

  #do(effects: readonly EdgeEffect[]): void {
    for (const effect of effects) {
      if (effect.effect === 'send') this.send(effect.frame)
      else if (effect.effect === 'welcomed') this.#welcomed(effect)
      else if (effect.effect === 'commit') this.#commit(effect)
      else if (effect.effect === 'tunnel') this.streams?.receive(effect.frame)
      else if (effect.effect === 'close') this.ended = effect
      else if (effect.effect === 'move') this.moves = effect.withinMs
      else if (effect.effect === 'lost') {
        this.epoch = effect.epoch
        const concerned = effect.interest === 0 ? this.copies : [this.#numbered(effect.interest) ?? this.copy()]
        for (const copy of concerned) Object.assign(copy, { version: 0, wish: 'compare', partial: undefined })
      } else if ('interest' in effect) this.#about(effect)
    }
    if (effects.length > 0) this.tick()
  }

  #welcomed({ cluster, epoch, digestKey: key }: Extract<EdgeEffect, { effect: 'welcomed' }>): void {
    if (this.cluster === '') Object.assign(this, { cluster, epoch })
    this.#digestKey = key
    const accept = ({ stream }: IncomingStream) => stream.giveUp('unknown', 'not taken here')
    this.streams = new TunnelStreams({ side: 'edge', limits: standardTunnelLimits, accept, ready: this.sendStreams })
  }

  #commit({ changes, position }: Extract<EdgeEffect, { effect: 'commit' }>): void {
    for (const change of changes) {
      const copy = this.#numbered(change.interest)
      if (copy === undefined) continue
      assert.ok(change.version >= copy.version, `${copy.name}: ${change.version} behind ${copy.version}`)
      copy.version = change.version
      put(copy, [change])
    }
    this.session?.committed(position)
  }

  #about(effect: Extract<EdgeEffect, { interest: number }>): void {
    const copy = this.#numbered(effect.interest)
    if (copy === undefined) return
    if (effect.effect === 'begins') {
      copy.starts.push(effect.start)
      copy.refusal = undefined
      if (!effect.resumes) Object.assign(copy, { staged: [], partial: undefined })
    } else if (effect.effect === 'stage') {
      copy.staged.push(...effect.changes.map(owned))
      copy.partial = effect.resume
    } else if (effect.effect === 'whole') {
      if (effect.of === 'snapshot') Object.assign(copy, { objects: new Map(), ahead: new Map() })
      for (const key of effect.gone) put(copy, [{ type: 'remove', key, version: 0 }])
      put(copy, copy.staged.splice(0))
      this.#settled(copy, effect.version, effect.root)
    } else if (effect.effect === 'check') this.#settled(copy, effect.version, effect.root)
    else if (effect.effect === 'synced') {
      copy.version = effect.version
      this.claims(copy)
    } else if (effect.effect === 'compare') this.session?.walk(effect.interest, effect.comparison, this.#tree(copy))
    else if (effect.effect === 'refused') copy.refusal = effect
    else if (effect.effect === 'astray') this.#again(copy)
  }

  #settled(copy: EdgeCopy, version: number, root: number): void {
    copy.partial = undefined
    if (this.#tree(copy).root !== root) {
      this.#again(copy)
      return
    }
    copy.version = version
    copy.wish = 'resume'
    this.claims(copy)
  }

  #again(copy: EdgeCopy): void {
    copy.wish = 'compare'
    this.resubscribe(copy)
  }

  resubscribe(copy: EdgeCopy): void {
    const { version, wish } = copy
    copy.number = this.session?.restart(copy.number, { epoch: this.epoch, version, wish }) as number
    this.tick()
  }

  #tree(copy: EdgeCopy): DigestTree {
    const tree = new DigestTree(this.#digestKey)
    for (const [key, { version, bytes }] of copy.objects) {
      const { metadata } = JSON.parse(bytes.toString()) as { metadata: { uid: string } }
      tree.put(digestEntry({ key, uid: metadata.uid, version, bytes }))
    }
    return tree
  }
}

/** Bytes are views of what the line brought. */
function owned(change: StagedChange): StagedChange {
  return change.type === 'remove' ? change : { ...change, bytes: Buffer.from(change.bytes) }
}

function put(copy: EdgeCopy, changes: readonly StagedChange[]): void {
  for (const change of changes.map(owned)) {
    const { key, version } = change
    if (change.type === 'remove') {
      copy.objects.delete(key)
      copy.ahead.delete(key)
    } else {
      copy.objects.set(key, { version, bytes: change.bytes })
      copy.ahead.set(key, change.bytes)
    }
  }
}

type HubWorldParts = {
  readonly rights?: (world: Pick<HubWorld, 'mirror' | 'sources'>) => EdgeRights
  readonly accept?: (edge: EdgePeer) => (incoming: IncomingStream) => void
  readonly policies?: PeerPolicies
  readonly hooks?: Pick<ConstructorParameters<typeof HubPeers>[0], 'revoked' | 'refused' | 'came'>
  /** Over what it stands, where others do too. */
  readonly server?: ApiServer
  readonly historyBytesMax?: number
  readonly limits?: SessionLimits
  /** What the state of the hubs says. */
  readonly epoch?: number
  readonly lost?: number
  /** Its mirror has found that the cluster was put back. */
  readonly restored?: (world: HubWorld) => void
}

export class HubWorld {
  readonly mirror: MirrorWorld
  readonly sources: HubSources
  readonly peers: HubPeers
  readonly lines: string[] = []
  readonly #ending = new AbortController()
  /** How often the API server was asked how far it is. */
  reads = 0

  private constructor(mirror: MirrorWorld, parts: HubWorldParts) {
    const { rights = () => allRights, accept, policies, hooks, limits, epoch = 1, lost = 0 } = parts
    this.mirror = mirror
    const { clock } = mirror.server
    const { unknown } = mirror
    const find = (group: string, version: string, resource: string) =>
      unknown.has(resource) ? undefined : catalog.get(`${group}/${version}/${resource}`)
    this.sources = new HubSources({
      interests: mirror.interests,
      find,
      digestKey,
      clock,
      newest: async () => this.#newest(),
    })
    const refuse = () => (incoming: IncomingStream) => incoming.stream.giveUp('unknown', 'not taken here')
    const log: Log = createLog({ level: 'debug', write: (line) => void this.lines.push(line) })
    this.peers = new HubPeers({
      ...{ hub: 'hub-1', release: '1', cluster: 'c1', epoch, lost, digestKey, ...(limits && { limits }) },
      ...{ sources: this.sources, rights: rights(this), acceptFor: accept ?? refuse, clock, log, ...hooks },
      warnings: new Warnings({ clock, log, kinds: [] }),
      ...(policies === undefined ? {} : { policies }),
    })
    const { signal } = this.#ending
    void this.sources.run(signal)
    void this.peers.run(signal)
  }

  #newest(): number {
    this.reads++
    return this.mirror.server.version
  }

  static async open(parts: HubWorldParts = {}): Promise<HubWorld> {
    const { server, historyBytesMax = 1 << 30, restored } = parts
    const onRestored = () => restored?.(world)
    const mirror = await MirrorWorld.open({
      ...(server && { server }),
      ...{ store: openMemory({ historyBytesMax }), onRestored },
    })
    const world: HubWorld = new HubWorld(mirror, parts)
    return world
  }

  /** Its process is killed, and with it all its links. */
  kill(): void {
    this.#ending.abort()
    this.mirror.crash()
  }

  edge(name: string, ...interests: string[]): TestEdge {
    return new TestEdge(this, name, interests)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.mirror.stop()
  }

  until(holds: () => boolean): Promise<void> {
    return this.mirror.until(holds)
  }

  pass(ms: number, steps?: number): Promise<void> {
    return this.mirror.pass(ms, steps)
  }

  settle(): Promise<void> {
    return settle(6)
  }
}
