/** Kubernetes quantities (`100m`, `1.5Gi`, `1e3`) as exact fractions. */

/** The value is `units / 10^9`: quantities are never finer than nano. */
export type Quantity = { readonly nanos: bigint }

const NANO = 10n ** 9n

const FACTORS: Readonly<Record<string, readonly [up: bigint, down: bigint]>> = {
  '': [1n, 1n],
  n: [1n, 10n ** 9n],
  u: [1n, 10n ** 6n],
  m: [1n, 10n ** 3n],
  k: [10n ** 3n, 1n],
  M: [10n ** 6n, 1n],
  G: [10n ** 9n, 1n],
  T: [10n ** 12n, 1n],
  P: [10n ** 15n, 1n],
  E: [10n ** 18n, 1n],
  Ki: [2n ** 10n, 1n],
  Mi: [2n ** 20n, 1n],
  Gi: [2n ** 30n, 1n],
  Ti: [2n ** 40n, 1n],
  Pi: [2n ** 50n, 1n],
  Ei: [2n ** 60n, 1n],
}

/** Exponents beyond this exceed any quantity Kubernetes can hold, and would only cost memory here. */
const EXPONENT_MAX = 30

export const QUANTITY_SYNTAX =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

/** Longest quantity, in characters: what has more digits than this only costs time, more than in proportion. */
const QUANTITY_MAX = 1_000

export function parseQuantity(text: string): Quantity | undefined {
  if (text.length > QUANTITY_MAX) return undefined
  const found = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE])([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text)
  if (found === null) return undefined
  const [, sign, whole = '', fraction = '', , exponent, suffix = ''] = found
  if (whole === '' && fraction === '') return undefined
  let up: bigint
  let down: bigint
  if (exponent !== undefined) {
    const power = Number(exponent)
    if (Math.abs(power) > EXPONENT_MAX) return undefined
    up = power >= 0 ? 10n ** BigInt(power) : 1n
    down = power < 0 ? 10n ** BigInt(-power) : 1n
  } else {
    const factor = FACTORS[suffix]
    if (factor === undefined) return undefined
    ;[up, down] = factor
  }
  const digits = BigInt(whole + fraction) * up * NANO
  const divisor = 10n ** BigInt(fraction.length) * down
  // What is finer than a nano is rounded up, away from zero.
  const nanos = (digits + divisor - 1n) / divisor
  return { nanos: sign === '-' ? -nanos : nanos }
}
