import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LinkFrame } from '../frames/frames.ts'
import { EdgeSession } from './edge.ts'
import { Liveness, nextKeepalive } from './liveness.ts'
import { SimulatedPair } from './pair.test-support.ts'

/** What is due at each whole second, with a peer that answers pings until a moment. */
function seconds(parts: { isWaiting: boolean; keepaliveMs: number; answersUntil: number; upTo: number }): string[] {
  const liveness = new Liveness(parts.keepaliveMs, 0)
  const found: string[] = []
  for (let now = 0; now <= parts.upTo; now += 100) {
    const due = liveness.due(parts.isWaiting, now)
    if (due !== undefined) found.push(`${due} ${now}`)
    if (due === 'dead') break
    if (due === 'ping' && now < parts.answersUntil) liveness.heard(now + 50)
    assert.ok(liveness.next() > now, 'something else is due at once')
  }
  return found
}

test('[L3] silence is broken by a ping after 2 s and is the end after 5, while something waits for the other side', () => {
  const parts = { isWaiting: true, keepaliveMs: 30_000, upTo: 20_000 }
  assert.deepEqual(seconds({ ...parts, answersUntil: 0 }), ['ping 2000', 'dead 5000'])
  const answered = seconds({ ...parts, answersUntil: 9_000 })
  assert.deepEqual(answered.slice(0, 2), ['ping 2000', 'ping 4100'])
  const [end, last] = [answered.at(-1), answered.at(-3)].map((text) => Number(text?.split(' ')[1]))
  assert.ok(answered.at(-1)?.startsWith('dead') && end! - last! <= 5_200, answered.join(', '))
})

test('[L3] an idle link is asked every 30 s and ends 5 s after a question without an answer', () => {
  const parts = { isWaiting: false, keepaliveMs: 30_000, upTo: 100_000 }
  assert.deepEqual(seconds({ ...parts, answersUntil: 40_000 }), ['ping 30000', 'ping 60100', 'dead 65100'])
})

test('[L3] a path that forgot an idle link is asked more often, and less again when one has lived long', () => {
  let keepaliveMs = 30_000
  const steps = [true, true, true, true].map((isSilent) => {
    keepaliveMs = nextKeepalive(keepaliveMs, { isSilent, livedMs: 60_000 })
    return keepaliveMs
  })
  assert.deepEqual(steps, [15_000, 7_500, 5_000, 5_000])
  assert.equal(nextKeepalive(5_000, { isSilent: false, livedMs: 60_000 }), 5_000)
  assert.equal(nextKeepalive(5_000, { isSilent: false, livedMs: 4_000_000 }), 10_000)
  assert.equal(nextKeepalive(20_000, { isSilent: false, livedMs: 4_000_000 }), 30_000)
})

test('[L3] both sides notice a half-open link: the hub what is not acknowledged, the edge what is not answered', () => {
  const pair = new SimulatedPair()
  pair.write('a/k1', 'text')
  pair.connect()
  pair.isHeldUp = true
  pair.write('a/k1', 'changed')
  const hub = pair.end!.session
  const sent = (effects: readonly { effect: string; frame?: LinkFrame }[]) =>
    effects.flatMap(({ effect, frame }) => (effect === 'send' ? [frame!.kind] : effect === 'close' ? ['close'] : []))
  assert.deepEqual(sent(hub.tick(pair.now)), ['events'])
  assert.deepEqual(sent(hub.tick(pair.now + 2_000)), ['ping'])
  assert.deepEqual(sent(hub.tick(pair.now + 4_500)), [])
  assert.deepEqual(sent(hub.tick(pair.now + 5_000)), ['close'])
  const edge = pair.edge.session!
  edge.subscribe('s1', { epoch: 1, version: 0, wish: 'resume' })
  assert.deepEqual(sent(edge.tick(pair.now)), ['subscribe'])
  assert.deepEqual(sent(edge.tick(pair.now + 2_000)), ['ping'])
  assert.deepEqual(sent(edge.tick(pair.now + 4_500)), [])
  assert.deepEqual(sent(edge.tick(pair.now + 5_000)), ['close'])
})

test('[L3] an edge that is not answered, and a hub that is not greeted, give up within 5 s', () => {
  const pair = new SimulatedPair()
  pair.edge.connect(0)
  pair.edge.session!.tick(0)
  pair.edge.session!.tick(4_500)
  assert.deepEqual(pair.edge.session!.tick(5_000).at(-1)?.effect, 'close')
  assert.equal(pair.edge.session!.nextKeepaliveMs(5_000), 15_000)
  const { session } = pair.hub.connect(0)
  session.tick(0)
  assert.equal(session.nextTick <= 5_000, true)
  session.tick(2_000)
  session.tick(4_500)
  assert.deepEqual(session.tick(5_000).at(-1)?.effect, 'close')
})

test('[L3] a sign of life can be asked for at any time, and is asked for once', () => {
  const liveness = new Liveness(30_000, 0)
  assert.equal(liveness.due(false, 10), undefined)
  liveness.want()
  assert.equal(liveness.due(false, 20), 'ping')
  liveness.want()
  assert.equal(liveness.due(false, 30), undefined)
  liveness.heard(40)
  assert.equal(liveness.due(false, 50), undefined)
  liveness.want()
  assert.equal(liveness.due(false, 60), 'ping')
  assert.equal(liveness.due(false, 60 + 4_500), undefined)
  assert.equal(liveness.due(false, 60 + 5_000), 'dead')
})

test('[L3] a side that was stopped itself reads what waits for it before it takes anybody for dead', () => {
  const liveness = new Liveness(30_000, 0)
  assert.equal(liveness.due(true, 0), undefined)
  assert.equal(liveness.due(true, 2_000), 'ping')
  // Stopped for 18 s: the timer of the look comes first, then the socket, with the answer of long ago.
  assert.equal(liveness.due(true, 20_000), undefined)
  assert.equal(liveness.next(), 20_500)
  liveness.heard(20_010)
  assert.equal(liveness.due(true, 20_510), undefined)
  assert.equal(liveness.due(true, 22_010), 'ping')
})

test('[L3] one that is late at each look as well finds its end in half a minute, and one that is late once in half a second', () => {
  const once = new Liveness(30_000, 0)
  for (const now of [0, 2_000, 12_000]) assert.notEqual(once.due(true, now), 'dead')
  assert.equal(once.due(true, 12_500), 'dead')
  const always = new Liveness(30_000, 0)
  let now = 0
  for (; always.due(true, now) !== 'dead'; now = always.next() + 900) assert.ok(now < 40_000)
  assert.ok(now >= 30_000 && now < 32_000, String(now))
})

/** An edge's session that was welcomed, with requests that a test has answered or not; the pings it sends, and its end. */
function awaitingEdge() {
  const state = { isAwaiting: false }
  const session = new EdgeSession({
    ...{ edge: 'e', release: '1', cluster: '', epoch: 0, keepaliveMs: 30_000, held: () => undefined, now: 0 },
    isAwaiting: () => state.isAwaiting,
  })
  session.receive(
    {
      ...{ kind: 'welcome', protocol: 1, hub: 'h', release: '1', cluster: 'c1', epoch: 1, window: 1 << 18 },
      ...{ digestKey: Buffer.from('secret'), trusts: 0, counts: 0 },
    },
    0,
  )
  /** At each time that it asks for, up to a moment: what it does, and when. */
  const upTo = (until: number, answers: (at: number) => boolean = () => false) => {
    const found: string[] = []
    for (let now = session.nextTick; now <= until && session.state !== 'closed'; now = session.nextTick)
      for (const effect of session.tick(now)) {
        if (effect.effect === 'close') found.push(`close ${now}`)
        if (effect.effect !== 'send' || effect.frame.kind !== 'ping') continue
        found.push(`ping ${now}`)
        if (answers(now)) session.receive({ kind: 'pong', number: effect.frame.number, ageMs: 0, stale: [] }, now)
      }
    return found
  }
  return { session, state, upTo }
}

test('[L3] a request that nothing was answered to is something that waits: its link is given up after 5 s, and kept while its hub answers pings', () => {
  const silent = awaitingEdge()
  silent.state.isAwaiting = true
  silent.session.streamed(600, 3_000)
  silent.session.tick(3_000)
  assert.deepEqual(silent.upTo(60_000), ['ping 5000', 'close 8000'])
  const slow = awaitingEdge()
  slow.state.isAwaiting = true
  slow.session.streamed(600, 3_000)
  slow.session.tick(3_000)
  assert.deepEqual(
    slow.upTo(10_000, () => true),
    ['ping 5000', 'ping 7000', 'ping 9000'],
  )
  slow.state.isAwaiting = false
  assert.deepEqual(
    slow.upTo(38_000, () => true),
    [],
  )
})

test('[L3] what has not come to the hub yet on a slow line is not owed an answer: a ping behind it would not be answered in time', () => {
  const { session, state, upTo } = awaitingEdge()
  state.isAwaiting = true
  // 12.8 s at 64 kbit/s.
  session.streamed(102_400, 3_000)
  session.tick(3_000)
  assert.deepEqual(upTo(20_000), ['ping 15800', 'close 18800'])
  const much = awaitingEdge()
  much.state.isAwaiting = true
  much.session.streamed(100_000_000, 3_000)
  much.session.tick(3_000)
  // However much it was: no later than on an idle link.
  assert.deepEqual(much.upTo(60_000), ['ping 30000', 'close 35000'])
})
