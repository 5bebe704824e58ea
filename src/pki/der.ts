/**
 * A writer for DER, the byte form of certificates: just the handful of ASN.1 types that X.509 needs. Each function
 * answers the finished bytes of one element, so nesting calls mirrors the structure of the standard.
 */

type Bytes = Uint8Array

function element(tag: number, ...content: readonly Bytes[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag]), length(body.length), body])
}

/** Below 128 one byte; above, the count of length bytes with the high bit, then the length. */
function length(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.from([bytes])
  const digits = bigEndian(bytes)
  return Buffer.from([0x80 | digits.length, ...digits])
}

function bigEndian(value: number): number[] {
  const digits: number[] = []
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) digits.unshift(rest % 256)
  return digits
}

export const sequence = (...content: readonly Bytes[]): Buffer => element(0x30, ...content)
export const set = (...content: readonly Bytes[]): Buffer => element(0x31, ...content)
export const octetString = (content: Bytes): Buffer => element(0x04, content)
export const utf8String = (text: string): Buffer => element(0x0c, Buffer.from(text, 'utf8'))
/** DER allows only one spelling of true, and says that false, the default everywhere here, is left out. */
export const booleanTrue = (): Buffer => element(0x01, Buffer.from([0xff]))

/** A positive INTEGER from big-endian bytes: shortest form, with a leading zero where the sign bit would be set. */
export function integer(magnitude: Bytes): Buffer {
  let start = 0
  while (start < magnitude.length - 1 && magnitude[start] === 0) start++
  const digits = magnitude.subarray(start)
  return element(0x02, (digits[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), digits]) : digits)
}

/** `unused`: how many bits at the end of the last byte do not count. */
export const bitString = (content: Bytes, unused = 0): Buffer => element(0x03, Buffer.from([unused]), content)

/** `1.2.840.10045.4.3.2`: the first two numbers share a byte, the others are base 128 with a continuation bit. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const digits = [arc & 0x7f]
    for (let more = arc >>> 7; more > 0; more >>>= 7) digits.unshift((more & 0x7f) | 0x80)
    bytes.push(...digits)
  }
  return element(0x06, Buffer.from(bytes))
}

/** X.509 wants UTCTime (two digits for the year) until 2049 and GeneralizedTime from 2050. */
export function time(ms: number): Buffer {
  const digits = `${new Date(ms).toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
  return new Date(ms).getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(digits.slice(2)))
    : element(0x18, Buffer.from(digits))
}

/** `[tag] EXPLICIT`: wraps an element. */
export const tagged = (tag: number, content: Bytes): Buffer => element(0xa0 | tag, content)

/** `[tag] IMPLICIT` of a primitive type: its content under another tag. */
export const taggedContent = (tag: number, content: Bytes): Buffer => element(0x80 | tag, content)
