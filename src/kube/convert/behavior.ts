/**
 * How fast a horizontal pod autoscaler may scale. In autoscaling/v1 it is an annotation, and there it has the names of
 * Go's fields and says null for what is not set: the real server prints an internal type that has no JSON names.
 */

import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { always, arranged, type Fields, objectOr } from './fields.ts'
import { readTyped, type Struct } from './typed.ts'

const rulesShape: Struct = {
  StabilizationWindowSeconds: 'int32',
  SelectPolicy: 'text',
  Policies: [{ Type: 'text', Value: 'int32', PeriodSeconds: 'int32' }],
  Tolerance: 'quantity',
}
const behaviorShape: Struct = { ScaleUp: rulesShape, ScaleDown: rulesShape }

const behaviorFields: Fields = { scaleUp: 'set', scaleDown: 'set' }
const rulesFields: Fields = {
  stabilizationWindowSeconds: 'set',
  selectPolicy: 'set',
  policies: 'filled',
  tolerance: 'set',
}
const policyFields: Fields = { type: always(''), value: always(0), periodSeconds: always(0) }

export function behaviorToAnnotation(behavior: JsonObject): JsonObject {
  const rules = (value: Json): Json => {
    const policies = (list: Json) => (Array.isArray(list) ? list.map((one) => goNames(one, policyFields)) : list)
    return isObject(value)
      ? goNames(value, rulesFields, (name, inner) => (name === 'policies' ? policies(inner) : inner))
      : value
  }
  return goNames(behavior, behaviorFields, (_, value) => rules(value))
}

/** Undefined where the annotation cannot be read, or says nothing. */
export function behaviorFromAnnotation(source: string): JsonObject | undefined {
  const read = readTyped(source, behaviorShape)
  if (!isObject(read) || !(read.has('ScaleUp') || read.has('ScaleDown'))) return undefined
  const behavior = jsonNames(read)
  for (const [direction, value] of behavior) {
    const rules = jsonNames(objectOr(value))
    const policies = rules.get('policies')
    if (Array.isArray(policies)) {
      rules.set(
        'policies',
        policies.map((one) => arranged(jsonNames(objectOr(one)), policyFields)),
      )
    }
    if (Object.hasOwn(behaviorFields, direction)) behavior.set(direction, arranged(rules, rulesFields))
  }
  return arranged(behavior, behaviorFields)
}

function goNames(value: Json, fields: Fields, inner = (_name: string, member: Json): Json => member): JsonObject {
  const object = objectOr(value)
  const result: JsonObject = new Map()
  for (const [name, print] of Object.entries(fields)) {
    const member = object.get(name) ?? (typeof print === 'object' ? print.zero : null)
    result.set(goName(name), inner(name, member))
  }
  for (const [name, member] of object) if (!Object.hasOwn(fields, name)) result.set(goName(name), member)
  return result
}

function jsonNames(object: JsonObject): JsonObject {
  const result: JsonObject = new Map()
  for (const [name, value] of object) result.set(`${name.slice(0, 1).toLowerCase()}${name.slice(1)}`, value)
  return result
}

function goName(name: string): string {
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`
}
