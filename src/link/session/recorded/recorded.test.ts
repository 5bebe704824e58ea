/** Sides two releases apart (L9): sessions of older releases as they were recorded, against today's other side. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { decodeFrame, encodeFrame, type LinkFrame } from '../../frames/frames.ts'
import { SimulatedEdge } from '../edgemodel.test-support.ts'
import { type HubEnd, SimulatedCluster, SimulatedHub } from '../hubmodel.test-support.ts'
import { sessionLimits } from '../limits.ts'
import { SimulatedPair } from '../pair.test-support.ts'
import type { EdgeEffect, HubEffect } from '../session.ts'
import { asFuture } from './future.test-support.ts'
import { type OlderFrame, OlderRelease } from './older.test-support.ts'
import { type RecordedWorld, recordedInterests, recordedLimits, recordedSteps } from './scenario.test-support.ts'

type Line = { readonly to: 'edge' | 'hub'; readonly bytes: Buffer } | 'connect'

/** What was sent in each step, in order. */
function recordingOf(file: string): ReadonlyMap<string, readonly Line[]> {
  const recording = new Map<string, Line[]>()
  for (const line of readFileSync(join(import.meta.dirname, file), 'utf8').split('\n')) {
    if (line.startsWith('step ')) recording.set(line.slice('step '.length), [])
    const step = [...recording.values()].at(-1)
    if (line === 'connect') step?.push('connect')
    else if (/^[<>] /.test(line))
      step?.push({ to: line.startsWith('<') ? 'edge' : 'hub', bytes: Buffer.from(line.slice(2), 'hex') })
  }
  return recording
}

const first = { release: new OlderRelease('first'), recording: recordingOf('older.txt') }
const ofHubs = { release: new OlderRelease('with the first hubs'), recording: recordingOf('hub.txt') }

const limits = { ...sessionLimits, ...recordedLimits }
/** What the hub's answers depend on; acknowledgements may come in other portions. */
const decisive = new Set(['hello', 'subscribe', 'unsubscribe', 'compare'])

/** Interests are compared beside each other, in any order. */
function decisiveOf(frames: readonly OlderFrame[]): OlderFrame[] {
  const of = ({ kind, interest }: OlderFrame) => (kind === 'compare' ? Number(interest) : 0)
  return frames.filter(({ kind }) => decisive.has(kind)).sort((a, b) => of(a) - of(b))
}

/** The cluster of the recording, today's edge, and either the recorded hub or today's with the recorded edge before it. */
class Replay implements RecordedWorld {
  readonly cluster = new SimulatedCluster('c1')
  readonly edge = new SimulatedEdge('e0', recordedInterests, limits)
  readonly #side: 'edge' | 'hub'
  readonly #older: typeof first
  /** What of the present step is still to come. */
  #lines: Line[] = []
  #hub: SimulatedHub
  #end: HubEnd | undefined
  #now = 1_000
  /** What today's edge wants sent in this step, and what the recorded one sent. */
  readonly #sent: OlderFrame[] = []
  readonly #recorded: OlderFrame[] = []
  readonly closes: string[] = []
  /** Kinds of frames that today's hub sent and the older edge passed over. */
  readonly unheard = new Set<string>()

  constructor(side: 'edge' | 'hub', older: typeof first) {
    this.#side = side
    this.#older = older
    this.#hub = this.#newHub()
  }

  step(name: string): void {
    this.#lines = [...(this.#older.recording.get(name) ?? assert.fail(`${name} was not recorded`))]
    recordedSteps[name]?.(this)
    this.#play()
    assert.deepEqual(decisiveOf(this.#sent), decisiveOf(this.#recorded), `what the edge asks for while ${name}`)
    this.#sent.splice(0)
    this.#recorded.splice(0)
  }

  write(key: string, text: string | undefined, isNew = false): void {
    this.cluster.change(0, key, text, isNew)
    this.#hub.advance(this.cluster, 0, this.cluster.version)
    if (this.#end !== undefined) this.#settle()
  }

  progress(): void {
    this.#hub.progress(0)
    this.#settle()
  }

  connect(): void {
    this.#play()
    assert.equal(this.#lines.shift(), 'connect')
    this.edge.connect(this.#now)
    this.#end = this.#hub.connect(this.#now)
    // Told behind the welcome, as signs of documents are: older releases pass both over.
    this.#end.session.terms({ trusts: false, tokenAgeMs: 60_000, serveAgeMs: 0 })
    this.#edgeDoes(this.edge.session?.tick(this.#now) ?? [])
    this.#play('events')
  }

  replaceHub(): void {
    this.#play()
    this.edge.crash()
    this.#end = undefined
    this.#hub = this.#newHub()
  }

  putBack(version: number): void {
    this.#play('lost')
    this.cluster.restore(version)
    this.#hub.start(this.cluster)
    this.#settle()
  }

  recheck(name: string): void {
    this.edge.recheck(name)
    this.#edgeDoes(this.edge.session?.tick(this.#now) ?? [])
  }

  pass(ms: number): void {
    this.#now += ms
    this.#edgeDoes(this.edge.session?.tick(this.#now) ?? [])
  }

  drain(): void {
    this.#end?.session.drain(5_000, 'this hub ends', this.#now)
    this.#settle()
  }

  #newHub(): SimulatedHub {
    const hub = new SimulatedHub('h0', this.cluster, { historyMax: 1_000, limits })
    hub.signs = [Buffer.alloc(8, 1), Buffer.alloc(8, 2)]
    return hub
  }

  /** The recording, up to the next link or the first frame of a kind. */
  #play(before?: OlderFrame['kind']): void {
    for (;;) {
      const line = this.#lines[0]
      if (line === undefined || line === 'connect') return
      const frame = this.#older.release.read(line.bytes)
      if (before !== undefined && frame?.kind === before) return
      this.#lines.shift()
      if (line.to === 'hub' && frame !== undefined) this.#recorded.push(frame)
      if (this.#side === 'hub' && line.to === 'edge') this.#toEdge(line.bytes)
      if (this.#side === 'edge' && line.to === 'hub' && frame?.kind !== 'acknowledge') this.#toHub(line.bytes)
    }
  }

  #toEdge(bytes: Buffer): void {
    this.#edgeDoes(this.edge.session?.receive(decodeFrame(bytes) as LinkFrame, this.#now) ?? [])
    while (this.edge.hasWork) this.edge.work(this.cluster)
    this.#edgeDoes(this.edge.session?.tick(this.#now) ?? [])
  }

  #toHub(bytes: Buffer): void {
    this.#hubDoes(this.#end?.session.receive(decodeFrame(bytes) as LinkFrame, this.#now) ?? [])
    this.#settle()
  }

  /** What today's hub has to say of what happened. */
  #settle(): void {
    if (this.#side === 'edge') this.#hubDoes(this.#end?.session.tick(this.#now) ?? [])
  }

  #edgeDoes(effects: readonly EdgeEffect[]): void {
    for (const effect of effects)
      if (effect.effect === 'send') {
        const bytes = encodeFrame(effect.frame)
        const understood = this.#older.release.read(bytes)
        if (understood !== undefined) this.#sent.push(understood)
        // The recorded one acknowledged what its hub sent, which today's may have packed otherwise.
        if (this.#side === 'edge' && understood?.kind === 'acknowledge')
          this.#toHub(this.#older.release.write(bytes) as Buffer)
      } else if (effect.effect === 'close') this.closes.push(`edge: ${effect.sentence}`)
      else this.edge.note(effect)
  }

  #hubDoes(effects: readonly HubEffect[]): void {
    for (const effect of effects)
      if (effect.effect === 'send') {
        const understood = this.#older.release.write(encodeFrame(effect.frame))
        if (understood === undefined) this.unheard.add(effect.frame.kind)
        else if (this.#side === 'edge') this.#toEdge(understood)
      } else {
        this.#hub.serve(this.#end as HubEnd, effect)
        if (effect.effect === 'close') this.closes.push(`hub: ${effect.sentence}`)
      }
  }
}

for (const [which, older, side] of [
  ['an older release', first, 'hub'],
  ['an older release', first, 'edge'],
  ['the first release with hubs', ofHubs, 'hub'],
  ['the first release with hubs', ofHubs, 'edge'],
] as const)
  test(`[L9] a recorded ${side} of ${which} and today’s other side understand each other in everything that a link goes through`, () => {
    const replay = new Replay(side, older)
    for (const name of Object.keys(recordedSteps)) {
      replay.step(name)
      assert.deepEqual(replay.closes, [], name)
      for (const copy of replay.edge.copies.values())
        assert.equal(copy.version, replay.cluster.version, `${copy.name} after ${name}`)
    }
    const { snapshots, replays, differences, losses, astray, unequal } = replay.edge.figures
    assert.deepEqual({ astray, unequal }, { astray: 0, unequal: 0 })
    for (const begun of [snapshots, replays, differences, losses]) assert.ok(begun > 0)
    if (side === 'edge') assert.deepEqual([...replay.unheard].sort(), ['documents', 'terms'])
  })

test('[L9] a refusal of what is never mirrored is one for another reason to an edge of an older release, which tries again as it is told', () => {
  const told = { kind: 'refused', interest: 3, reason: 'never', retryAfterMs: 60_000, sentence: 'by a policy' } as const
  for (const { release } of [first, ofHubs])
    assert.deepEqual(release.read(encodeFrame(told)), { ...told, reason: 'other' })
})

test('[L9] a side of a later release, which adds fields, frames and protocols, is understood in everything that a link goes through', () => {
  const pair = new SimulatedPair({ interests: recordedInterests, limits: recordedLimits })
  pair.pass = (frame) => {
    // Frames of which today's release has not heard may come between all others.
    assert.equal(decodeFrame(Buffer.from([0x7f, 1, 2, 3])), undefined)
    const later = frame.kind === 'hello' ? { ...frame, newest: 3, release: '3' } : frame
    const read = decodeFrame(asFuture(later))
    assert.deepEqual(read, later)
    return read
  }
  const world: RecordedWorld = {
    cluster: pair.cluster,
    write: (key, text, isNew) => {
      pair.write(key, text, isNew)
      if (pair.end !== undefined) pair.settle()
    },
    progress: () => pair.progress(),
    connect: () => {
      pair.hub.signs = [Buffer.alloc(8, 1)]
      pair.connect()
      pair.end?.session.terms({ trusts: true, tokenAgeMs: 0, serveAgeMs: 1_000 })
      pair.settle()
    },
    replaceHub: () => {
      pair.edge.crash()
      pair.end = undefined
      pair.hub = pair.newHub()
    },
    putBack: (version) => {
      pair.cluster.restore(version)
      pair.hub.start(pair.cluster)
      pair.settle()
    },
    recheck: (name) => {
      pair.edge.recheck(name)
      pair.settle()
    },
    pass: (ms) => {
      pair.now += ms
      pair.settle()
    },
    drain: () => {
      pair.end?.session.drain(5_000, 'this hub ends', pair.now)
      pair.settle()
    },
  }
  for (const [name, step] of Object.entries(recordedSteps)) {
    step(world)
    assert.equal(pair.closed, undefined, name)
    for (const copy of pair.edge.copies.values())
      assert.equal(copy.version, pair.cluster.version, `${copy.name} after ${name}`)
  }
})
