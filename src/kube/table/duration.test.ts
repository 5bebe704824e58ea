/** The steps of humanDuration are facts of Kubernetes; the table holds each border from both sides. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageOf, humanDuration, parseTime, setTime } from './duration.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

test('humanDuration changes its units where Kubernetes does', () => {
  const table: [number, string][] = [
    [-2 * SECOND, '<invalid>'],
    [-2 * SECOND + 1, '0s'],
    [-1 * SECOND, '0s'],
    [-1, '0s'],
    [0, '0s'],
    [999, '0s'],
    [119 * SECOND + 999, '119s'],
    [120 * SECOND, '2m'],
    [121 * SECOND, '2m1s'],
    [10 * MINUTE - 1, '9m59s'],
    [10 * MINUTE, '10m'],
    [180 * MINUTE - 1, '179m'],
    [3 * HOUR, '3h'],
    [3 * HOUR + 5 * MINUTE, '3h5m'],
    [8 * HOUR - 1, '7h59m'],
    [8 * HOUR, '8h'],
    [48 * HOUR - 1, '47h'],
    [2 * DAY, '2d'],
    [2 * DAY + HOUR, '2d1h'],
    [8 * DAY - 1, '7d23h'],
    [8 * DAY, '8d'],
    [730 * DAY - 1, '729d'],
    [730 * DAY, '2y'],
    [731 * DAY, '2y1d'],
    [8 * 365 * DAY - 1, '7y364d'],
    [8 * 365 * DAY, '8y'],
    [400 * 365 * DAY, '292y'],
  ]
  for (const [ms, text] of table) assert.equal(humanDuration(ms), text, `${ms} ms`)
})

test('parseTime takes RFC 3339 and nothing else', () => {
  assert.equal(parseTime('2026-01-02T03:04:05Z'), Date.UTC(2026, 0, 2, 3, 4, 5))
  assert.equal(parseTime('2026-01-02T03:04:05.123456Z'), Date.UTC(2026, 0, 2, 3, 4, 5, 123))
  assert.equal(parseTime('2026-01-02T03:04:05+02:00'), Date.UTC(2026, 0, 2, 1, 4, 5))
  assert.equal(parseTime('2024-02-29T00:00:00Z'), Date.UTC(2024, 1, 29))
  const wrong = ['', 'yesterday', '2026-01-02', '2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z', '2026-01-02T24:00:00Z']
  for (const text of wrong) assert.equal(parseTime(text), undefined, text)
})

test('an unset time has an unknown age', () => {
  const now = Date.UTC(2026, 0, 1)
  for (const unset of [undefined, null, '', 5, '0001-01-01T00:00:00Z']) assert.equal(ageOf(unset, now), '<unknown>')
  assert.equal(ageOf('2025-12-31T23:59:00Z', now), '60s')
  assert.equal(setTime('2026-01-01T00:00:00Z'), now)
})
