/** How Go sees and prints decoded JSON in field errors: which numbers are integers, `%q`, json.Marshal. */

import { isNumber, type Json, printJson, type Spelled } from '../json/json.ts'
import { isInt64 } from '../json/number.ts'

export type Kind = 'null' | 'boolean' | 'string' | 'integer' | 'number' | 'array' | 'object'

/** `integer` is what Kubernetes decodes into an int64: no point, no exponent, in range. Every other number is a float. */
export function kindOf(value: Json): Kind {
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value === 'string') return 'string'
  if (isNumber(value)) return isInt64(value) ? 'integer' : 'number'
  return Array.isArray(value) ? 'array' : 'object'
}

/** A number as a float; exact for integers up to 2^53. */
export function floatOf(value: number | Spelled): number {
  return typeof value === 'number' ? value : Number(value.source)
}

/** An `integer` (see kindOf) without loss. */
export function bigOf(value: number | Spelled): bigint {
  return BigInt(typeof value === 'number' ? value : value.source)
}

const QUOTED: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

/** Most texts need no look at each character. */
const PLAIN = /^[ !#-[\]-~]*$/

/** Go's `%q`. */
export function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  let quoted = ''
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    if (QUOTED[character] !== undefined) quoted += QUOTED[character]
    else if (code < 0x20 || code === 0x7f) quoted += `\\x${code.toString(16).padStart(2, '0')}`
    else if (character === ' ' || !/[\p{C}\p{Z}]/u.test(character)) quoted += character
    else if (code > 0xffff) quoted += `\\U${code.toString(16).padStart(8, '0')}`
    else quoted += `\\u${code.toString(16).padStart(4, '0')}`
  }
  return `"${quoted}"`
}

/** json.Marshal of a decoded value: keys sorted. */
export function marshal(value: Json): string {
  return printJson(sorted(value))
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (!(value instanceof Map)) return value
  return new Map([...value.keys()].sort().map((key) => [key, sorted(value.get(key) ?? null)]))
}

/** The value as a field error shows it. */
export function shown(value: Json): string {
  return typeof value === 'string' ? quote(value) : marshal(value)
}

/** The length of a text in characters, as Go counts them; most have none that takes two units. */
export function lengthOf(text: string): number {
  if (!/[\ud800-\udbff]/.test(text)) return text.length
  let length = 0
  for (const _ of text) length++
  return length
}
