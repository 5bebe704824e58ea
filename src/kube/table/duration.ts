/**
 * Times as kubectl users read them: how long ago, in two or three significant figures (`5m30s`, `7d4h`). The steps are
 * those of Kubernetes, because people and scripts compare these columns between servers.
 */

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Go's durations are int64 nanoseconds: a difference beyond 292 years is shown as 292 years. */
const LONGEST = 9_223_372_036_854

/** Go's zero time, which stands for "not set". */
const ZERO_TIME = Date.parse('0001-01-01T00:00:00Z')

const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,](\d+))?(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)$/

/** Milliseconds since the epoch, or undefined where the text is no RFC 3339 time. */
export function parseTime(text: string): number | undefined {
  const match = RFC3339.exec(text)
  if (match === null) return undefined
  const [, year, month, day] = match
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number(month) < 1 || Number(month) > 12 || Number(day) < 1 || Number(day) > lastDay) return undefined
  const ms = Date.parse(text.replace(',', '.'))
  return Number.isNaN(ms) ? undefined : ms
}

/** A time of an object as milliseconds; undefined for what Kubernetes treats as unset: absent, null, zero. */
export function setTime(value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined
  const ms = parseTime(value)
  return ms === ZERO_TIME ? undefined : ms
}

/** How long ago a time of an object was: `<unknown>` when it is not set. */
export function ageOf(value: unknown, nowMs: number): string {
  const ms = setTime(value)
  return ms === undefined ? '<unknown>' : humanDuration(nowMs - ms)
}

export function humanDuration(durationMs: number): string {
  const ms = Math.max(-LONGEST, Math.min(LONGEST, durationMs))
  const seconds = Math.trunc(ms / SECOND)
  // Clocks of two machines differ: a second in the future is still "now".
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.trunc(ms / MINUTE)
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(ms / HOUR)
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (days < 8) return pair(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  if (years < 8) return pair(years, 'y', days % 365, 'd')
  return `${years}y`
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`
}
