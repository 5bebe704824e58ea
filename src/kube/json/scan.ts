/**
 * Walking over JSON bytes without building anything: where a member's value begins and where it ends. Every byte that is
 * walked over is checked (`wellformed.ts`), so that what was found in bytes is proof that they are JSON.
 */
import {
  backslash,
  closeBrace,
  colon,
  comma,
  endOfJson,
  endOfString,
  openBrace,
  quote,
  skipSpace,
} from './wellformed.ts'

export class ScanFault extends Error {}

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

function skipString(bytes: Buffer, start: number): number {
  const end = endOfString(bytes, start)
  if (end < 0) throw new ScanFault(`no string at byte ${start}`)
  return end
}

export function skipValue(bytes: Buffer, start: number): number {
  const end = bytes[start] === quote ? endOfString(bytes, start) : endOfJson(bytes, start)
  if (end < 0) throw new ScanFault(`no JSON value at byte ${start}`)
  return end
}
