/**
 * Walking over JSON bytes without building anything: where a member's value begins and where it ends. What is skipped only
 * has to be balanced; `wellformed.ts` checks every byte.
 */

export class ScanFault extends Error {}

export const quote = 0x22
export const backslash = 0x5c
export const openBrace = 0x7b
const closeBrace = 0x7d
export const openBracket = 0x5b
export const closeBracket = 0x5d
export const comma = 0x2c
const colon = 0x3a

export function isKey(bytes: Buffer, from: number, to: number, key: Buffer): boolean {
  if (to - from !== key.length) return false
  for (let i = 0; i < key.length; i++) if (bytes[from + i] !== key[i]) return false
  return true
}

/** Text between the quotes at start and end-1; escapes and UTF-8 take the slower way. */
export function stringAt(bytes: Buffer, start: number, end: number): string {
  for (let i = start + 1; i < end - 1; i++) {
    const byte = bytes[i] as number
    if (byte === backslash || byte > 0x7f) return unescaped(bytes.toString('utf8', start, end))
  }
  return bytes.toString('latin1', start + 1, end - 1)
}

function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string
  } catch {
    throw new ScanFault('a string holds an escape that is none')
  }
}

/**
 * Calls `visit` with where each key stands between its quotes and where its value begins; it answers where the value ends.
 * Returns the object's end. Keys are compared as written: neither an API server nor this program escapes letters of keys.
 */
export function eachMember(
  bytes: Buffer,
  start: number,
  visit: (from: number, to: number, at: number) => number,
): number {
  if (bytes[start] !== openBrace) throw new ScanFault(`no object at byte ${start}`)
  let at = skipSpace(bytes, start + 1)
  if (bytes[at] === closeBrace) return at + 1
  for (;;) {
    if (bytes[at] !== quote) throw new ScanFault(`no member name at byte ${at}`)
    const keyEnd = skipString(bytes, at)
    const from = at + 1
    at = skipSpace(bytes, keyEnd)
    if (bytes[at] !== colon) throw new ScanFault(`no colon at byte ${at}`)
    at = skipSpace(bytes, visit(from, keyEnd - 1, skipSpace(bytes, at + 1)))
    const byte = bytes[at]
    if (byte === closeBrace) return at + 1
    if (byte !== comma) throw new ScanFault(`neither comma nor brace at byte ${at}`)
    at = skipSpace(bytes, at + 1)
  }
}

export function skipSpace(bytes: Buffer, start: number): number {
  let at = start
  for (;;) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at
    at++
  }
}

function skipString(bytes: Buffer, start: number): number {
  const length = bytes.length
  let at = start + 1
  while (at < length) {
    const byte = bytes[at] as number
    if (byte === quote) return at + 1
    at += byte === backslash ? 2 : 1
  }
  throw new ScanFault('a string does not end')
}

export function skipValue(bytes: Buffer, start: number): number {
  const first = bytes[start]
  if (first === quote) return skipString(bytes, start)
  const length = bytes.length
  if (first !== openBrace && first !== openBracket) {
    let at = start
    while (at < length) {
      const byte = bytes[at] as number
      if (byte === comma || byte === closeBrace || byte === closeBracket || byte <= 0x20) break
      at++
    }
    if (at === start) throw new ScanFault(`no value at byte ${start}`)
    return at
  }
  let depth = 0
  let at = start
  while (at < length) {
    const byte = bytes[at] as number
    if (byte === quote) {
      at = skipString(bytes, at)
      continue
    }
    at++
    if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      depth--
      if (depth === 0) return at
    }
  }
  throw new ScanFault('an object or array does not end')
}
