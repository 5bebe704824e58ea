/**
 * Whether bytes are JSON, to the letter (UTF-8 apart), without building what they say: everything that comes from the
 * cloud passes here before it is kept, because a copy that no client can read could never be served again.
 */

export const quote = 0x22
export const backslash = 0x5c
export const openBrace = 0x7b
export const closeBrace = 0x7d
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const comma = 0x2c
export const colon = 0x3a

/** As deep as Go's own reader goes: an API server can keep nothing deeper. */
const depthMax = 10_000

const minus = 0x2d
const dot = 0x2e
const zero = 0x30
const nine = 0x39

/** Which brackets are open, innermost last. One for all: a check runs to its end before another begins. */
const open = new Uint8Array(depthMax)

/** What may not stand inside a string as it is: its end, an escape, control characters. */
const special = new Uint8Array(256).fill(1, 0, 0x20)
special[quote] = 1
special[backslash] = 1

const escapes = new Uint8Array(256)
for (const letter of '"\\/bfnrt') escapes[letter.charCodeAt(0)] = 1

/** Whether all of it is one JSON value. */
export function isJson(bytes: Buffer): boolean {
  const end = endOfJson(bytes, 0)
  return end >= 0 && skipSpace(bytes, end) === bytes.length
}

export function skipSpace(bytes: Buffer, start: number): number {
  let at = start
  for (;;) {
    const byte = bytes[at] as number
    // Between the tokens of what an API server sends there are none.
    if (byte > 0x20) return at
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

/** Where the JSON value at `start`, or after spaces there, ends; -1 if there is none. */
export function endOfJson(bytes: Buffer, start: number): number {
  let depth = 0
  let at = skipSpace(bytes, start)
  for (;;) {
    const first = bytes[at]
    if (first === quote) at = endOfString(bytes, at)
    else if (first === openBrace || first === openBracket) {
      if (depth === depthMax) return -1
      at = skipSpace(bytes, at + 1)
      // Two more than the opening one, in both pairs.
      if (bytes[at] === first + 2) at++
      else {
        open[depth++] = first
        if (first === openBrace) at = startOfMember(bytes, at)
        if (at < 0) return -1
        continue
      }
    } else at = endOfScalar(bytes, at)
    if (at < 0) return -1
    for (;;) {
      if (depth === 0) return at
      at = skipSpace(bytes, at)
      const byte = bytes[at]
      const inside = open[depth - 1] as number
      if (byte === comma) break
      if (byte !== inside + 2) return -1
      depth--
      at++
    }
    at = skipSpace(bytes, at + 1)
    if (open[depth - 1] === openBrace) at = startOfMember(bytes, at)
    if (at < 0) return -1
  }
}

/** Where the value of the member whose name stands here begins; -1 without a name and a colon. */
function startOfMember(bytes: Buffer, start: number): number {
  if (bytes[start] !== quote) return -1
  const end = endOfString(bytes, start)
  if (end < 0) return -1
  const at = skipSpace(bytes, end)
  return bytes[at] === colon ? skipSpace(bytes, at + 1) : -1
}

/** After its closing quote; -1 if there is none, or what stands between is no text of JSON. */
export function endOfString(bytes: Buffer, start: number): number {
  const length = bytes.length
  let at = start + 1
  while (at < length) {
    const byte = bytes[at] as number
    if (special[byte] === 0) at++
    else if (byte === quote) return at + 1
    else if (byte !== backslash) return -1
    else {
      const escaped = at + 1 < length ? (bytes[at + 1] as number) : 0
      if (escapes[escaped] === 1) at += 2
      else if (escaped === 0x75 && areHex(bytes, at + 2)) at += 6
      else return -1
    }
  }
  return -1
}

function areHex(bytes: Buffer, start: number): boolean {
  if (start + 4 > bytes.length) return false
  for (let at = start; at < start + 4; at++) {
    const byte = bytes[at] as number
    const lower = byte | 0x20
    if (!(byte >= zero && byte <= nine) && !(lower >= 0x61 && lower <= 0x66)) return false
  }
  return true
}

function endOfScalar(bytes: Buffer, start: number): number {
  const first = start < bytes.length ? bytes[start] : 0
  if (first === 0x74) return endOfWord(bytes, start, 'true')
  if (first === 0x66) return endOfWord(bytes, start, 'false')
  if (first === 0x6e) return endOfWord(bytes, start, 'null')
  let at = first === minus ? start + 1 : start
  if (bytes[at] === zero) at++
  else at = endOfDigits(bytes, at)
  if (at >= 0 && bytes[at] === dot) at = endOfDigits(bytes, at + 1)
  if (at >= 0 && ((bytes[at] ?? 0) | 0x20) === 0x65) {
    const sign = bytes[at + 1]
    at = endOfDigits(bytes, sign === minus || sign === 0x2b ? at + 2 : at + 1)
  }
  return at
}

function endOfWord(bytes: Buffer, start: number, word: string): number {
  for (let i = 0; i < word.length; i++) if (bytes[start + i] !== word.charCodeAt(i)) return -1
  return start + word.length
}

/** At least one digit; -1 without. */
function endOfDigits(bytes: Buffer, start: number): number {
  let at = start
  while (at < bytes.length && (bytes[at] as number) >= zero && (bytes[at] as number) <= nine) at++
  return at === start ? -1 : at
}
