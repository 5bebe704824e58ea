import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sessionLimits } from './limits.ts'
import { BulkPace } from './pace.ts'

/** A line with a queue of its own, as a modem has: how long an event waits behind bulk, and what of the line is used. */
function send(parts: { bytesPerMs: number; roundTripMs: number; forMs: number; startMs?: number }) {
  const { bytesPerMs, roundTripMs, forMs } = parts
  const pace = new BulkPace(sessionLimits)
  const arrivals: { readonly at: number; readonly upTo: number }[] = []
  let [freeAt, sent, waited] = [0, 0, 0]
  for (let now = 0; now < forMs; now++) {
    while (arrivals[0] !== undefined && arrivals[0].at <= now)
      assert.ok(pace.acknowledge((arrivals.shift() as { upTo: number }).upTo, now))
    while (pace.hasRoom(sessionLimits.pieceBytes)) {
      pace.send(sessionLimits.pieceBytes, now)
      sent += sessionLimits.pieceBytes
      freeAt = Math.max(now, freeAt) + sessionLimits.pieceBytes / bytesPerMs
      arrivals.push({ at: freeAt + roundTripMs, upTo: sent })
    }
    waited = Math.max(waited, freeAt - now)
  }
  return { waited, used: sent / (bytesPerMs * forMs), limit: pace.limit }
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
