import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionLimits } from './limits.ts'
import { BulkPace } from './pace.ts'

/** A line with a queue of its own, as a modem has: how long an event waits behind bulk, and what of the line is used. */
function send(parts: {
  bytesPerMs: number
  roundTripMs: number
  forMs: number
  /** The path becomes another one. */
  later?: { readonly fromMs: number; readonly roundTripMs: number; readonly seenFromMs: number }
}) {
  const { bytesPerMs, forMs, later } = parts
  const pace = new BulkPace(sessionLimits)
  const arrivals: { readonly at: number; readonly upTo: number }[] = []
  let [freeAt, sent, waited, seen, most] = [0, 0, 0, 0, 0]
  const next = (now: number) => pace.share(sessionLimits.pieceBytes, now)
  for (let now = 0; now < forMs; now++) {
    while (arrivals[0] !== undefined && arrivals[0].at <= now)
      assert.ok(pace.acknowledge((arrivals.shift() as { upTo: number }).upTo, now))
    const roundTripMs = later !== undefined && now >= later.fromMs ? later.roundTripMs : parts.roundTripMs
    for (let piece = next(now); piece > 0; piece = next(now)) {
      pace.send(piece, now)
      sent += piece
      freeAt = Math.max(now, freeAt) + piece / bytesPerMs
      arrivals.push({ at: freeAt + roundTripMs, upTo: sent })
      if (now >= (later?.seenFromMs ?? 0)) seen += piece
    }
    most = Math.max(most, pace.unacknowledged)
    waited = Math.max(waited, freeAt - now)
  }
  return { waited, most, used: seen / (bytesPerMs * (forMs - (later?.seenFromMs ?? 0))), limit: pace.limit }
}

test('[L2] an event waits at most 300 ms behind bulk at 1 Mbit/s, and the line is used all the same', () => {
  for (const roundTripMs of [1, 20, 100, 200, 600]) {
    const { waited, used } = send({ bytesPerMs: 125, roundTripMs, forMs: 20_000 })
    assert.ok(waited <= 300, `${waited} ms at a round trip of ${roundTripMs}`)
    assert.ok(used > (roundTripMs > 200 ? 0.5 : 0.9), `${used} of the line at a round trip of ${roundTripMs}`)
  }
})

test('[L2] bulk grows with the line, and never beyond its limit', () => {
  const fast = send({ bytesPerMs: 12_500, roundTripMs: 50, forMs: 10_000 })
  assert.ok(fast.used > 0.7, `${fast.used} of 100 Mbit/s`)
  assert.ok(fast.limit <= sessionLimits.bulkBytesMax)
  assert.equal(send({ bytesPerMs: 1, roundTripMs: 50, forMs: 1_000 }).limit, sessionLimits.bulkBytesMin)
})

test('[L8] what was not sent is not acknowledged', () => {
  const pace = new BulkPace(sessionLimits)
  pace.send(1_000, 0)
  assert.ok(!pace.acknowledge(1_001, 5))
  assert.ok(pace.acknowledge(600, 5))
  assert.ok(!pace.acknowledge(599, 6))
  assert.equal(pace.unacknowledged, 400)
})

test('[L2] there is never more on its way than what the line holds and 100 ms of it, or 32 KiB', () => {
  for (const [bytesPerMs, roundTripMs] of [
    [125, 600],
    [1_250, 20],
    [1_250, 200],
  ] as const) {
    const { most } = send({ bytesPerMs, roundTripMs, forMs: 150_000 })
    // A piece that has the line for itself comes after its round trip and the time that it takes; times are whole milliseconds.
    const line = 1.05 * (bytesPerMs * (roundTripMs + 100) + sessionLimits.pieceBytes)
    assert.ok(most <= Math.max(sessionLimits.bulkBytesMin, line), `${most} of ${line}`)
  }
})

test('[L2] a path that becomes another one is measured anew: a longer one is used, and an event still hardly waits', () => {
  const seenFromMs = 80_000
  const longer = send({
    ...{ bytesPerMs: 1_250, roundTripMs: 20, forMs: 100_000 },
    later: { fromMs: 5_000, roundTripMs: 500, seenFromMs },
  })
  assert.ok(longer.used > 0.8, `${longer.used} of a longer line`)
  assert.ok(longer.waited <= 300, `${longer.waited} ms`)
  const same = send({ bytesPerMs: 125, roundTripMs: 1, forMs: 300_000 })
  assert.ok(same.waited <= 300, `${same.waited} ms after five minutes`)
  assert.ok(same.used > 0.9, `${same.used} of the line`)
})

test('[L5] of a little that is not said at once nothing is owed, and it takes no room from what follows', () => {
  const pace = new BulkPace(sessionLimits)
  for (let at = 0; at < 6; at++) pace.send(300, at * 10_000, false)
  assert.deepEqual([pace.isOwed, pace.unacknowledged], [false, 1_800])
  pace.send(300, 60_000, false)
  assert.equal(pace.isOwed, true)
  assert.ok(pace.acknowledge(2_100, 60_200))
  pace.send(100, 70_000, false)
  pace.send(8_192, 70_001)
  assert.equal(pace.isOwed, true)
  assert.ok(pace.acknowledge(10_392, 70_301))
  assert.equal(pace.isOwed, false)
  assert.equal(pace.limit, sessionLimits.bulkBytesMin)
})
