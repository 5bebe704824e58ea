/**
 * How Go spells things inside messages: quoted strings and the complaints of its number parser. Clients match on
 * kube-apiserver's texts, and those texts are Go's.
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

/** What `%q` prints for a string. */
export function quoted(text: string): string {
  let out = '"'
  for (const char of text) {
    const code = char.codePointAt(0) as number
    const spelling = escapes[char]
    if (spelling !== undefined) out += spelling
    else if (printable.test(char)) out += char
    else if (code < 0x80) out += `\\x${code.toString(16).padStart(2, '0')}`
    else if (code < 0x10000) out += `\\u${code.toString(16).padStart(4, '0')}`
    else out += `\\U${code.toString(16).padStart(8, '0')}`
  }
  return `${out}"`
}

const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n
const MAX_UINT64 = 2n ** 64n - 1n

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
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text)
  if (value < least || value > most) return { fault: `strconv.${name}: parsing ${quoted(text)}: value out of range` }
  return { value }
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER)

/** As a JavaScript number; what lies beyond its exact range becomes its end, which no counter of ours ever reaches. */
export function clamped(value: bigint): number {
  if (value > MAX_SAFE) return Number.MAX_SAFE_INTEGER
  if (value < -MAX_SAFE) return -Number.MAX_SAFE_INTEGER
  return Number(value)
}
