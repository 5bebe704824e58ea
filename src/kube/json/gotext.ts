/**
 * How Go spells things inside messages: quoted strings and the complaints of its parsers of numbers and durations.
 * Clients match on kube-apiserver's texts, and those texts are Go's.
 */

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u

/** unicode.IsPrint of one character: of all spaces only the plain one. */
export function isPrintable(char: string): boolean {
  return printable.test(char)
}

/** Most texts need no look at each character. */
const plainText = /^[ !#-[\]-~]*$/

/** What `%q` prints for a string. */
export function quoted(text: string): string {
  if (plainText.test(text)) return `"${text}"`
  let out = '"'
  for (const char of text) {
    const code = char.codePointAt(0) as number
    const spelling = escapes[char]
    if (spelling !== undefined) out += spelling
    else if (isPrintable(char)) out += char
    else if (code < 0x80) out += `\\x${code.toString(16).padStart(2, '0')}`
    else if (code < 0x10000) out += `\\u${code.toString(16).padStart(4, '0')}`
    else out += `\\U${code.toString(16).padStart(8, '0')}`
  }
  return `${out}"`
}

const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n
const MAX_UINT64 = 2n ** 64n - 1n
/** Digits of the largest of them: to sum up more costs more than in proportion to their number, and none of those fits. */
const DIGITS_MAX = 20

/** A parsed number, or the complaint about it. */
type Parsed = { readonly value: bigint } | { readonly fault: string }

export function parseInt64(text: string): Parsed {
  return parse('ParseInt', /^[+-]?[0-9]+$/, text, MIN_INT64, MAX_INT64)
}

export function parseUint64(text: string): Parsed {
  return parse('ParseUint', /^[0-9]+$/, text, 0n, MAX_UINT64)
}

function parse(name: string, syntax: RegExp, text: string, least: bigint, most: bigint): Parsed {
  if (!syntax.test(text)) return { fault: `strconv.${name}: parsing ${quoted(text)}: invalid syntax` }
  const digits = text.replace(/^[+-]?0*/, '')
  if (digits.length <= DIGITS_MAX) {
    const size = BigInt(digits)
    const value = text.startsWith('-') ? -size : size
    if (value >= least && value <= most) return { value }
  }
  return { fault: `strconv.${name}: parsing ${quoted(text)}: value out of range` }
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER)

/** As a JavaScript number; what lies beyond its exact range becomes its end, which no counter of ours ever reaches. */
export function clamped(value: bigint): number {
  if (value > MAX_SAFE) return Number.MAX_SAFE_INTEGER
  if (value < -MAX_SAFE) return -Number.MAX_SAFE_INTEGER
  return Number(value)
}

const unitsNs: ReadonlyMap<string, number> = new Map([
  ['ns', 1],
  ['us', 1e3],
  ['µs', 1e3],
  ['μs', 1e3],
  ['ms', 1e6],
  ['s', 1e9],
  ['m', 60e9],
  ['h', 3600e9],
])

/** Go's durations are int64 nanoseconds. */
const DURATION_EDGE_NS = 2 ** 63

/** Nanoseconds of `1h5m`, `.5s`, `-1ms` or `0`. */
export function parseGoDuration(text: string): { readonly ns: number } | { readonly fault: string } {
  const invalid = { fault: `time: invalid duration ${quoted(text)}` }
  let rest = text.replace(/^[-+]/, '')
  if (rest === '0') return { ns: 0 }
  if (rest === '') return invalid
  let sum = 0
  while (rest !== '') {
    const [part = '', amount = '', unit = ''] = /^([0-9]*\.?[0-9]*)([^0-9.]*)/.exec(rest) ?? []
    if (!/[0-9]/.test(amount)) return invalid
    if (unit === '') return { fault: `time: missing unit in duration ${quoted(text)}` }
    const factor = unitsNs.get(unit)
    if (factor === undefined) return { fault: `time: unknown unit ${quoted(unit)} in duration ${quoted(text)}` }
    sum += Number(amount) * factor
    if (sum >= DURATION_EDGE_NS) return invalid
    rest = rest.slice(part.length)
  }
  return { ns: Math.trunc(text.startsWith('-') ? -sum : sum) }
}
