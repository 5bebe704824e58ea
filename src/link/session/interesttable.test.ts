/**
 * What may come for one interest while it stands so and so, complete, on both sides: beside `table.test.ts`, which says the
 * same of the link. A cell names the first thing that is done; `-`: it is passed over, or kept for what follows; `fault`: the
 * link ends.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeDelta } from '../delta.ts'
import { answerComparison } from '../digest/answer.ts'
import { DigestTree } from '../digest/digest.ts'
import { DigestWalk } from '../digest/walk.ts'
import { encodeChange } from '../frames/change.ts'
import { changeBytesMax, type LinkFrame } from '../frames/frames.ts'
import { type BlockContent, encodeBlock } from './block.ts'
import { EdgeSession } from './edge.ts'
import type { HubSession } from './hub.ts'
import type { HubEnd } from './hubmodel.test-support.ts'
import { sessionLimits } from './limits.ts'
import { SimulatedPair } from './pair.test-support.ts'
import type { EdgeEffect, HubEffect, InterestStart } from './session.ts'
import { edgeTakes, hubTakes } from './table.ts'

const atEdge = `
            replay  compare snapshot wait    objects changes large   complete event   place   compared progress lost    refused
  unknown   fault   fault   fault    fault   fault   fault   fault   fault    fault   fault   fault    -        fault   fault
  given-up  -       -       -        -       -       -       -       -        -       -       -        -        lost    -
  asked     begins  begins  begins   begins  fault   fault   fault   fault    fault   fault   -        -        lost    refused
  lost      fault   begins  begins   begins  fault   fault   fault   fault    fault   fault   -        -        lost    refused
  waiting   begins  begins  begins   begins  fault   fault   fault   fault    fault   fault   -        -        lost    refused
  treeless  fault   begins  begins   fault   fault   stage   fault   fault    fault   fault   fault    -        lost    refused
  ready     fault   begins  begins   fault   fault   stage   fault   fault    fault   fault   fault    -        lost    refused
  asking    fault   begins  begins   fault   fault   stage   fault   fault    fault   fault   compare  -        lost    refused
  done      fault   begins  begins   fault   fault   stage   fault   whole    fault   fault   fault    -        lost    refused
  snapshot  fault   begins  begins   fault   stage   stage   fault   whole    fault   fault   -        -        lost    refused
  live      fault   begins  begins   fault   fault   fault   -       check    commit  fault   -        synced   lost    refused
  large     fault   begins  begins   fault   fault   fault   fault   check    commit  commit  -        synced   lost    refused
  astray    -       -       -        -       -       -       -       -        -       -       -        -        lost    -
`

const atHub = `
            subscribe unsubscribe refused compare  last     older   nonsense
  unknown   open      fault       fault   fault    fault    fault   fault
  released  fault     -           -       -        -        -       -
  refused   fault     -           -       -        -        -       -
  asked     fault     release     release -        -        -       -
  waiting   fault     release     release -        -        -       -
  invited   fault     release     release compared complete -       fault
  walking   fault     release     release compared complete -       fault
  walked    fault     release     release -        -        -       -
  snapshot  fault     release     release -        -        -       -
  live      fault     release     release -        -        -       -
`

const edgeStates = [
  ...(['unknown', 'given-up', 'asked', 'lost', 'waiting', 'treeless', 'ready', 'asking', 'done'] as const),
  ...(['snapshot', 'live', 'large', 'astray'] as const),
]
type EdgeState = (typeof edgeStates)[number]
const hubStates = [
  ...(['unknown', 'released', 'refused', 'asked', 'waiting', 'invited', 'walking', 'walked'] as const),
  ...(['snapshot', 'live'] as const),
]
type HubState = (typeof hubStates)[number]

const ofTheLink = ['acknowledge', 'ping', 'pong', 'drain', 'terms', 'documents', 'tunnel'] as const

/** Of the copy, and of all that comes behind it. */
const [held, next] = [5, 6]
const put = { type: 'put', key: 'a/1', version: next, bytes: Buffer.from('text') } as const
const secret = Buffer.of(1)

function accepted(start: InterestStart, version: number): LinkFrame {
  return { kind: 'accepted', interests: [{ interest: 1, source: 1, start, version }] }
}

function block(of: BlockContent): LinkFrame {
  const piece = encodeBlock(of, [put])
  return { kind: 'block', interest: 1, version: next, after: '', size: piece.length, offset: 0, piece }
}

function event(delta: Buffer, position: number): LinkFrame {
  const change = encodeChange({ type: 'put', key: 'a/1', version: next, base: '', delta }, changeBytesMax)
  return { kind: 'events', position, events: [{ interest: 1, change }] }
}

/** What may come for an interest: `position` of the next event, `answer` to what was asked last. */
const fromHub = (position: number, answer: Buffer) =>
  ({
    replay: accepted('replay', held),
    compare: accepted('compare', next),
    snapshot: accepted('snapshot', next),
    wait: accepted('wait', 0),
    objects: block('objects'),
    changes: block('changes'),
    large: block('event'),
    complete: { kind: 'complete', interest: 1, version: next, root: 0 },
    event: event(encodeDelta(put.bytes), position),
    place: event(Buffer.of(), position),
    compared: { kind: 'compared', interest: 1, version: held, answer },
    progress: { kind: 'progress', marks: [{ source: 1, version: next }] },
    lost: { kind: 'lost', interest: 1, epoch: 2, version: next },
    refused: { kind: 'refused', interest: 1, reason: 'forbidden', retryAfterMs: 0, sentence: '' },
  }) as const satisfies Record<string, LinkFrame>

class EdgeSide {
  readonly session: EdgeSession
  position = 0
  answer: Buffer = Buffer.of()
  #isAsking = false
  readonly #tree = new DigestTree(secret)

  constructor(state: EdgeState) {
    // Where none may be asked for, a comparison whose tree is there waits for its turn.
    const limits = state === 'ready' ? { ...sessionLimits, walksMax: 0 } : sessionLimits
    this.session = new EdgeSession({
      ...{
        edge: 'e',
        release: '1',
        cluster: 'c',
        epoch: 1,
        keepaliveMs: 30_000,
        held: () => undefined,
        now: 0,
        limits,
      },
    })
    this.#receive({
      ...{ kind: 'welcome', protocol: 1, hub: 'h', release: '1', cluster: 'c', epoch: 1, window: 2 ** 18, trusts: 0 },
      ...{ digestKey: secret, counts: 1 },
    })
    if (state === 'unknown') return
    const number = this.session.subscribe('s0', { epoch: 1, version: held, wish: 'resume' })
    this.session.tick(0)
    this.#begin[state](number)
  }

  readonly #begin: { readonly [State in Exclude<EdgeState, 'unknown'>]: (number: number) => void } = {
    'given-up': (number) => {
      this.session.unsubscribe(number)
      this.session.tick(0)
    },
    asked: () => undefined,
    lost: () => this.#receive({ kind: 'lost', interest: 1, epoch: 2, version: held }),
    waiting: () => this.#receive(accepted('wait', 0)),
    treeless: () => this.#receive(accepted('compare', held)),
    ready: (number) => {
      this.#receive(accepted('compare', held))
      this.session.walk(number, held, this.#tree)
    },
    asking: (number) => {
      this.#begin.ready(number)
      this.#note(this.session.tick(0))
    },
    done: (number) => {
      this.#begin.asking(number)
      while (this.#isAsking) this.#receive(fromHub(0, this.answer).compared)
    },
    snapshot: () => this.#receive(accepted('snapshot', next)),
    live: () => this.#receive(accepted('replay', held)),
    large: (number) => {
      this.#begin.live(number)
      this.#receive(block('event'))
    },
    astray: (number) => {
      this.#begin.live(number)
      const change = { type: 'put', key: 'a/1', version: next, base: 'a/1', delta: Buffer.of(1) } as const
      const events = [{ interest: 1, change: encodeChange(change, changeBytesMax) }]
      this.#receive({ kind: 'events', position: ++this.position, events })
    },
  }

  #receive(frame: LinkFrame): void {
    this.#note(this.session.receive(frame, 0))
    assert.equal(this.session.state, 'open', frame.kind)
  }

  /** As a hub answers that has one object more. */
  #note(effects: readonly EdgeEffect[]): void {
    const tree = new DigestTree(secret)
    tree.put({ key: 'a/9', uid: 'u', version: 1, content: 1 })
    for (const effect of effects)
      if (effect.effect === 'send' && effect.frame.kind === 'compare') {
        const { request } = effect.frame
        this.#isAsking = request.length > 0
        this.answer = this.#isAsking ? answerComparison(tree, request).answer : Buffer.of()
      }
  }
}

class HubSide {
  readonly #pair: SimulatedPair
  readonly #end: HubEnd
  readonly session: HubSession
  #comparison = 0

  constructor(state: HubState) {
    // What is to be sent is more than may be on its way.
    const isLong = state === 'walked' || state === 'snapshot'
    const limits = isLong ? { blockObjectBytes: 600, pieceBytes: 200, bulkBytesMin: 500 } : {}
    this.#pair = new SimulatedPair({ limits, historyMax: 2 })
    for (let at = 0; at < (isLong ? 30 : 1); at++)
      this.#pair.write(`a/k${at}`, Array.from({ length: 40 }, (_, line) => (at * 7919 + line * 104_729) ** 2).join())
    this.#end = this.#pair.hub.connect(0)
    this.session = this.#end.session
    const hello = { edge: 'e0', release: '1', cluster: '', epoch: 0, window: 2 ** 18, counts: 0 } as const
    this.#receive({ kind: 'hello', oldest: 1, newest: 1, ...hello })
    if (state !== 'unknown') this.#begin[state]()
  }

  readonly #begin: { readonly [State in Exclude<HubState, 'unknown'>]: () => void } = {
    released: () => {
      this.#subscribe(0, 'resume')
      this.#receive({ kind: 'unsubscribe', interests: [1] })
    },
    refused: () => this.#subscribe(0, 'resume', 'no such thing'),
    asked: () => void this.session.receive(this.frames.subscribe, 0),
    waiting: () => this.#subscribe(10_000, 'resume'),
    invited: () => this.#subscribe(1, 'compare'),
    walking: () => {
      this.#begin.invited()
      this.#receive(this.frames.compare)
    },
    walked: () => {
      this.#begin.invited()
      const walk = new DigestWalk(new DigestTree(secret))
      const root = walk.next() as Buffer
      for (let request: Buffer | undefined = root; request !== undefined; ) {
        const { answer } = this.#receive({ ...this.frames.compare, request })
        request = walk.next(answer)
      }
      this.#receive(this.frames.last)
    },
    snapshot: () => this.#subscribe(0, 'anew'),
    live: () => this.#subscribe(this.#pair.cluster.version, 'resume'),
  }

  get frames() {
    const compare = { kind: 'compare', interest: 1, version: this.#comparison } as const
    const entry = { interest: 1, name: 's0', version: 0, wish: 'resume', partial: 0, after: '' } as const
    return {
      subscribe: { kind: 'subscribe', interests: [entry], epoch: 1 },
      unsubscribe: { kind: 'unsubscribe', interests: [1] },
      refused: { kind: 'refused', interest: 1, reason: 'other', retryAfterMs: 0, sentence: '' },
      compare: { ...compare, request: new DigestWalk(new DigestTree(secret)).next() as Buffer },
      last: { ...compare, request: Buffer.of() },
      older: { ...compare, version: this.#comparison + 1, request: Buffer.of() },
      nonsense: { ...compare, request: Buffer.of(9) },
    } as const satisfies Record<string, LinkFrame>
  }

  #subscribe(version: number, wish: 'resume' | 'compare' | 'anew', name = 's0'): void {
    const interests = [{ interest: 1, name, version, wish, partial: 0, after: '' }]
    this.#receive({ kind: 'subscribe', interests, epoch: 1 })
  }

  #receive(frame: LinkFrame): { readonly answer: Buffer } {
    let answer: Buffer = Buffer.of()
    for (let effects = this.session.receive(frame, 0); effects.length > 0; effects = this.session.tick(0))
      for (const effect of effects) {
        this.#pair.hub.serve(this.#end, effect)
        if (effect.effect !== 'send') continue
        if (effect.frame.kind === 'accepted' && effect.frame.interests[0]?.start === 'compare')
          this.#comparison = effect.frame.interests[0].version
        if (effect.frame.kind === 'compared') answer = effect.frame.answer
      }
    assert.equal(this.session.state, 'open', frame.kind)
    return { answer }
  }
}

/** The first thing that is done and not only acknowledged. */
function outcomeOf(effects: readonly (EdgeEffect | HubEffect)[]): string {
  const close = effects.find((effect) => effect.effect === 'close')
  if (close !== undefined) return close.reason === 'frame' ? 'fault' : close.reason
  for (const effect of effects) {
    if (effect.effect === 'commit' && effect.changes.length === 0) continue
    if (effect.effect !== 'send') return effect.effect
    if (effect.frame.kind !== 'acknowledge') return effect.frame.kind
  }
  return '-'
}

/** As it is written above, spaced alike. */
function spelled(columns: readonly string[], rows: readonly (readonly [string, readonly string[]])[]): string[] {
  return [columns.join(' '), ...rows.map(([state, cells]) => [state, ...cells].join(' '))]
}

/** Of what may come at all, each either concerns the link alone or stands in the table. */
function assertNoneIsLeftOut(taken: readonly LinkFrame['kind'][], frames: readonly LinkFrame[]): void {
  const known = new Set([...ofTheLink, ...frames.map(({ kind }) => kind)])
  assert.deepEqual(
    taken.filter((kind) => !known.has(kind)),
    [],
  )
}

function written(table: string): string[] {
  return table.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim().split(/\s+/).join(' ')]))
}

test('[L8] whatever comes for an interest of an edge, wherever it stands, is taken, passed over or ends the link', () => {
  const kinds = Object.keys(fromHub(0, Buffer.of())) as (keyof ReturnType<typeof fromHub>)[]
  const rows = edgeStates.map((state) => {
    const cells = kinds.map((kind) => {
      const { session, position, answer } = new EdgeSide(state)
      return outcomeOf(session.receive(fromHub(position + 1, answer)[kind], 1))
    })
    return [state, cells] as const
  })
  assert.deepEqual(spelled(kinds, rows), written(atEdge))
  assertNoneIsLeftOut(edgeTakes.open, Object.values(fromHub(0, Buffer.of())))
})

test('[L8] whatever an edge says of an interest, wherever it stands at the hub, is taken, passed over or ends the link', () => {
  const kinds = Object.keys(new HubSide('unknown').frames) as (keyof HubSide['frames'])[]
  const rows = hubStates.map((state) => {
    const cells = kinds.map((kind) => {
      const { session, frames } = new HubSide(state)
      return outcomeOf(session.receive(frames[kind], 1))
    })
    return [state, cells] as const
  })
  assert.deepEqual(spelled(kinds, rows), written(atHub))
  assertNoneIsLeftOut(hubTakes.open, Object.values(new HubSide('unknown').frames))
})
