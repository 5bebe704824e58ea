/** A cluster, two hubs, some edges and the lines between them, on a clock of their own. Every frame passes as bytes. */

import assert from 'node:assert/strict'
import type { SeededRandom } from '../../base/seeded.test-support.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../frames/frames.ts'
import { SimulatedEdge } from './edgemodel.test-support.ts'
import { type HubEnd, SimulatedCluster, SimulatedHub } from './hubmodel.test-support.ts'
import { type SessionLimits, sessionLimits } from './limits.ts'
import type { EdgeEffect, HubEffect } from './session.ts'

type Message = { readonly at: number; readonly bytes: Buffer }

/** One connection. `silent`: nothing arrives any more and neither side is told. */
class Line {
  readonly edge: SimulatedEdge
  readonly hub: SimulatedHub
  readonly end: HubEnd
  readonly toHub: Message[] = []
  readonly toEdge: Message[] = []
  silentSince: number | undefined
  latencyMs: number
  bytesPerMs: number

  constructor(parts: Pick<Line, 'edge' | 'hub' | 'end' | 'latencyMs' | 'bytesPerMs'>) {
    this.edge = parts.edge
    this.hub = parts.hub
    this.end = parts.end
    this.latencyMs = parts.latencyMs
    this.bytesPerMs = parts.bytesPerMs
  }

  send(to: Message[], frame: LinkFrame, now: number): void {
    const bytes = encodeFrame(frame)
    if (this.silentSince !== undefined) return
    const before = to.at(-1)?.at ?? 0
    to.push({ at: Math.max(now + this.latencyMs, before) + bytes.length / this.bytesPerMs, bytes })
  }
}

const smallLimits: SessionLimits = {
  ...sessionLimits,
  ...{ waitingBytesMax: 3_000, blockObjectBytes: 600, pieceBytes: 200, differingMax: 12, batchBytes: 400 },
  ...{ uncommittedBytesMax: 5_000, bulkBytesMin: 500 },
}

const interestNames = ['s0', 's1', 's0/a', 's1/b', 's0?x']
const slack = { hub: 8_000, edge: 60_000 }

export class SimulatedWorld {
  readonly random: SeededRandom
  readonly hubs: SimulatedHub[]
  readonly edges: SimulatedEdge[]
  readonly lines = new Map<SimulatedEdge, Line>()
  cluster: SimulatedCluster
  now = 1_000
  commitMs = 5
  readonly #limits: SessionLimits
  readonly #workAt = new Map<SimulatedEdge, number>()
  readonly #largeBytes: number
  #clusters = 1

  constructor(random: SeededRandom) {
    this.random = random
    this.#limits = random(4) === 0 ? sessionLimits : smallLimits
    this.#largeBytes = random(8) === 0 ? 40_000 : 300
    this.cluster = new SimulatedCluster('c1')
    for (let at = random(30); at > 0; at--) this.write()
    const limits = this.#limits
    this.hubs = ['h0', 'h1'].map((name) => new SimulatedHub(name, this.cluster, { historyMax: 1 + random(40), limits }))
    this.edges = Array.from({ length: 1 + random(3) }, (_, at) => {
      const wanted = interestNames.filter(() => random(2) === 0)
      return new SimulatedEdge(`e${at}`, wanted.length > 0 ? wanted : ['s0'], limits)
    })
  }

  write(): void {
    const { random } = this
    const key = `${'abc'[random(3)]}/k${random(7)}`
    const what = random(10)
    const size = random(40) === 0 ? this.#largeBytes : random(120)
    const text = `${random(3) === 0 ? 'label=x;' : ''}${noise(random, size)}`
    this.cluster.change(random(2), key, what < 2 ? undefined : text, what === 2)
  }

  connect(edge: SimulatedEdge, hub: SimulatedHub): void {
    this.cut(edge)
    edge.connect(this.now)
    const latencyMs = [1, 20, 200, 800][this.random(4)] as number
    const bytesPerMs = [1_000, 125, 8][this.random(3)] as number
    this.lines.set(edge, new Line({ edge, hub, end: hub.connect(this.now), latencyMs, bytesPerMs }))
    this.#tick(edge)
  }

  /** Both sides know at once; what was on its way is gone, from anywhere on. */
  cut(edge: SimulatedEdge): void {
    const line = this.lines.get(edge)
    if (line === undefined) return
    for (let some = this.random(line.toEdge.length + 1); some > 0 && this.lines.get(edge) === line; some--)
      this.#toEdge(line, line.toEdge.shift() as Message)
    this.#drop(line)
  }

  crash(edge: SimulatedEdge): void {
    this.cut(edge)
    edge.crash()
  }

  restartHub(hub: SimulatedHub): void {
    for (const line of [...this.lines.values()]) if (line.hub === hub) this.#drop(line)
    hub.start(this.cluster)
  }

  /** No hub runs while the cluster is put back, and their state is put back with it: only an edge is of the past that was. */
  restoreUnseen(to: number): void {
    this.cluster.restoreUnseen(to)
    for (const hub of this.hubs) this.restartHub(hub)
    for (const edge of this.edges) edge.isDamaged = true
  }

  replaceCluster(): void {
    this.cluster = new SimulatedCluster(`c${++this.#clusters}`)
    for (let at = this.random(20); at > 0; at--) this.write()
  }

  /** Each session that was told something says what it has to say. */
  tickAll(): void {
    for (const edge of this.edges) this.#tick(edge)
  }

  run(forMs: number): void {
    const until = this.now + forMs
    for (let steps = 0; ; steps++) {
      assert.ok(steps < 200_000, 'it does not come to rest')
      const at = this.#next()
      if (at > until) break
      this.now = Math.max(this.now, at)
      for (const line of [...this.lines.values()]) this.#step(line)
      for (const edge of this.edges) this.#work(edge)
    }
    this.now = until
  }

  /** Lines on which something is on its way, or work that waits. */
  get isQuiet(): boolean {
    if (this.edges.some((edge) => edge.hasWork)) return false
    return [...this.lines.values()].every(({ toHub, toEdge }) => toHub.length + toEdge.length === 0)
  }

  #next(): number {
    let at = Number.POSITIVE_INFINITY
    for (const { toHub, toEdge, end, edge } of this.lines.values())
      at = Math.min(
        ...[at, toHub[0]?.at ?? at, toEdge[0]?.at ?? at],
        ...[end.session.nextTick, edge.session?.nextTick ?? at].map((due) => Math.max(due, this.now)),
      )
    for (const edge of this.edges) if (edge.hasWork) at = Math.min(at, this.#workAt.get(edge) ?? this.now)
    return at
  }

  #step(line: Line): void {
    const { edge, end, toHub, toEdge } = line
    while (toHub[0] !== undefined && toHub[0].at <= this.now && this.lines.get(edge) === line)
      this.#hubDoes(line, end.session.receive(read(toHub.shift() as Message), this.now))
    while (toEdge[0] !== undefined && toEdge[0].at <= this.now && this.lines.get(edge) === line)
      this.#toEdge(line, toEdge.shift() as Message)
    if (this.lines.get(edge) === line) this.#tick(edge)
  }

  #tick(edge: SimulatedEdge): void {
    const line = this.lines.get(edge)
    if (line === undefined) return
    this.#hubDoes(line, line.end.session.tick(this.now))
    if (edge.session !== undefined && this.lines.get(edge) === line) this.#edgeDoes(line, edge.session.tick(this.now))
  }

  #toEdge(line: Line, message: Message): void {
    if (line.edge.session !== undefined) this.#edgeDoes(line, line.edge.session.receive(read(message), this.now))
  }

  #hubDoes(line: Line, effects: readonly HubEffect[]): void {
    for (const effect of effects) {
      if (effect.effect === 'send') line.send(line.toEdge, effect.frame, this.now)
      else line.hub.serve(line.end, effect)
      if (effect.effect === 'close') this.#closed(line, effect, 'hub')
    }
    if (effects.some(({ effect }) => effect === 'open' || effect === 'ahead'))
      this.#hubDoes(line, line.end.session.tick(this.now))
    const most = this.#limits.waitingBytesMax + this.#largeBytes * 2 + slack.hub
    assert.ok(line.end.session.heldBytes <= most, `the hub holds ${line.end.session.heldBytes} for ${line.edge.name}`)
  }

  #edgeDoes(line: Line, effects: readonly EdgeEffect[]): void {
    const { edge } = line
    for (const effect of effects) {
      if (effect.effect === 'send') line.send(line.toHub, effect.frame, this.now)
      else if (effect.effect === 'close') {
        this.#closed(line, effect, 'edge')
        if (effect.reason === 'cluster') edge.forgetCluster()
      } else edge.note(effect)
    }
    if (edge.hasWork && !this.#workAt.has(edge)) this.#workAt.set(edge, this.now + this.random(this.commitMs + 1))
    const { heldBytes = 0 } = edge.session ?? {}
    const most = this.#limits.uncommittedBytesMax + this.#largeBytes * 2 + slack.edge
    assert.ok(heldBytes <= most, `${edge.name} holds ${heldBytes}`)
  }

  #work(edge: SimulatedEdge): void {
    if (!edge.hasWork || (this.#workAt.get(edge) ?? 0) > this.now) return
    edge.work(this.cluster)
    this.#workAt.delete(edge)
    if (edge.hasWork) this.#workAt.set(edge, this.now + this.random(this.commitMs + 1))
    this.#tick(edge)
  }

  #closed(line: Line, { reason, sentence }: { reason: string; sentence: string }, by: string): void {
    const wanted = ['silent', 'drained', 'cluster', 'busy', 'other']
    assert.ok(
      wanted.includes(reason),
      `${line.edge.name} and ${line.hub.name}: ${by} closed because of ${reason}: ${sentence}`,
    )
    if (reason === 'silent')
      assert.ok(
        line.silentSince !== undefined && this.now - line.silentSince <= 41_000,
        'a living line was taken for dead',
      )
    // What was sent before the end still arrives.
    if (by === 'hub') for (const message of line.toEdge.splice(0)) this.#toEdge(line, message)
    this.#drop(line)
  }

  #drop(line: Line): void {
    if (this.lines.get(line.edge) !== line) return
    this.lines.delete(line.edge)
    line.hub.ends.delete(line.end)
    line.edge.session = undefined
  }
}

function read({ bytes }: Message): LinkFrame {
  return decodeFrame(bytes) as LinkFrame
}

function noise(random: SeededRandom, length: number): string {
  let text = ''
  while (text.length < length) text += random(2 ** 24).toString(36)
  return text
}
