import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { decodeChange } from '../frames/change.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../frames/frames.ts'
import { HubSession } from './hub.ts'
import { sessionLimits } from './limits.ts'
import { SimulatedPair } from './pair.test-support.ts'
import type { HubEffect } from './session.ts'
import { SharedChanges } from './sharedchanges.ts'

const hello = (fields: object = {}): LinkFrame => ({
  ...{ kind: 'hello', oldest: 1, newest: 1, edge: 'e0', release: '1', cluster: '', epoch: 0, window: 256 * 1024 },
  ...{ counts: 0, ...fields },
})

/** A pair whose edge has everything and is told what comes. */
function live(parts: ConstructorParameters<typeof SimulatedPair>[0] = {}, objects = 5): SimulatedPair {
  const pair = new SimulatedPair(parts)
  for (let at = 0; at < objects; at++) pair.write(`a/k${at}`, pod(at))
  pair.connect()
  pair.toEdge.splice(0)
  return pair
}

/** About as long and as repetitive as a small pod. */
function pod(at: number): string {
  return Array.from({ length: 60 }, (_, line) => `"field-${line}":"${(at * 31 + line * 7) % 97}"`).join(',')
}

const bytesOf = (frames: readonly LinkFrame[]) => frames.reduce((sum, frame) => sum + encodeFrame(frame).length, 0)

test('[L9] a hello is answered with the newest protocol of both, and refused with a reason and a time where there is none', () => {
  const cases: [fields: object, reason: string | undefined][] = [
    [{}, undefined],
    [{ newest: 3 }, undefined],
    [{ oldest: 2, newest: 3 }, 'protocol'],
    [{ window: 1_000 }, 'limit'],
    [{ cluster: 'another', epoch: 1 }, 'cluster'],
    [{ cluster: 'c1', epoch: 9 }, 'busy'],
  ]
  for (const [fields, reason] of cases) {
    const pair = new SimulatedPair()
    pair.end = pair.hub.connect(0)
    pair.edgeSends(hello(fields))
    const [first] = pair.toEdge
    assert.equal(first?.kind, reason === undefined ? 'welcome' : 'refused', JSON.stringify(fields))
    if (first?.kind === 'welcome') assert.equal(first.protocol, 1)
    assert.equal(pair.closed?.reason, reason)
  }
})

test('[L7, L9] an edge leaves a hub that speaks another protocol, is of another cluster, or has not heard of its epoch', () => {
  const welcome = (fields: object): LinkFrame => ({
    ...{
      kind: 'welcome',
      protocol: 1,
      hub: 'h',
      release: '2',
      cluster: 'c1',
      epoch: 3,
      window: 1,
      counts: 0,
      digestKey: Buffer.of(1),
      trusts: 0,
    },
    ...fields,
  })
  const cases: [fields: object, reason: string | undefined][] = [
    [{}, undefined],
    [{ protocol: 2 }, 'frame'],
    [{ cluster: 'c2' }, 'cluster'],
    [{ epoch: 2 }, 'busy'],
  ]
  for (const [fields, reason] of cases) {
    const pair = new SimulatedPair()
    Object.assign(pair.edge, { cluster: 'c1', epoch: 3 })
    pair.edge.connect(0)
    pair.hubSends(welcome(fields))
    assert.equal(pair.closed?.reason, reason, JSON.stringify(fields))
  }
})

test('[L5] an update is a delta of few bytes, encoded once; a new object is packed against another one', () => {
  const pair = live()
  pair.write('a/k1', `${pod(1)},"and":"more"`)
  pair.settle()
  assert.equal(pair.text('a/k1'), `${pod(1)},"and":"more"`)
  const [update] = pair.sent('events')
  assert.ok(bytesOf([update!]) < 100, `${bytesOf([update!])} bytes for an update`)
  pair.write('a/k9', pod(2))
  pair.settle()
  const added = decodeChange(pair.sent('events')[1]!.events[0]!.change)
  assert.ok(added.type === 'put' && added.base !== '' && added.base !== 'a/k9')
  assert.ok(bytesOf([pair.sent('events')[1]!]) < 300)
})

test('[L5] a change is encoded once for all edges that hold the same', () => {
  const pair = live()
  const other = live()
  other.hub = pair.hub
  Object.assign(other.edge, { cluster: '', epoch: 0 })
  other.connect()
  other.toEdge.splice(0)
  pair.write('a/k1', 'for both')
  pair.settle()
  other.settle()
  const [one, same] = [pair, other].map((each) => each.sent('events')[0]!.events[0]!.change)
  assert.equal(one, same)
})

test('[L5] a reconnection costs what changed: nothing, some changes by replay, and by digests where history is too short', () => {
  const costs = [1_000, 3].map((historyMax) => {
    const pair = live({ historyMax }, 300)
    return [0, 3, 20].map((changes) => {
      for (let at = 0; at < changes; at++) pair.write(`a/k${at}`, `${pod(at)},"changes":"${changes}"`)
      pair.connect()
      assert.equal(pair.text('a/k0'), changes === 0 ? pod(0) : `${pod(0)},"changes":"${changes}"`)
      const start = pair.sent('accepted')[0]!.interests[0]!.start
      return { start, bytes: bytesOf(pair.toEdge) + bytesOf(pair.toHub) }
    })
  })
  assert.deepEqual(
    costs.flat().map(({ start }) => start),
    ['replay', 'replay', 'replay', 'replay', 'replay', 'compare'],
  )
  const [none, few, some, , , compared] = costs.flat().map(({ bytes }) => bytes)
  assert.ok(none! < 200 && few! < 500 && some! < 2_000 && compared! < 4_000, JSON.stringify(costs))
})

test('[L5] progress is told once for a source, however many interests it has, and passes no event that was not sent', () => {
  const pair = live({ interests: ['s0', 's0/a', 's0?x'] })
  pair.isHeldUp = true
  pair.write('a/k1', 'first')
  pair.hub.progress(0)
  pair.settle()
  assert.deepEqual(
    pair.sent('progress').map(({ marks }) => marks),
    [[{ source: 0, version: pair.cluster.version }]],
  )
  // Nothing is acknowledged: what the window has no room for stays, and the mark stays before it.
  const noise = () => randomBytes(9_000).toString('base64')
  for (let at = 0; at < 40; at++) pair.write(`b/k${at}`, noise())
  pair.hub.progress(0)
  pair.settle()
  const told = pair.sent('events').flatMap(({ events }) => events.map(({ change }) => decodeChange(change).version))
  assert.ok(told.length < 42, `${told.length} events were sent`)
  const mark = pair.sent('progress').at(-1)!.marks[0]!.version
  assert.ok(mark < pair.cluster.version && mark <= Math.max(...told), `${mark} after ${told}`)
  pair.isHeldUp = false
  pair.settle()
  for (const { version } of pair.edge.copies.values()) assert.equal(version, pair.cluster.version)
})

test('[L1, L2] an edge that takes nothing is conflated by key, beyond a limit compared, and delays nobody', () => {
  const pair = live({}, 20)
  pair.isHeldUp = true
  let [most, made] = [0, 0]
  const incompressible = randomBytes(9_000).toString('base64')
  const noise = () => `${++made} ${incompressible.slice(made % 5_000)}${incompressible.slice(0, made % 5_000)}`
  for (let round = 0; round < 50; round++) {
    for (let at = 0; at < 20; at++) pair.write(`a/k${at}`, noise())
    pair.settle()
    most = Math.max(most, pair.end!.session.heldBytes)
  }
  assert.ok(most < sessionLimits.waitingBytesMax + 64 * 1024, `${most} bytes for one edge`)
  const sent = bytesOf(pair.sent('events'))
  assert.ok(sent <= sessionLimits.windowWanted + 64 * 1024, `${sent} bytes were sent without an acknowledgement`)
  pair.isHeldUp = false
  pair.settle()
  assert.equal(pair.edge.copies.get('s0')?.objects.size, 20)
  assert.equal(
    pair.text('a/k7'),
    pair.cluster.at(0, pair.cluster.version).get('a/k7')?.bytes.toString().split(';').at(-1),
  )
})

test('[L1] what was deleted and made again is told as both; what came and went is not told', () => {
  const pair = live()
  pair.isHeldUp = true
  pair.write('a/k0', 'again', true)
  pair.write('a/k1', 'another', true)
  pair.write('a/k1', 'another one', true)
  pair.write('a/new', 'here')
  pair.write('a/new', undefined)
  pair.write('a/k2', undefined)
  pair.settle()
  const told = pair.sent('events').flatMap(({ events }) => events.map(({ change }) => decodeChange(change)))
  assert.deepEqual(
    told.map(({ type, key }) => `${type} ${key}`),
    [...['remove a/k0', 'put a/k0', 'remove a/k1', 'put a/k1', 'remove a/k2']],
  )
  assert.deepEqual(
    told.map(({ version }) => version),
    told.map(({ version }) => version).sort((one, other) => one - other),
  )
})

test('[L1] a delta of bytes that the edge does not hold becomes no other bytes: the interest is compared and the key sent again', () => {
  const pair = live()
  const copy = pair.edge.copies.get('s0')!
  const { version } = copy.objects.get('a/k3')!
  pair.edge.damage('s0', 'a/k3', { version, bytes: Buffer.from('u=damaged;') })
  pair.write('a/k3', `${pod(3)},"new":"1"`)
  pair.settle()
  assert.equal(pair.edge.figures.astray, 1)
  assert.equal(pair.text('a/k3'), `${pod(3)},"new":"1"`)
  assert.ok(pair.sent('block').length <= 1 && bytesOf(pair.sent('block')) < 900, 'only that object travels')
  assert.equal(pair.closed, undefined)
})

test('[L1] what is removed while it waits to be sent as a block is an event, and large changes after it are taken', () => {
  const pair = new SimulatedPair({ interests: ['s0', 's0/b'] })
  pair.write('b/k1', 'small')
  pair.connect()
  pair.toEdge.splice(0)
  // Of two interests one has its block on the line, which takes no more; the other one's waits.
  pair.isHeldUp = true
  pair.write('b/k1', randomBytes(90_000).toString('base64'))
  pair.settle()
  pair.write('b/k1', undefined)
  pair.settle()
  pair.isHeldUp = false
  pair.settle()
  const large = randomBytes(90_000).toString('base64')
  pair.write('b/k2', large)
  pair.settle()
  pair.progress()
  assert.equal(pair.closed, undefined)
  for (const name of ['s0', 's0/b']) {
    assert.equal(pair.text('b/k1', name), undefined)
    assert.equal(pair.text('b/k2', name), large)
  }
  assert.equal(new Set(pair.sent('block').map(({ interest, version }) => `${interest} ${version}`)).size, 3)
})

test('[L1] a change that is too large for an event travels as a block among the events', () => {
  const pair = live()
  const large = randomBytes(90_000).toString('base64')
  pair.write('a/k1', large)
  pair.write('a/k2', 'behind it')
  pair.settle()
  assert.ok(pair.sent('block').length > 5)
  assert.equal(pair.text('a/k1'), large)
  assert.equal(pair.text('a/k2'), 'behind it')
  const last = pair.toHub.findLast((frame) => frame.kind === 'acknowledge')
  assert.equal(last?.position, 2)
})

test('[L1] a snapshot goes on where it broke off, with what changed meanwhile in what was sent', () => {
  const pair = new SimulatedPair({ limits: { blockObjectBytes: 3_000, pieceBytes: 500, bulkBytesMin: 600 } })
  for (let at = 10; at < 60; at++) pair.write(`a/k${at}`, pod(at))
  pair.cutAfterBlocks = 12
  pair.connect()
  const copy = pair.edge.copies.get('s0')!
  assert.ok(copy.partial !== undefined && copy.staged.length > 5 && copy.version === 0, 'it broke off')
  pair.write('a/k10', 'changed meanwhile')
  pair.write('a/k11', undefined)
  pair.cutAfterBlocks = Number.POSITIVE_INFINITY
  const { after } = copy.partial
  pair.connect()
  assert.equal(pair.edge.figures.resumed, 1)
  assert.deepEqual([copy.objects.size, pair.text('a/k10'), pair.text('a/k11')], [49, 'changed meanwhile', undefined])
  assert.ok(
    pair.sent('block').every((block) => block.after >= after),
    'nothing was sent twice',
  )
})

test('[L7] an edge ahead of its hub waits and is not rolled back; a cluster that was put back is healed by comparison', () => {
  const pair = live()
  const behind = pair.newHub()
  pair.write('a/k0', 'later')
  pair.settle()
  pair.hub = behind
  pair.connect()
  assert.deepEqual([pair.edge.figures.waits, pair.text('a/k0')], [1, 'later'])
  behind.advance(pair.cluster, 0, pair.cluster.version)
  pair.write('a/k1', 'on we go')
  pair.settle()
  assert.deepEqual([pair.edge.figures.snapshots, pair.text('a/k1')], [1, 'on we go'])
  pair.cluster.restore(pair.cluster.version - 2)
  pair.hub.start(pair.cluster)
  pair.settle()
  assert.equal(pair.edge.figures.losses, 1)
  assert.deepEqual([pair.text('a/k0'), pair.text('a/k1')], [pod(0), pod(1)])
  assert.equal(pair.edge.copies.get('s0')?.version, pair.cluster.version)
})

test('[L7] what an edge is ahead by is asked about after a moment, and again; it is told its past is lost where the API server is behind it', () => {
  const pair = live()
  const behind = pair.newHub()
  pair.write('a/k0', 'later')
  pair.settle()
  const had = pair.cluster.version
  pair.hub = behind
  let asked = 0
  const { serve } = behind
  behind.serve = (end, effect) => {
    if (effect.effect === 'ahead') asked++
    serve.call(behind, end, effect)
  }
  const passes = (ms: number) => {
    pair.now += ms
    for (let times = 0; times < 2; times++) pair.settle()
  }
  pair.connect()
  const keepsWaiting = [pair.limits.aheadMs, pair.limits.aheadAgainMs]
  for (const [times, ms] of keepsWaiting.entries()) {
    assert.ok(pair.end!.session.nextTick <= pair.now + ms)
    passes(ms - 1)
    assert.equal(asked, times)
    passes(1)
    // As far as the edge: it is the hub that is behind.
    assert.deepEqual([asked, pair.sent('lost')], [times + 1, []])
  }
  pair.cluster.restoreUnseen(had - 1)
  passes(pair.limits.aheadAgainMs)
  assert.deepEqual(pair.sent('lost'), [{ kind: 'lost', interest: 1, epoch: 1, version: had }])
  assert.deepEqual([pair.edge.figures.ownLosses, pair.edge.figures.losses], [1, 0])
  assert.deepEqual([pair.text('a/k0'), pair.edge.copies.get('s0')?.version], [pod(0), pair.cluster.version])
  // What was true a moment ago says nothing of an interest that has begun.
  assert.equal(pair.end!.session.measured(1, 0), false)
  passes(pair.limits.aheadAgainMs)
  assert.equal(asked, 3)
})

test('an edge is asked to move within a time; when it is over the link ends', () => {
  const pair = live()
  pair.end!.session.drain(3_000, 'an upgrade', pair.now)
  pair.settle()
  assert.deepEqual(pair.sent('drain'), [{ kind: 'drain', withinMs: 3_000, sentence: 'an upgrade' }])
  assert.equal(pair.edge.session?.state, 'leaving')
  pair.write('a/k0', 'still told')
  pair.settle()
  assert.equal(pair.text('a/k0'), 'still told')
  pair.now += 3_000
  pair.settle()
  assert.equal(pair.closed?.reason, 'drained')
})

test('[L7] a version that is given out again after a restore is told from the one before, also of the same object', () => {
  const pair = live()
  pair.write('a/k0', 'of the past that is lost')
  pair.settle()
  const { version } = pair.edge.copies.get('s0')!
  pair.cluster.restore(version - 1)
  pair.cluster.change(0, 'a/k0', 'of the past that counts')
  assert.equal(pair.cluster.version, version)
  pair.hub.start(pair.cluster)
  pair.settle()
  assert.deepEqual([pair.text('a/k0'), pair.edge.copies.get('s0')?.version], ['of the past that counts', version])
})

test('[L9] a side of a later release, with more protocols, fields and frames, is understood', () => {
  const pair = new SimulatedPair()
  const added = Buffer.from([7, 1, 2, 3])
  pair.pass = (frame) => {
    // Of these the last field is itself one that was added later, and stands only where it says something.
    if (frame.kind === 'subscribe' || frame.kind === 'complete') return frame
    const later = frame.kind === 'hello' ? { ...frame, newest: 3, release: '3' } : frame
    assert.equal(decodeFrame(Buffer.concat([Buffer.of(0x41), added])), undefined)
    return decodeFrame(Buffer.concat([encodeFrame(later), added]))
  }
  for (let at = 0; at < 5; at++) pair.write(`a/k${at}`, pod(at))
  pair.connect()
  pair.write('a/k1', 'changed')
  pair.progress()
  assert.equal(pair.text('a/k1'), 'changed')
  pair.connect()
  assert.deepEqual([pair.edge.figures.replays, pair.closed], [1, undefined])
})

test('[A6] a hub that has something to tell and may not send it does not call its edge fresh', () => {
  const pair = live()
  const pong = () => pair.toEdge.findLast((frame) => frame.kind === 'pong')
  pair.edgeSends({ kind: 'ping', number: 0 })
  assert.deepEqual(pong(), { kind: 'pong', number: 0, ageMs: 0, stale: [] })
  // The edge commits nothing: its window is full, and the rest waits.
  pair.isHeldUp = true
  for (let at = 0; at < 40; at++) {
    pair.write(`a/new-${at}`, randomBytes(9_000).toString('base64'))
    pair.settle()
  }
  assert.ok(pair.end!.session.heldBytes > 1_000)
  pair.edgeSends({ kind: 'ping', number: 0 })
  assert.deepEqual(pong(), { kind: 'pong', number: 0, ageMs: 0, stale: [1] })
})

test('an edge hears what its hub says of documents, first behind its welcome and then when that is another', () => {
  const signs = [Buffer.from('one'), Buffer.of()]
  const hub = new HubSession({
    ...{
      hub: 'h',
      release: '1',
      cluster: 'c1',
      epoch: 1,
      lost: 0,
      digestKey: Buffer.of(1),
      now: 0,
      signs: () => signs,
    },
    ...{ changes: new SharedChanges(), admit: () => undefined },
  })
  const sent = (effects: readonly HubEffect[]) => effects.flatMap((one) => (one.effect === 'send' ? [one.frame] : []))
  hub.signed()
  assert.deepEqual(sent(hub.tick(0)), [], 'who is there is not known yet')
  const [welcome, documents] = sent(hub.receive(hello(), 0))
  assert.equal(welcome?.kind, 'welcome')
  assert.deepEqual(documents, { kind: 'documents', signs })
  signs[1] = Buffer.from('two')
  hub.signed()
  assert.deepEqual(sent(hub.tick(1)), [{ kind: 'documents', signs }])
})
