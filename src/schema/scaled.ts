/** The values /scale reads from a custom resource: replicas must fit it, the selector must be text. */

import { goType, goValue } from '../kube/goformat.ts'
import { field, isNumber, type JsonObject } from '../kube/json.ts'
import type { FieldError } from '../kube/status.ts'
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
    const value = field(object, ...path.replace(/^\./, '').split('.'))
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
    const value = field(object, ...path.replace(/^\./, '').split('.'))
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
