/**
 * What a plain YAML scalar means to Go's YAML 1.1 library, which kube-apiserver and kubectl use: reading and deciding
 * what must be quoted have to agree on it. `y`, `on` and 0x1f are no strings; a time is one, but is written in quotes.
 */
import { JsonError, type Spelled } from '../json.ts'
import { numberFrom } from '../number.ts'

const WORDS: ReadonlyMap<string, boolean | null> = new Map<string, boolean | null>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map((word) => [word, true] as const),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
])

const NOT_FINITE = /^(?:\.(?:nan|NaN|NAN)|[+-]?\.(?:inf|Inf|INF))$/
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/
const INTEGER = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/
const BASE_60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/
const TIME =
  /^(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))|(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.\d+)?))?$/

/** The value of an unquoted scalar; itself when it is a string. */
export function plainValue(source: string): null | boolean | number | string | Spelled {
  const word = WORDS.get(source)
  if (word !== undefined) return word
  if (!/^[-+.0-9]/.test(source)) return source
  if (NOT_FINITE.test(source)) throw new JsonError(`json: unsupported value: ${source}`)
  if (isTime(source)) return source
  const digits = source.startsWith('.') ? source : source.replaceAll('_', '')
  return integer(digits) ?? (FLOAT.test(digits) ? Number(digits) : source)
}

/** True when writing `text` without quotes would not read back as this string. */
export function needsQuotes(text: string): boolean {
  if (!/^[-+.0-9]/.test(text)) return WORDS.has(text)
  return NOT_FINITE.test(text) || isTime(text) || BASE_60.test(text) || plainValue(text) !== text
}

/** Of any size: where Go would go over to floating point, the digits are kept. */
function integer(source: string): number | Spelled | undefined {
  const match = INTEGER.exec(source)
  if (match === null) return undefined
  const [, sign, digits = ''] = match
  if (/^[1-9]/.test(digits)) return numberFrom(sign === '-' ? `-${digits}` : digits)
  const octal = /^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits
  return numberFrom(String(sign === '-' ? -BigInt(octal) : BigInt(octal)))
}

function isTime(text: string): boolean {
  const match = TIME.exec(text)
  if (match === null) return false
  const [year, month, day, ...clock] = match.slice(1).map((part) => Number(part ?? 0)) as [number, number, number]
  const [hour = 0, minute = 0, second = 0] = match[4] === undefined ? clock.slice(3) : clock
  const days = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return month >= 1 && month <= 12 && day >= 1 && day <= days && hour < 24 && minute < 60 && second < 60
}
