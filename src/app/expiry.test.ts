/** That credentials end is said in time, and once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { createLog } from '../base/log.ts'
import type { CredentialLife } from '../upstream/credential.ts'
import { Expiry, expiryFigures } from './expiry.ts'

const hourMs = 3_600_000
const startMs = Date.UTC(2026, 0, 1)

test('a week, a day and an hour before the end, and at the end: one line each, by the clock of the wall', async () => {
  const clock = fakeClock(startMs)
  const lines: string[] = []
  let ends = startMs + 8 * 24 * hourMs
  const credentials = (): CredentialLife[] => [
    { use: 'edge', name: 'edge-1', endsAtMs: ends },
    { use: 'caller', name: 'n', missing: 'gone' },
    { use: 'serving', endsAtMs: startMs + 700 * 24 * hourMs },
  ]
  const log = createLog({ level: 'debug', write: (line) => lines.push(line.trim().split(' ').slice(1).join(' ')) })
  const expiry = new Expiry({ credentials, clock, log })
  const stop = new AbortController()
  const running = expiry.run(stop.signal)
  const told: number[] = []
  for (let hour = 0; hour <= 9 * 24; hour++) {
    clock.advance(hourMs)
    await new Promise((resolve) => setImmediate(resolve))
    if (lines.length > told.length) told.push(hour + 1)
  }
  assert.deepEqual(told, [24, 7 * 24, 8 * 24 - 1, 8 * 24])
  const at = 'of=edge name=edge-1 at=2026-01-09T00:00:00.000Z'
  assert.deepEqual(lines, [
    `warn credential.expires ${at} within=7d`,
    `warn credential.expires ${at} within=24h`,
    `warn credential.expires ${at} within=60m`,
    `error credential.expired ${at}`,
  ])
  ends = clock.now() + 30 * 60_000
  expiry.look()
  assert.match(
    lines.at(-1) ?? '',
    /^warn credential\.expires .* within=30m$/,
    'another one begins with what is left of it',
  )
  expiry.look()
  assert.equal(lines.length, 5)
  stop.abort()
  await running
})

test('a certificate that lives for a week is spoken of once it should have been renewed, and not from its first day on', () => {
  const clock = fakeClock(startMs)
  const lines: string[] = []
  const life: CredentialLife = {
    ...{ use: 'edge', name: 'edge-1' },
    ...{ beganAtMs: startMs, endsAtMs: startMs + 7 * 24 * hourMs },
  }
  const log = createLog({ level: 'debug', write: (line) => lines.push(line) })
  const expiry = new Expiry({ credentials: () => [life], clock, log })
  for (let hour = 0; hour < 142; hour++) {
    expiry.look()
    clock.advance(hourMs)
  }
  assert.deepEqual(lines, [])
  const renewBy = startMs / 1000 + 0.85 * 7 * 24 * 3600
  const figures = expiryFigures([life], clock.now()).join('')
  assert.ok(
    figures.includes(`ake_credential_renew_by_timestamp_seconds{use="edge",name="edge-1"} ${renewBy}\n`),
    figures,
  )
  clock.advance(hourMs)
  expiry.look()
  assert.match(lines.join(''), /credential\.expires .* within=25h/)
})

test('figures tell when each ends, and which cannot be used', () => {
  const text = expiryFigures(
    [
      { use: 'edge', name: 'e', endsAtMs: 5_000 },
      { use: 'caller', name: 'c', missing: 'gone' },
      { use: 'serving', endsAtMs: 15_000 },
    ],
    10_000,
  ).join('')
  assert.match(text, /^ake_credential_expiry_timestamp_seconds\{use="edge",name="e"\} 5$/m)
  assert.match(text, /^ake_credential_valid\{use="edge",name="e"\} 0$/m)
  assert.match(text, /^ake_credential_valid\{use="caller",name="c"\} 0$/m)
  assert.match(text, /^ake_credential_valid\{use="serving",name=""\} 1$/m)
})
