import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LinkFrame } from '../frames/frames.ts'
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
