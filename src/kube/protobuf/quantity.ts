/**
 * Quantities in the one spelling that Kubernetes gives them back in: `1000m` is `1`, `1.5Gi` is `1536Mi`. However an
 * object was written, its message has that spelling, and so has the JSON of a message.
 */
import { ProtobufFault } from './fault.ts'

/** The finest there is, in digits after the point; what is finer is rounded up. */
const nano = 9
/** What an int64 holds: the most that a quantity with a binary suffix may be. */
const binaryMax = 2n ** 63n - 1n
const one = 10n ** BigInt(nano)

const decimal: Record<string, number> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const binary: Record<string, number> = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 }
/** What has more digits or a higher exponent than this is no amount of anything, and would only cost time. */
const exponentMax = 400
const lengthMax = 1000

const zero = 0x30
const nine = 0x39
const decimalLetters = new Set(Buffer.from('numkMGTPE'))
/** With nine digits before them they stay within an int64. */
const binaryLetters = new Set(Buffer.from('KMG'))

/**
 * Whether it is in that spelling at a glance, as nearly all are: a whole number without zeros in front, and three zeros at
 * the end would need another decimal suffix, a multiple of 1024 another binary one.
 */
export function isPlainQuantity(json: Buffer, from: number, to: number): boolean {
  let at = from
  let byte = json[at] as number
  if (at === to || byte === zero) return to - from === 1
  let zeros = 0
  for (; at < to && byte >= zero && byte <= nine; byte = json[++at] as number) zeros = byte === zero ? zeros + 1 : 0
  const digits = at - from
  if (digits === 0 || digits > 9) return false
  if (at === to) return zeros < 3
  if (at + 1 === to) return zeros < 3 && decimalLetters.has(byte)
  if (at + 2 !== to || json[at + 1] !== 0x69 || !binaryLetters.has(byte)) return false
  let value = 0
  for (let digit = from; digit < at; digit++) value = value * 10 + (json[digit] as number) - zero
  return value % 1024 !== 0
}

const form = /^([+-]?)0*(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/

type Suffix = { readonly base: 2 | 10; readonly exponent: number; readonly spelling: 'decimal' | 'binary' | 'exponent' }

/** Of any quantity; what is none is refused in Kubernetes' words. */
export function canonicalQuantity(text: string): string {
  if (text.length > lengthMax) refuse('unable to parse numeric part of quantity')
  const [, sign = '', whole = '', fraction = '', letters = ''] = (text !== '' && form.exec(text)) || refuse(formWords)
  const suffix = suffixOf(letters) ?? refuse("unable to parse quantity's suffix")
  const digits = `${whole === '' ? '0' : whole}${fraction}`
  if (isKept(text, digits, fraction, suffix)) return text
  const scale = fraction.length - (suffix.base === 10 ? suffix.exponent : 0)
  const size = BigInt(digits) * (suffix.base === 2 ? 2n ** BigInt(suffix.exponent) : 1n)
  const nanos = scale <= nano ? size * 10n ** BigInt(nano - scale) : roundedUp(size, scale - nano)
  const isBeyond = suffix.base === 2 && nanos > binaryMax * one
  return print(sign === '-', isBeyond ? binaryMax * one : nanos, suffix.spelling)
}

const formWords = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

function refuse(words: string): never {
  throw new ProtobufFault(words)
}

function suffixOf(letters: string): Suffix | undefined {
  const tens = decimal[letters]
  if (tens !== undefined) return { base: 10, exponent: tens, spelling: 'decimal' }
  const kibi = binary[letters]
  if (kibi !== undefined) return { base: 2, exponent: kibi * 10, spelling: 'binary' }
  if (!/^[eE][+-]?\d+$/.test(letters)) return undefined
  const exponent = Number(letters.slice(1))
  if (Math.abs(exponent) > exponentMax) return refuse('unable to parse numeric part of quantity')
  return { base: 10, exponent, spelling: 'exponent' }
}

/** What the real reader finds good enough is given back as it was written, `1.500` and `+5` included. */
function isKept(text: string, digits: string, fraction: string, { base, exponent }: Suffix): boolean {
  if (text === '0') return true
  if (base === 2) {
    if (fraction !== '' || text.includes('.') || 14 - digits.length - Math.floor(exponent * 0.3) < 0) return false
    return BigInt(digits) * 2n ** BigInt(exponent) <= binaryMax && BigInt(digits) % 8n !== 0n
  }
  const scale = exponent - fraction.length
  if (digits.length > 18 || scale < -nano) return false
  return scale % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0')
}

function roundedUp(size: bigint, places: number): bigint {
  const unit = 10n ** BigInt(places)
  return (size + unit - 1n) / unit
}

function print(negative: boolean, nanos: bigint, spelling: Suffix['spelling']): string {
  if (nanos === 0n) return '0'
  const sign = negative ? '-' : ''
  if (spelling === 'binary' && nanos >= 1024n * one && nanos % one === 0n) return `${sign}${printBinary(nanos / one)}`
  let number = nanos
  let exponent = -nano
  for (; number % 1000n === 0n; number /= 1000n) exponent += 3
  if (spelling === 'exponent') return `${sign}${number}${exponent === 0 ? '' : `e${exponent}`}`
  const letter = Object.keys(decimal).find((key) => decimal[key] === exponent) ?? ''
  return `${sign}${number}${letter}`
}

function printBinary(amount: bigint): string {
  let number = amount
  let exponent = 0
  for (; number % 1024n === 0n; number /= 1024n) exponent++
  return `${number}${Object.keys(binary).find((key) => binary[key] === exponent) ?? ''}`
}
