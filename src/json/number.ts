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

/** Go decodes a JSON number into int64 when it is spelled as an integer that fits, and into float64 otherwise. */
export function isInt64(value: number | Spelled): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < INT64_EDGE
  if (!/^-?\d+$/.test(value.source)) return false
  const integer = BigInt(value.source)
  return integer >= INT64_MIN && integer <= INT64_MAX
}

/** Equal as numbers, exactly: 1.0 is 1 and 1e3 is 1000, but 9007199254740993 is not 9007199254740992. */
export function sameNumber(a: number | Spelled, b: number | Spelled): boolean {
  if (typeof a === 'number' && typeof b === 'number') return a === b
  return canonical(a) === canonical(b)
}

/** Sign, digits without zeros at either end, and the power of ten they are multiplied by. */
function canonical(value: number | Spelled): string {
  const source = typeof value === 'number' ? String(value) : value.source
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source)
  if (match === null) return source
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  const trimmed = digits.replace(/0+$/, '')
  if (trimmed === '') return '0'
  return `${sign}${trimmed}e${Number(exponent) - fraction.length + digits.length - trimmed.length}`
}
