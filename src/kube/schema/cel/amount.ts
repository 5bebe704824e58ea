/** `quantity` and `semver` of Kubernetes' CEL libraries. */

import { parseQuantity, QUANTITY_SYNTAX } from '../quantity.ts'
import type { Environment, Fail } from './value.ts'

export function registerAmounts(environment: Environment, fail: Fail): void {
  registerQuantities(environment, fail)
  registerVersions(environment, fail)
}

const NANO = 10n ** 9n
const INT64_MAX = 2n ** 63n - 1n

class Amount {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

function order(a: bigint, b: bigint): bigint {
  return a < b ? -1n : a > b ? 1n : 0n
}

function registerQuantities(environment: Environment, fail: Fail): void {
  const Q = 'kubernetes.Quantity'
  const whole = (a: Amount) => a.nanos % NANO === 0n && a.nanos / NANO <= INT64_MAX && a.nanos / NANO >= -INT64_MAX - 1n
  environment
    .registerType(Q, Amount)
    .registerFunction(`quantity(string): ${Q}`, (text: string) => {
      const quantity = parseQuantity(text)
      if (quantity === undefined) throw fail(QUANTITY_SYNTAX)
      return new Amount(quantity.nanos)
    })
    .registerFunction('isQuantity(string): bool', (text: string) => parseQuantity(text) !== undefined)
    .registerFunction(`${Q}.sign(): int`, (a: Amount) => order(a.nanos, 0n))
    .registerFunction(`${Q}.isGreaterThan(${Q}): bool`, (a: Amount, b: Amount) => a.nanos > b.nanos)
    .registerFunction(`${Q}.isLessThan(${Q}): bool`, (a: Amount, b: Amount) => a.nanos < b.nanos)
    .registerFunction(`${Q}.compareTo(${Q}): int`, (a: Amount, b: Amount) => order(a.nanos, b.nanos))
    .registerFunction(`${Q}.asApproximateFloat(): double`, (a: Amount) => Number(a.nanos) / 1e9)
    .registerFunction(`${Q}.asInteger(): int`, (a: Amount) => {
      if (!whole(a)) throw fail('cannot convert value to integer')
      return a.nanos / NANO
    })
    .registerFunction(`${Q}.isInteger(): bool`, whole)
    .registerFunction(`${Q}.add(${Q}): ${Q}`, (a: Amount, b: Amount) => new Amount(a.nanos + b.nanos))
    .registerFunction(`${Q}.add(int): ${Q}`, (a: Amount, b: bigint) => new Amount(a.nanos + b * NANO))
    .registerFunction(`${Q}.sub(${Q}): ${Q}`, (a: Amount, b: Amount) => new Amount(a.nanos - b.nanos))
    .registerFunction(`${Q}.sub(int): ${Q}`, (a: Amount, b: bigint) => new Amount(a.nanos - b * NANO))
    .registerOperator(`${Q} == ${Q}`, (a: Amount, b: Amount) => a.nanos === b.nanos)
}

class Version {
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly before: readonly string[]

  constructor(numbers: readonly [bigint, bigint, bigint], before: readonly string[]) {
    this.numbers = numbers
    this.before = before
  }
}

/** Longest version, in characters: numbers of more digits take more time than in proportion. */
const VERSION_MAX = 1_000

function parseVersion(text: string, lenient: boolean): Version | undefined {
  if (text.length > VERSION_MAX) return undefined
  const normal = lenient ? text.replace(/^v/, '').replace(/(^|\.)0+(?=\d)/g, '$1') : text
  const number = '(0|[1-9]\\d*)'
  const core = lenient ? `${number}(?:\\.${number})?(?:\\.${number})?` : `${number}\\.${number}\\.${number}`
  const found = new RegExp(`^${core}(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+[0-9A-Za-z.-]+)?$`).exec(normal)
  if (found === null) return undefined
  const [, major = '0', minor = '0', patch = '0', before] = found
  const parts = before === undefined ? [] : before.split('.')
  if (parts.some((part) => /^0\d+$/.test(part))) return undefined
  return new Version([BigInt(major), BigInt(minor), BigInt(patch)], parts)
}

function compareVersions(a: Version, b: Version): bigint {
  for (const index of [0, 1, 2] as const) {
    const difference = order(a.numbers[index], b.numbers[index])
    if (difference !== 0n) return difference
  }
  // A version before a release is older than the release itself.
  if (a.before.length === 0 || b.before.length === 0) return order(BigInt(b.before.length), BigInt(a.before.length))
  for (const [index, left] of a.before.entries()) {
    const right = b.before[index]
    if (right === undefined) return 1n
    if (left === right) continue
    const numeric = [left, right].map((part) => /^\d+$/.test(part))
    if (numeric[0] && numeric[1]) return order(BigInt(left), BigInt(right))
    if (numeric[0] !== numeric[1]) return numeric[0] ? -1n : 1n
    return left < right ? -1n : 1n
  }
  return a.before.length < b.before.length ? -1n : 0n
}

function registerVersions(environment: Environment, fail: Fail): void {
  const S = 'kubernetes.Semver'
  const parsed = (text: string, lenient = false): Version => {
    const version = parseVersion(text, lenient)
    if (version === undefined) throw fail(`semver parse error: "${text}"`)
    return version
  }
  environment
    .registerType(S, Version)
    .registerFunction(`semver(string): ${S}`, (text: string) => parsed(text))
    .registerFunction(`semver(string, bool): ${S}`, parsed)
    .registerFunction('isSemver(string): bool', (text: string) => parseVersion(text, false) !== undefined)
    .registerFunction(
      'isSemver(string, bool): bool',
      (text: string, lenient: boolean) => parseVersion(text, lenient) !== undefined,
    )
    .registerFunction(`${S}.isGreaterThan(${S}): bool`, (a: Version, b: Version) => compareVersions(a, b) > 0n)
    .registerFunction(`${S}.isLessThan(${S}): bool`, (a: Version, b: Version) => compareVersions(a, b) < 0n)
    .registerFunction(`${S}.compareTo(${S}): int`, compareVersions)
    .registerFunction(`${S}.major(): int`, (version: Version) => version.numbers[0])
    .registerFunction(`${S}.minor(): int`, (version: Version) => version.numbers[1])
    .registerFunction(`${S}.patch(): int`, (version: Version) => version.numbers[2])
}
