import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../base/until.test-support.ts'
import { HubRefusal } from '../../upstream/linked/hubdial.ts'
import { HubTicketPouch } from '../../upstream/linked/tickets.ts'
import { makeTickets } from '../state/state.ts'
import { connect, credentialOf, startHub } from './hub.test-support.ts'

const edges = 200

test('[L22] 200 full handshakes at once: the rate of them gets through, in line, the others hear when to come back', async () => {
  await using hub = await startHub({ limits: { fullPerSecond: 10, lineMsMax: 1_000 } })
  const credential = credentialOf(hub.state)
  const startedMs = performance.now()
  const attempts = await Promise.allSettled(
    Array.from({ length: edges }, () => connect(hub.state, { address: hub.address(), credential })),
  )
  const tookMs = performance.now() - startedMs
  const refused = attempts.flatMap((one) => (one.status === 'rejected' ? [one.reason as Error] : []))
  for (const error of refused) {
    assert.ok(error instanceof HubRefusal, error.message)
    assert.ok(error.retryAfterMs >= 5_000 && error.retryAfterMs <= 10_000)
  }
  const { full } = hub.listener.counts
  // A tenth of a second at once, a line of one second, and what the rate gave while they came.
  assert.ok(full >= 1 + 10 && full <= 1 + 10 + (10 * tookMs) / 1_000, `${full} in ${tookMs} ms`)
  assert.equal(full + refused.length, edges)
  assert.equal(hub.listener.arriving.turnedAway, refused.length)
  assert.ok(tookMs >= 900, 'those in line waited for their turn')
  await until(() => hub.listener.arriving.all === 0)
})

test('[L22] while full handshakes wait in line those with a ticket get through; tickets that are worth nothing do not help', async () => {
  await using hub = await startHub({ limits: { fullPerSecond: 2, lineMsMax: 30_000, arrivalMsMax: 60_000 } })
  const credential = credentialOf(hub.state)
  const tickets = new HubTicketPouch()
  await connect(hub.state, { address: hub.address(), credential, tickets })
  await until(() => tickets.get('127.0.0.1'))
  const ending = new AbortController()
  const flood = Array.from({ length: 60 }, () =>
    connect(hub.state, {
      address: hub.address(),
      credential,
      signal: ending.signal,
      limits: { dialMsMax: 60_000 },
    }).catch(() => {}),
  )
  await until(() => hub.listener.arriving.waiting >= 30)
  const startedMs = performance.now()
  const resumed = await Promise.all(
    Array.from({ length: 20 }, () => connect(hub.state, { address: hub.address(), credential, tickets })),
  )
  assert.ok(resumed.every(({ link }) => link.peer.resumed))
  assert.ok(hub.listener.arriving.waiting > 0, `nobody waits any more after ${performance.now() - startedMs} ms`)
  ending.abort()
  await Promise.all(flood)
  await until(() => hub.listener.arriving.waiting === 0)
  // The same ticket at a hub that has rotated its key.
  hub.adopt({ ...hub.state, tickets: makeTickets(0) })
  await pause(200)
  const before = hub.listener.counts.full
  const beganMs = performance.now()
  const late = await Promise.allSettled(
    Array.from({ length: 40 }, () => {
      const pouch = new HubTicketPouch()
      pouch.keep('127.0.0.1', tickets.get('127.0.0.1')!)
      return connect(hub.state, { address: hub.address(), credential, tickets: pouch, limits: { dialMsMax: 2_000 } })
    }),
  )
  const seconds = (performance.now() - beganMs) / 1_000
  const got = late.filter(({ status }) => status === 'fulfilled').length
  assert.ok(hub.listener.counts.full > before)
  assert.ok(got <= 1 + 2 * seconds, `${got} links in ${seconds} s`)
})
