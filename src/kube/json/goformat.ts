/**
 * How Go names the type of a decoded JSON value and prints it with %v: kube-apiserver's patch errors carry both, and
 * strategic merge compares values by Go's idea of their type.
 */
import { isNumber, type Json } from './json.ts'
import { isInt64, type Spelled } from './number.ts'

export type GoType = '<nil>' | 'bool' | 'string' | 'int64' | 'float64' | '[]interface {}' | 'map[string]interface {}'

export function goType(value: Json): GoType {
  if (value === null) return '<nil>'
  if (value instanceof Map) return 'map[string]interface {}'
  if (Array.isArray(value)) return '[]interface {}'
  if (isNumber(value)) return isInt64(value) ? 'int64' : 'float64'
  return typeof value === 'string' ? 'string' : 'bool'
}

/** `map[a:1 b:[x y]]`, keys sorted. */
export function goValue(value: Json): string {
  if (value === null) return '<nil>'
  if (value instanceof Map) {
    const keys = [...value.keys()].sort(bytewise)
    return `map[${keys.map((key) => `${key}:${goValue(value.get(key)!)}`).join(' ')}]`
  }
  if (Array.isArray(value)) return `[${value.map(goValue).join(' ')}]`
  return isNumber(value) ? goNumber(value) : String(value)
}

const SURROGATES = 0xd800

/** Go's order of strings, by the bytes of UTF-8: code units agree with that up to the surrogates, which belong to the end. */
export function bytewise(a: string, b: string): number {
  const shared = Math.min(a.length, b.length)
  for (let at = 0; at < shared; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right) return left >= SURROGATES && right >= SURROGATES ? late(left) - late(right) : left - right
  }
  return a.length - b.length
}

function late(unit: number): number {
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000
}

/** Floats in the shortest form, with an exponent of at least two digits below 1e-4 and from 1e6 on. */
function goNumber(value: number | Spelled): string {
  if (isInt64(value)) return typeof value === 'number' ? String(value) : String(BigInt(value.source))
  const float = typeof value === 'number' ? value : Number(value.source)
  const small = float !== 0 && Math.abs(float) < 1e-4
  const printed = small || Math.abs(float) >= 1e6 ? float.toExponential() : String(float)
  return printed.replace(/e([+-])(\d)$/, 'e$10$2')
}
