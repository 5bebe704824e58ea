/** Times as Kubernetes has them: RFC 3339 in JSON, seconds since 1970 (and microseconds, where kept) in protobuf. */
import { ProtobufFault } from './fault.ts'
import type { Output } from './output.ts'

/** 0001-01-01T00:00:00Z is what Go takes for no time at all. */
export const zeroSeconds = -62_135_596_800
/** 10000-01-01T00:00:00Z: from here on a year has more than four digits. */
const longSeconds = 253_402_300_800

const daySeconds = 86_400
/** From the first of March of the year 0, where the calendar of leap years begins, to 1970. */
const daysBefore = 719_468
/** The calendar repeats after 400 years. */
const cycleDays = 146_097
const cycleSeconds = BigInt(cycleDays * daySeconds)

const zero = 0x30
const nine = 0x39
const dash = 0x2d
const colon = 0x3a

export type Moment = { readonly seconds: number; readonly micros: number }

/** `from` and `to` stand between the quotes. */
export function readTime(json: Buffer, from: number, to: number): Moment {
  // 2006-01-02T15:04:05Z is nearly all there is.
  if (to - from === 20 && json[to - 1] === 0x5a) {
    const seconds = plainSeconds(json, from)
    if (seconds !== undefined) return { seconds, micros: 0 }
  }
  return readText(json.toString('latin1', from, to))
}

/** Of days that every month has; the others take the slower way. */
function plainSeconds(json: Buffer, from: number): number | undefined {
  const year = digits(json, from, 4)
  const month = digits(json, from + 5, 2)
  const day = digits(json, from + 8, 2)
  const hour = digits(json, from + 11, 2)
  const minute = digits(json, from + 14, 2)
  const second = digits(json, from + 17, 2)
  if (year > 9999 || month < 1 || month > 12 || day < 1 || day > 28) return undefined
  if (hour > 23 || minute > 59 || second > 59) return undefined
  // Counted from March, so that the leap day is the last of its year.
  const y = month < 3 ? year - 1 : year
  const dayOfYear = Math.floor((153 * (month < 3 ? month + 9 : month - 3) + 2) / 5) + day - 1
  const days = y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + dayOfYear - daysBefore
  return days * daySeconds + hour * 3600 + minute * 60 + second
}

/** Beyond every limit where something else than a digit stands there. */
function digits(json: Buffer, from: number, count: number): number {
  let value = 0
  for (let i = from; i < from + count; i++) {
    const byte = json[i] as number
    if (byte < zero || byte > nine) return 1e6
    value = value * 10 + byte - zero
  }
  return value
}

const form = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/

function readText(text: string): Moment {
  const [matched, year, month, day, hour, minute, second, fraction = '', sign, hours, minutes] = form.exec(text) ?? []
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  date.setUTCHours(Number(hour), Number(minute), Number(second))
  const real = date.getUTCDate() === Number(day) && Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60
  if (matched === undefined || !real) throw new ProtobufFault(`no time: ${text}`)
  const offset = (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60)
  return { seconds: date.getTime() / 1000 - offset, micros: Number(fraction.padEnd(6, '0').slice(0, 6)) }
}

/** `2006-01-02T15:04:05`, with which both forms begin. */
export function printSeconds(output: Output, seconds: number | bigint): void {
  if (seconds < zeroSeconds || seconds >= longSeconds) {
    output.ascii(unusualSeconds(BigInt(seconds)))
    return
  }
  const days = Math.floor(Number(seconds) / daySeconds)
  const rest = Number(seconds) - days * daySeconds
  printDate(output, days + daysBefore)
  output.byte(0x54)
  printTwo(output, Math.floor(rest / 3600))
  output.byte(colon)
  printTwo(output, Math.floor(rest / 60) % 60)
  output.byte(colon)
  printTwo(output, rest % 60)
}

function printDate(output: Output, days: number): void {
  const cycle = Math.floor(days / cycleDays)
  const day = days - cycle * cycleDays
  const leaps = Math.floor(day / 1460) - Math.floor(day / 36_524) + Math.floor(day / 146_096)
  const y = Math.floor((day - leaps) / 365)
  const dayOfYear = day - (365 * y + Math.floor(y / 4) - Math.floor(y / 100))
  const m = Math.floor((5 * dayOfYear + 2) / 153)
  const year = cycle * 400 + y + (m < 10 ? 0 : 1)
  printTwo(output, Math.floor(year / 100))
  printTwo(output, year % 100)
  output.byte(dash)
  printTwo(output, m < 10 ? m + 3 : m - 9)
  output.byte(dash)
  printTwo(output, dayOfYear - Math.floor((153 * m + 2) / 5) + 1)
}

function printTwo(output: Output, value: number): void {
  output.byte(zero + Math.floor(value / 10))
  output.byte(zero + (value % 10))
}

/** Of years beyond 9999 and before 1 as many digits as needed. */
function unusualSeconds(seconds: bigint): string {
  const cycles = seconds / cycleSeconds - (seconds % cycleSeconds < 0n ? 1n : 0n)
  const date = new Date(Number(seconds - cycles * cycleSeconds) * 1000)
  const year = BigInt(date.getUTCFullYear()) + cycles * 400n
  const digits = String(year < 0n ? -year : year).padStart(4, '0')
  return `${year < 0n ? '-' : ''}${digits}${date.toISOString().slice(4, 19)}`
}
