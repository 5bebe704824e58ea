/** Peers that are broken or hostile: whatever they send, the other side closes with a reason or goes on within its limits (L8). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstSeed as seed } from '../../base/lives.test-support.ts'
import { encodeDelta, expandedBytesMax } from '../delta.ts'
import { DigestTree } from '../digest/digest.ts'
import { encodeChange, type LinkChange } from '../frames/change.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../frames/frames.ts'
import { encodeBlock } from './block.ts'
import { EdgeSession } from './edge.ts'
import { HubSession } from './hub.ts'
import { type SessionLimits, sessionLimits } from './limits.ts'
import { SimulatedPair } from './pair.test-support.ts'
import { digestEntry, type HubEffect, type InterestView, type LinkObject, type StagedChange } from './session.ts'
import { SharedChanges } from './sharedchanges.ts'

/** Sequences; each is of ten frames or some more. The conformance step `link-long` sets more. AKE_SEED repeats a run. */
const sequences = Math.ceil(Number(process.env.AKE_FRAMES ?? 20_000) / 10)

/** Numbers that are often right. */
const number = fc.oneof(fc.nat(4), fc.nat(40), fc.maxSafeNat())
const key = fc.constantFrom('', 'a/b', 'a/k1', 'c/d')
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((found) => Buffer.from(found)),
  fc.constantFrom(
    encodeChange({ type: 'remove', key: 'a/b', version: 3 }, 100),
    encodeChange({ type: 'put', key: 'a/b', version: 3, base: '', delta: encodeDelta(Buffer.from('x')) }, 100),
    encodeChange(
      { type: 'put', key: 'a/b', version: 4, base: 'a/k1', delta: encodeDelta(Buffer.from('x'), Buffer.from('y')) },
      100,
    ),
    encodeBlock('objects', [{ type: 'put', key: 'a/b', version: 1, bytes: Buffer.from('x') }]),
    encodeBlock('event', [{ type: 'put', key: 'a/b', version: 9, bytes: Buffer.from('x') }]),
  ),
)
const fields = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(of, { noNullPrototype: true })
const start = fc.constantFrom('replay', 'compare', 'snapshot', 'wait')
const wish = fc.constantFrom('resume', 'compare', 'anew')
const kindOf = <Kind extends LinkFrame['kind']>(kind: Kind) => ({ kind: fc.constant(kind) })
const some = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 1, maxLength: 3 })
const reason = fc.constantFrom('other', 'busy', 'limit')

const anyFrame = fc.oneof(
  fields({ ...kindOf('refused'), interest: number, reason, retryAfterMs: number, sentence: key }),
  fields({
    ...kindOf('subscribe'),
    interests: some(fields({ interest: number, name: key, version: number, wish, partial: number, after: key })),
    epoch: number,
  }),
  fields({ ...kindOf('unsubscribe'), interests: some(number) }),
  fields({
    ...kindOf('accepted'),
    interests: some(fields({ interest: number, source: number, start, version: number })),
  }),
  fields({
    ...kindOf('block'),
    interest: number,
    version: number,
    after: key,
    size: fc.nat(90),
    offset: fc.nat(9),
    piece: bytes,
  }),
  fields({ ...kindOf('complete'), interest: number, version: number, root: number }),
  fields({ ...kindOf('events'), position: number, events: some(fields({ interest: number, change: bytes })) }),
  fields({ ...kindOf('acknowledge'), position: number, bulk: number }),
  fields({ ...kindOf('progress'), marks: some(fields({ source: number, version: number })) }),
  fields({ ...kindOf('compare'), interest: number, version: number, request: bytes }),
  fields({ ...kindOf('compared'), interest: number, version: number, answer: bytes }),
  fields({ ...kindOf('lost'), interest: number, epoch: number, version: number }),
  fields({ ...kindOf('ping'), number }),
  fields({ ...kindOf('pong'), number, ageMs: number, stale: fc.array(number) }),
  fields({ ...kindOf('drain'), withinMs: number, sentence: key }),
  fields({ ...kindOf('terms'), trusts: number, tokenAgeMs: number, serveAgeMs: number }),
  fields({ ...kindOf('documents'), signs: fc.array(bytes) }),
) as fc.Arbitrary<LinkFrame>

/** What was really said: repeated, left out and in another order it is hostile too. */
const conversation = (() => {
  const pair = new SimulatedPair({ interests: ['s0', 's0/a'], historyMax: 2 })
  for (let at = 0; at < 6; at++) pair.write(`a/k${at}`, `text ${at}`)
  pair.connect()
  pair.write('a/k1', 'changed')
  pair.write('a/k2', undefined)
  pair.progress()
  const [first, firstBack] = [[...pair.toEdge], [...pair.toHub]]
  for (let at = 0; at < 6; at++) pair.write(`a/k${at}`, `more ${at}`)
  pair.connect()
  return { toEdge: [...first, ...pair.toEdge], toHub: [...firstBack, ...pair.toHub] }
})()

const said = (frames: readonly LinkFrame[]) =>
  fc.constantFrom(...frames.map((frame) => decodeFrame(encodeFrame(frame))!))

function checkEnd(session: EdgeSession | HubSession, effects: readonly { effect: string }[], frame: LinkFrame): void {
  const hasClosed = effects.some(({ effect }) => effect === 'close')
  assert.equal(hasClosed, session.state === 'closed', `${frame.kind}: closed and not said, or said and not closed`)
  assert.ok(session.heldBytes < 200_000, `${session.heldBytes} bytes are held`)
  assert.ok(effects.length < 200, `${effects.length} effects of a ${frame.kind}`)
}

test('[L8] a hub takes any frames of an edge, in any order, or closes with a reason', () => {
  let closed = 0
  fc.assert(
    fc.property(fc.array(fc.oneof(anyFrame, said(conversation.toHub)), { minLength: 10, maxLength: 15 }), (frames) => {
      const begin = () => {
        const pair = new SimulatedPair({ historyMax: 2 })
        for (let at = 0; at < 4; at++) pair.write(`a/k${at}`, `text ${at}`)
        const end = pair.hub.connect(0)
        pair.end = end
        end.session.receive(conversation.toHub[0]!, 0)
        return { pair, end, session: end.session }
      }
      let { pair, end, session } = begin()
      for (const [at, frame] of frames.entries()) {
        const effects = session.receive(frame, at)
        checkEnd(session, effects, frame)
        for (const effect of effects) pair.hub.serve(end, effect)
        if (session.state === 'closed') {
          closed++
          // What is left of the sequence meets another session, so that as many frames as are counted are received.
          ;({ pair, end, session } = begin())
          continue
        }
        pair.write(`a/k${at % 5}`, `text ${at}`)
        const more = session.tick(at)
        assert.ok(
          more.every(({ effect }) => effect !== 'close'),
          'it was closed by what happens at the hub',
        )
      }
    }),
    { seed, numRuns: sequences },
  )
  assert.ok(closed > sequences / 3, `${closed} sessions were closed in ${sequences} sequences`)
})

test('[L8] an edge takes any frames of a hub, in any order, or closes with a reason', () => {
  let closed = 0
  const held = (_: number, name: string) => (name === 'a/k1' ? Buffer.from('y') : undefined)
  const parts = { edge: 'e', release: '1', cluster: 'c1', epoch: 1, keepaliveMs: 30_000, held, now: 0 }
  fc.assert(
    fc.property(fc.array(fc.oneof(anyFrame, said(conversation.toEdge)), { minLength: 10, maxLength: 15 }), (frames) => {
      const begin = () => {
        const session = new EdgeSession(parts)
        session.subscribe('s0', { epoch: 1, version: 2, wish: 'resume' })
        session.subscribe('s0/a', { epoch: 1, version: 0, wish: 'resume' })
        session.receive(conversation.toEdge[0]!, 0)
        return session
      }
      let session = begin()
      for (const [at, frame] of frames.entries()) {
        const effects = session.receive(frame, at)
        checkEnd(session, effects, frame)
        for (const effect of effects) if (effect.effect === 'commit') session.committed(effect.position)
        if (session.state !== 'closed') continue
        closed++
        session = begin()
      }
    }),
    { seed, numRuns: sequences },
  )
  assert.ok(closed > sequences / 3, `${closed} sessions were closed in ${sequences} sequences`)
})

const entry = (interest: number, name = `s${interest}`) =>
  ({ interest, name, version: 0, wish: 'resume', partial: 0, after: '' }) as const

function openHub(): { pair: SimulatedPair; send: (frame: LinkFrame) => string | undefined } {
  const pair = new SimulatedPair()
  for (let at = 0; at < 4; at++) pair.write(`a/k${at}`, `text ${at}`)
  pair.end = pair.hub.connect(0)
  const send = (frame: LinkFrame) => {
    for (const effect of pair.end!.session.receive(frame, pair.now)) {
      pair.hub.serve(pair.end!, effect)
      if (effect.effect === 'close') return effect.sentence
    }
    return undefined
  }
  send(conversation.toHub[0]!)
  return { pair, send }
}

test('[L8] subscribing without end, numbers that are not new, and work without end close a link', () => {
  const many = (from: number, count: number): LinkFrame => ({
    ...{ kind: 'subscribe', epoch: 1 },
    interests: Array.from({ length: count }, (_, at) => entry(from + at, 's0/a')),
  })
  const { send } = openHub()
  for (let at = 0; at < 4; at++) assert.equal(send(many(1 + at * 1_024, 1_024)), undefined)
  assert.match(send(many(5_000, 1)) ?? '', /more interests than a link may have/)
  const again = openHub()
  assert.equal(again.send(many(7, 1)), undefined)
  assert.match(again.send(many(7, 1)) ?? '', /is not a new one/)
  const endless = openHub()
  let found: string | undefined
  for (let at = 0; at < 1_000 && found === undefined; at++) {
    found = endless.send(many(1 + at * 100, 100))
    found ??= endless.send({
      kind: 'unsubscribe',
      interests: Array.from({ length: 100 }, (_, one) => 1 + at * 100 + one),
    })
  }
  assert.match(found ?? '', /more than a link may/)
})

/** A hub before one edge, with eight blocks of one interest, which pack well or not at all; what of it was read to be packed. */
function packingHub(fill: 'text' | 'noise', limits: Partial<SessionLimits> = {}) {
  const objects = Array.from({ length: 64 }, (_, at): LinkObject => {
    const key = `a/k${at + 10}`
    return {
      key,
      uid: key,
      version: 1,
      bytes: fill === 'text' ? Buffer.alloc(64 * 1024, `text ${at} `) : randomBytes(64 * 1024),
    }
  })
  const found = { readBytes: 0, bulk: 0 }
  const digest = new DigestTree(Buffer.from('secret'))
  for (const object of objects) digest.put(digestEntry(object))
  const view: InterestView = {
    ...{ source: 1, version: 1, floor: 1, digest, get: () => undefined, since: () => [], near: () => undefined },
    *behind(key) {
      for (const object of objects) {
        if (object.key <= key) continue
        found.readBytes += object.bytes.length
        yield object
      }
    },
  }
  const session = new HubSession({
    ...{ hub: 'h', release: '1', cluster: 'c1', epoch: 1, lost: 0, digestKey: Buffer.from('secret'), now: 0 },
    ...{ changes: new SharedChanges(), admit: () => undefined, limits: { ...sessionLimits, ...limits } },
  })
  const take = (effects: readonly HubEffect[]) => {
    for (const effect of effects) {
      if (effect.effect === 'send' && effect.frame.kind === 'block') found.bulk += effect.frame.piece.length
      if (effect.effect === 'open') session.opened(effect.interest, view)
    }
  }
  const send = (frame: LinkFrame, now = 0) => {
    take(session.receive(frame, now))
    take(session.tick(now))
  }
  send(conversation.toHub[0]!)
  const subscribe = (interest: number, now = 0) =>
    send({ kind: 'subscribe', interests: [{ ...entry(interest), wish: 'anew' }], epoch: 1 }, now)
  const acknowledge = (now = 0) => send({ kind: 'acknowledge', position: 0, bulk: found.bulk }, now)
  return { session, found, send, subscribe, acknowledge }
}

test('[L2, L8] who subscribes anew and leaves without end has little packed for it: nothing before there is room, and no more than a link may', () => {
  const deaf = packingHub('noise')
  for (let at = 1; at <= 500; at++) {
    deaf.subscribe(at)
    deaf.send({ kind: 'unsubscribe', interests: [at] })
  }
  assert.equal(deaf.session.state, 'open')
  const { readBytes: unread } = deaf.found
  assert.ok(unread <= 2 * sessionLimits.blockObjectBytes, `${unread} bytes were packed for one that reads nothing`)
  const eager = packingHub('text', { packedBytesMax: 4 << 20, packedBytesPerMs: 1_024 })
  for (let at = 1; at <= 500; at++) {
    eager.subscribe(at, at)
    eager.acknowledge(at)
    eager.send({ kind: 'unsubscribe', interests: [at] }, at)
  }
  // Of each block one object more is looked at.
  const most = 1.25 * ((4 << 20) + 500 * 1_024)
  assert.ok(eager.found.readBytes <= most, `${eager.found.readBytes} bytes were packed for one that reads everything`)
})

test('[L2] an edge that had more packed than a link may at once has the rest as it is earned', () => {
  const { session, found, subscribe, acknowledge } = packingHub('text', {
    packedBytesMax: 1 << 20,
    packedBytesPerMs: 1_024,
  })
  subscribe(1)
  let now = 0
  for (let before = -1; before !== found.bulk; ) {
    before = found.bulk
    acknowledge(now)
  }
  const first = found.readBytes
  assert.ok(first < 64 * 64 * 1_024, `${first} bytes at once`)
  for (let looks = 0; found.readBytes < 64 * 64 * 1_024; looks++) {
    assert.ok(looks < 50 && session.nextTick > now, 'it does not say when there is more')
    now = session.nextTick
    acknowledge(now)
  }
  assert.ok(now >= 2_000 && now < 6_000, String(now))
})

test('[L8] acknowledging what was not sent, answering what was not asked and unknown interests close a link', () => {
  const wrong: LinkFrame[] = [
    { kind: 'acknowledge', position: 1, bulk: 0 },
    { kind: 'acknowledge', position: 0, bulk: 1 },
    { kind: 'pong', number: 1, ageMs: 0, stale: [] },
    { kind: 'unsubscribe', interests: [3] },
    { kind: 'compare', interest: 3, version: 1, request: Buffer.alloc(0) },
    { kind: 'refused', interest: 9, reason: 'other', retryAfterMs: 0, sentence: '' },
  ]
  for (const frame of wrong) assert.notEqual(openHub().send(frame), undefined, frame.kind)
})

test('[L8] comparisons that are asked and never read wait within a limit', () => {
  const { pair, send } = openHub()
  send({ kind: 'subscribe', interests: [{ ...entry(1, 's0'), wish: 'compare' }], epoch: 1 })
  let found: string | undefined
  let sent = 0
  // Nodes of the tree that differ all: an answer of some hundred bytes for each.
  const request = Buffer.from([0, 0, 12, 1, 0, ...Buffer.alloc(4 * 4_096, 9)])
  for (; sent < 1_000 && found === undefined; sent++)
    found = send({ kind: 'compare', interest: 1, version: pair.cluster.version, request })
  assert.match(found ?? '', /more comparisons than are answered/)
  assert.ok(sent < 200, `${sent} were taken`)
})

function openEdge() {
  const held = () => Buffer.from('y')
  const session = new EdgeSession({
    ...{ edge: 'e', release: '1', cluster: 'c1', epoch: 1, keepaliveMs: 30_000, held, now: 0 },
  })
  session.subscribe('s0', { epoch: 1, version: 2, wish: 'resume' })
  session.receive(conversation.toEdge[0]!, 0)
  const send = (frame: LinkFrame) => {
    const end = session.receive(frame, 0).find(({ effect }) => effect === 'close')
    return end?.effect === 'close' ? end.sentence : undefined
  }
  const begin = (start: 'replay' | 'snapshot') =>
    send({ kind: 'accepted', interests: [{ interest: 1, source: 1, start, version: 2 }] })
  return { session, send, begin }
}

test('[L8] events that do not follow, go back or come before their interest, and pieces that do not fit close a link', () => {
  const change = (version: number) => encodeChange({ type: 'remove', key: 'a/b', version }, 100)
  const events = (position: number, version: number, interest = 1): LinkFrame => ({
    ...{ kind: 'events', position },
    events: [{ interest, change: change(version) }],
  })
  const block = {
    kind: 'block',
    interest: 1,
    version: 2,
    after: '',
    size: 10,
    offset: 0,
    piece: Buffer.alloc(4),
  } as const
  const wrong: [start: 'replay' | 'snapshot', frames: LinkFrame[], sentence: RegExp][] = [
    ['replay', [events(2, 3)], /do not follow/],
    ['replay', [events(1, 3), events(1, 4)], /do not follow/],
    ['replay', [events(1, 1)], /went back/],
    ['replay', [events(1, 3, 2)], /unknown/],
    ['snapshot', [events(1, 3)], /that is snapshot/],
    ['snapshot', [{ ...block, offset: 1 }], /does not fit/],
    ['snapshot', [block, block], /does not fit/],
    ['snapshot', [block, { ...block, size: 11, offset: 4 }], /does not fit/],
    ['snapshot', [{ ...block, size: 3 }], /beyond its block/],
    ['snapshot', [{ ...block, piece: Buffer.alloc(0) }], /does not fit/],
    ['snapshot', [{ kind: 'complete', interest: 1, version: 1, root: 0 }], /went back/],
    ['snapshot', [{ kind: 'compared', interest: 1, version: 0, answer: Buffer.alloc(0) }], /not asked/],
    ['replay', [{ kind: 'lost', interest: 0, epoch: 0, version: 1 }], /has passed/],
  ]
  for (const [start, frames, sentence] of wrong) {
    const { send, begin } = openEdge()
    assert.equal(begin(start), undefined)
    assert.match(frames.map(send).at(-1) ?? 'nothing', sentence, JSON.stringify(frames))
  }
})

test('[L9] a removal that a hub of an older release sends as a block before its event leaves nothing behind', () => {
  const { session, send, begin } = openEdge()
  begin('replay')
  const block = (change: StagedChange): LinkFrame => {
    const piece = encodeBlock('event', [change])
    return { kind: 'block', interest: 1, version: change.version, after: '', size: piece.length, offset: 0, piece }
  }
  const event = (position: number, change: LinkChange): LinkFrame => {
    return { kind: 'events', position, events: [{ interest: 1, change: encodeChange(change, 100) }] }
  }
  const removal = { type: 'remove', key: 'a/b', version: 3 } as const
  const put = { type: 'put', key: 'a/c', version: 4 } as const
  const frames = [
    ...[block(removal), event(1, removal)],
    ...[block({ ...put, bytes: Buffer.from('large') }), event(2, { ...put, base: '', delta: Buffer.alloc(0) })],
  ]
  assert.deepEqual(frames.map(send), [undefined, undefined, undefined, undefined])
  assert.equal(session.state, 'open')
})

test('[L2, L8] a hub that sends beyond the window, and deltas that become much larger, do not fill the edge', () => {
  const { session, send, begin } = openEdge()
  begin('replay')
  const bomb = encodeDelta(Buffer.alloc(expandedBytesMax), Buffer.from('y'))
  const change = encodeChange({ type: 'put', key: 'a/b', version: 3, base: 'a/k1', delta: bomb }, 10_000)
  const bombs = (position: number): LinkFrame => ({
    ...{ kind: 'events', position },
    events: Array.from({ length: 10 }, () => ({ interest: 1, change })),
  })
  let found: string | undefined
  for (let at = 1; at < 10_000 && found === undefined; at++) {
    found = send(bombs(at * 10))
    assert.ok(
      session.heldBytes <= sessionLimits.uncommittedBytesMax + 2 * expandedBytesMax + 2 ** 20,
      `${session.heldBytes}`,
    )
  }
  assert.match(found ?? '', /window|of no use/)
})
