/** Bounds of numbers. Integers are compared as int64 and bounds lose their fraction then, as in kube-openapi. */

import { goValue } from '../json/goformat.ts'
import type { Spelled } from '../json/json.ts'
import type { FieldError } from '../status.ts'
import { fieldOf, invalidField, NO_PATH } from './errors.ts'
import type { Schema } from './schema.ts'
import { bigOf, floatOf, kindOf } from './values.ts'

const INT32_MAX = 2 ** 31 - 1
const FLOAT32_MAX = 3.4028234663852886e38

/** `schema.type` must be empty where the type is ambiguous: no range is enforced then. */
export function checkNumber(
  value: number | Spelled,
  schema: Schema,
  format: string,
  path: string,
): Array<FieldError | undefined> {
  const found = [range(floatOf(value), schema, format, 'Checked', path)]
  const { minimum, maximum, multipleOf } = schema
  // A bound that does not fit the type is complained about, and used as the float it is.
  const whole = kindOf(value) === 'integer'
  if (multipleOf !== undefined) {
    const unfit = range(multipleOf, schema, format, 'MultipleOf', path)
    found.push(unfit, multiple(value, multipleOf, whole && unfit === undefined, path))
  }
  if (minimum !== undefined) {
    const unfit = range(minimum, schema, format, 'Minimum boundary', path)
    const limit = { limit: minimum, exclusive: schema.exclusiveMinimum === true, side: 'greater' } as const
    found.push(unfit, bound(value, limit, whole && unfit === undefined, path))
  }
  if (maximum !== undefined) {
    const unfit = range(maximum, schema, format, 'Maximum boundary', path)
    const limit = { limit: maximum, exclusive: schema.exclusiveMaximum === true, side: 'less' } as const
    found.push(unfit, bound(value, limit, whole && unfit === undefined, path))
  }
  return found
}

function range(value: number, schema: Schema, format: string, what: string, path: string): FieldError | undefined {
  let fits = true
  if (schema.type === 'integer') {
    fits = Number.isInteger(value) && Math.abs(value) <= 2 ** 63
    if (format === 'int32') fits = fits && value <= INT32_MAX && value >= -INT32_MAX - 1
  } else if (schema.type === 'number' && format === 'float') {
    fits = Math.abs(value) <= FLOAT32_MAX
  }
  if (fits) return undefined
  const kind = format === '' ? '(default format)' : `with format ${format}`
  return invalidField(NO_PATH, '', `${what} value must be of type ${schema.type} ${kind} in ${path}`)
}

function bound(
  value: number | Spelled,
  { limit, exclusive, side }: { limit: number; exclusive: boolean; side: 'greater' | 'less' },
  whole: boolean,
  path: string,
): FieldError | undefined {
  const actual = whole ? bigOf(value) : floatOf(value)
  const against = whole ? BigInt(Math.trunc(limit)) : limit
  const beyond = side === 'greater' ? actual < against : actual > against
  if (!beyond && !(exclusive && actual === against)) return undefined
  const shown = typeof against === 'bigint' ? String(against) : goValue(against)
  const text = `${path} in body should be ${side} than ${exclusive ? '' : 'or equal to '}${shown}`
  return invalidField(fieldOf(path), value, text)
}

function multiple(value: number | Spelled, factor: number, whole: boolean, path: string): FieldError | undefined {
  const used = whole ? Math.trunc(factor) : factor
  const shown = goValue(used)
  if (used <= 0) {
    return invalidField(fieldOf(path), used, `factor MultipleOf declared for ${path} must be positive: ${shown}`)
  }
  const steps = used < 1 ? (1 / used) * floatOf(value) : floatOf(value) / used
  const fits = whole ? bigOf(value) % BigInt(used) === 0n : Number.isSafeInteger(steps)
  return fits ? undefined : invalidField(fieldOf(path), value, `${path} in body should be a multiple of ${shown}`)
}
