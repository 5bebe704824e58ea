/**
 * Numbers as JSON spells them. An int64 beyond 2^53, 1.0 and 1e3 would come back differently from a JavaScript number;
 * such a number stays the text it was, every other one is a plain JavaScript number.
 */

/** A number that `String(Number(source))` would not spell back. Numbers it would are plain JavaScript numbers. */
export class Spelled {
  readonly source: string

  constructor(source: string) {
    this.source = source
  }
}

/** `source` must already be a well-formed JSON number. */
export function numberFrom(source: string): number | Spelled {
  const value = Number(source)
  return String(value) === source ? value : new Spelled(source)
}

/** Plain whole numbers spell themselves; short of this edge, on both sides, every spelling fits. */
const INT64_EDGE = 2 ** 63

const INT64_MAX = 2n ** 63n - 1n
const INT64_MIN = -(2n ** 63n)
/** Characters of the longest int64, its sign included: to sum up digits costs more than in proportion to their number. */
const INT64_CHARACTERS = 20

/** Go decodes a JSON number into int64 when it is spelled as an integer that fits, and into float64 otherwise. */
export function isInt64(value: number | Spelled): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < INT64_EDGE
  if (value.source.length > INT64_CHARACTERS || !/^-?\d+$/.test(value.source)) return false
  const integer = BigInt(value.source)
  return integer >= INT64_MIN && integer <= INT64_MAX
}

/** Equal as numbers, exactly: 1.0 is 1 and 1e3 is 1000, but 9007199254740993 is not 9007199254740992. */
export function sameNumber(a: number | Spelled, b: number | Spelled): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a === b
  return canonical(a) === canonical(b)
}

const ZERO = 0x30

/** Sign, digits without zeros at either end, and the power of ten they are multiplied by. */
function canonical(value: number | Spelled): string {
  const source = typeof value === 'number' ? String(value) : value.source
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)
  if (match === null) return source
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  // By hand: a pattern for the zeros at the end tries every zero there is as the first of them.
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end--
  const trimmed = digits.slice(0, end)
  if (trimmed === '') return '0'
  return `${sign}${trimmed}e${Number(exponent) - fraction.length + digits.length - trimmed.length}`
}
