/**
 * Short texts that repeat from object to object (labels, fields, namespaces): one string serves them all, and is found by its
 * bytes, since making a string only to look it up would cost more than all else that is done with it.
 */
import { backslash } from './wellformed.ts'

/** A power of two. A text that meets another in its place takes it: what both are of holds its own. */
const places = 16_384
/** Longer ones hardly repeat. */
const bytesMax = 64

/** Made with the first of them. */
let texts: string[] | undefined

/** What stands between these quotes; undefined where it is too long, or not spelled as it reads. */
export function sharedText(bytes: Buffer, start: number, end: number): string | undefined {
  const length = end - start - 2
  if (length > bytesMax) return undefined
  let sum = length
  for (let i = start + 1; i < end - 1; i++) {
    const byte = bytes[i] as number
    if (byte === backslash || byte > 0x7f) return undefined
    sum = Math.imul(sum ^ byte, 0x01000193)
  }
  const place = (sum ^ (sum >>> 15)) & (places - 1)
  texts ??= new Array<string>(places).fill('')
  const known = texts[place] as string
  if (known.length === length && isSpelled(known, bytes, start + 1)) return known
  const text = bytes.toString('latin1', start + 1, end - 1)
  texts[place] = text
  return text
}

function isSpelled(text: string, bytes: Buffer, at: number): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[at + i]) return false
  return true
}
