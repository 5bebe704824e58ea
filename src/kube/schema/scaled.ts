/** The values /scale reads from a custom resource: replicas must fit it, the selector must be text. */

import { goType, goValue } from '../json/goformat.ts'
import { isNumber, isObject, type Json, type JsonObject } from '../json/json.ts'
import type { FieldError } from '../status.ts'
import { invalidField } from './errors.ts'
import { floatOf, kindOf } from './values.ts'

export type ScalePaths = {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath?: string
}

const INT32_MAX = 2 ** 31 - 1

/** `status` leaves the spec alone: it is not what was written. */
export function checkScaled(object: JsonObject, scale: ScalePaths, status: boolean): FieldError[] {
  const found: FieldError[] = []
  const paths = status ? [scale.statusReplicasPath] : [scale.specReplicasPath, scale.statusReplicasPath]
  for (const path of paths) {
    const { value, fault } = follow(object, path)
    if (fault !== undefined) found.push(invalidField(path, 0, fault))
    if (value === undefined) continue
    if (!isNumber(value) || kindOf(value) !== 'integer') {
      found.push(
        invalidField(
          path,
          0,
          `${path} accessor error: ${goValue(value)} is of the type ${goType(value)}, expected int64`,
        ),
      )
    } else if (floatOf(value) < 0) {
      found.push(invalidField(path, value, 'should be a non-negative integer'))
    } else if (floatOf(value) > INT32_MAX) {
      found.push(invalidField(path, value, `should be less than or equal to ${INT32_MAX}`))
    }
  }
  const path = scale.labelSelectorPath
  if (path !== undefined) {
    const { value, fault } = follow(object, path)
    if (fault !== undefined) found.push(invalidField(path, '', fault))
    if (value !== undefined && typeof value !== 'string') {
      found.push(
        invalidField(
          path,
          '',
          `${path} accessor error: ${goValue(value)} is of the type ${goType(value)}, expected string`,
        ),
      )
    }
  }
  return found
}

/** The value at the end of a path, or why the path cannot be followed. */
function follow(object: JsonObject, path: string): { readonly value?: Json; readonly fault?: string } {
  const keys = path.replace(/^\./, '').split('.')
  let value: Json = object
  for (const [index, key] of keys.entries()) {
    if (value === null) return {}
    if (!isObject(value)) {
      const so = `.${keys.slice(0, index + 1).join('.')}`
      const what = `${goValue(value)} is of the type ${goType(value)}, expected map[string]interface{}`
      return { fault: `${so} accessor error: ${what}` }
    }
    const next = value.get(key)
    if (next === undefined) return {}
    value = next
  }
  return { value }
}
