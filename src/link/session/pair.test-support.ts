/** A hub and an edge with a line between them that takes no time: for tests of one thing at a time. */
import type { LinkFrame } from '../frames/frames.ts'
import { SimulatedEdge } from './edgemodel.test-support.ts'
import { type HubEnd, SimulatedCluster, SimulatedHub } from './hubmodel.test-support.ts'
import { type SessionLimits, sessionLimits } from './limits.ts'
import type { EdgeEffect, HubEffect } from './session.ts'

export type FrameKind = LinkFrame['kind']

export class SimulatedPair {
  readonly cluster = new SimulatedCluster('c1')
  readonly limits: SessionLimits
  readonly edge: SimulatedEdge
  hub: SimulatedHub
  end: HubEnd | undefined
  now = 1_000
  /** Everything that was sent, in order. */
  readonly toEdge: LinkFrame[] = []
  readonly toHub: LinkFrame[] = []
  /** The last close of either side. */
  closed: (EdgeEffect & HubEffect & { effect: 'close' }) | undefined
  /** What the edge is to be sent waits here while it does not take anything. */
  isHeldUp = false
  /** The line breaks when so many pieces have come. */
  cutAfterBlocks = Number.POSITIVE_INFINITY
  readonly #waiting: LinkFrame[] = []
  /** How a frame arrives at the other side. */
  pass: (frame: LinkFrame) => LinkFrame | undefined = (frame) => frame

  constructor(parts: { interests?: readonly string[]; limits?: Partial<SessionLimits>; historyMax?: number } = {}) {
    this.limits = { ...sessionLimits, ...parts.limits }
    this.edge = new SimulatedEdge('e0', parts.interests ?? ['s0'], this.limits)
    this.hub = this.newHub(parts.historyMax)
  }

  newHub(historyMax = 1_000): SimulatedHub {
    return new SimulatedHub('h0', this.cluster, { historyMax, limits: this.limits })
  }

  connect(): void {
    this.closed = undefined
    this.#waiting.splice(0)
    this.toEdge.splice(0)
    this.toHub.splice(0)
    this.edge.connect(this.now)
    this.end = this.hub.connect(this.now)
    this.settle()
  }

  /** The cloud changes, and the hub follows. */
  write(key: string, text: string | undefined, isNew = false): void {
    this.cluster.change(0, key, text, isNew)
    this.hub.advance(this.cluster, 0, this.cluster.version)
  }

  progress(): void {
    this.hub.progress(0)
    this.settle()
  }

  /** Until nothing more happens without time passing. */
  settle(): void {
    for (let before = -1; before !== this.toEdge.length + this.toHub.length || this.edge.hasWork; ) {
      before = this.toEdge.length + this.toHub.length
      this.#hubDoes(this.end?.session.tick(this.now) ?? [])
      if (this.isHeldUp) return
      for (const frame of this.#waiting.splice(0)) {
        const passed = this.pass(frame)
        if (passed !== undefined) this.#edgeDoes(this.edge.session?.receive(passed, this.now) ?? [])
        if (frame.kind === 'block' && --this.cutAfterBlocks === 0) {
          this.#cut()
          return
        }
      }
      if (this.edge.hasWork) this.edge.work(this.cluster)
      this.#edgeDoes(this.edge.session?.tick(this.now) ?? [])
    }
  }

  /** What an edge would do on its own. */
  edgeSends(frame: LinkFrame): void {
    this.#hubDoes(this.end?.session.receive(frame, this.now) ?? [])
    this.settle()
  }

  hubSends(frame: LinkFrame): void {
    this.#edgeDoes(this.edge.session?.receive(frame, this.now) ?? [])
    this.settle()
  }

  /** Of one kind, to the edge, since it connected. */
  sent<Kind extends FrameKind>(kind: Kind): Extract<LinkFrame, { kind: Kind }>[] {
    return this.toEdge.filter((frame): frame is Extract<LinkFrame, { kind: Kind }> => frame.kind === kind)
  }

  text(key: string, name = 's0'): string | undefined {
    return this.edge.copies.get(name)?.objects.get(key)?.bytes.toString().split(';').at(-1)
  }

  #cut(): void {
    while (this.edge.hasWork) this.edge.work(this.cluster)
    this.edge.crash()
    this.hub.ends.delete(this.end as HubEnd)
    this.end = undefined
  }

  #hubDoes(effects: readonly HubEffect[]): void {
    for (const effect of effects) {
      if (effect.effect === 'send') {
        this.toEdge.push(effect.frame)
        this.#waiting.push(effect.frame)
      } else this.hub.serve(this.end as HubEnd, effect)
      if (effect.effect === 'close') this.closed = effect
    }
  }

  #edgeDoes(effects: readonly EdgeEffect[]): void {
    for (const effect of effects) {
      if (effect.effect === 'send') {
        this.toHub.push(effect.frame)
        const passed = this.pass(effect.frame)
        if (passed !== undefined) this.#hubDoes(this.end?.session.receive(passed, this.now) ?? [])
      } else if (effect.effect === 'close') this.closed = effect
      else this.edge.note(effect)
    }
  }
}
