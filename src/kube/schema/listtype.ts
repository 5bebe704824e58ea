/** Lists that are sets or maps: no member twice; and which former item of such a list a new one stands for. */

import { isObject, type Json, type JsonObject } from '../json/json.ts'
import type { FieldError } from '../status.ts'
import { child, duplicateField, invalidField, keyed, NO_PATH } from './errors.ts'
import { propertyOf, type Schema, valuesOf } from './schema.ts'
import { marshal } from './values.ts'

/** Every duplicate below `value`, each reported once, at its second appearance. */
export function checkLists(value: Json, schema: Schema | undefined): FieldError[] {
  const found: FieldError[] = []
  visit(value, schema, NO_PATH, found)
  return found
}

function visit(value: Json, schema: Schema | undefined, path: string, found: FieldError[]): void {
  if (schema === undefined) return
  if (isObject(value)) {
    const values = valuesOf(schema)
    for (const [key, item] of value) {
      if (typeof item !== 'object') continue
      if (values !== undefined) visit(item, values, keyed(path, key), found)
      const property = propertyOf(schema, key)
      if (property !== undefined) visit(item, property, child(path, key), found)
    }
    return
  }
  if (!Array.isArray(value)) return
  const type = schema['x-kubernetes-list-type']
  if (type === 'set') {
    for (const index of repeated(value)) found.push(duplicateField(keyed(path, index), value[index]))
  } else if (type === 'map') {
    const wrong = value.findIndex((item) => item !== null && !isObject(item))
    if (wrong !== -1) {
      const detail = 'must be an object for an array of list-type map'
      found.push(invalidField(keyed(path, wrong), value[wrong], detail))
    } else {
      const keys = value.map((item) => keyFields(schema, item))
      for (const index of repeated(keys)) found.push(duplicateField(keyed(path, index), keys[index]))
    }
  }
  // Paths are made for what can hold a list: most items cannot, and there may be very many.
  for (let index = 0; index < value.length; index++) {
    const item = value[index]!
    if (typeof item === 'object' && item !== null) visit(item, schema.items, keyed(path, index), found)
  }
}

function repeated(values: readonly Json[]): number[] {
  const times = new Map<string, number>()
  const found: number[] = []
  for (let index = 0; index < values.length; index++) {
    const key = marshal(values[index]!)
    const before = times.get(key) ?? 0
    if (before === 1) found.push(index)
    times.set(key, before + 1)
  }
  return found
}

/** The part of an item that identifies it in its list. */
function keyFields(schema: Schema, item: Json): JsonObject {
  const keys: JsonObject = new Map()
  if (!isObject(item)) return keys
  for (const name of schema['x-kubernetes-list-map-keys'] ?? []) {
    const value = item.get(name)
    if (value !== undefined) keys.set(name, value)
  }
  return keys
}

/** Finds the former self of an item of a `map` list; items of other lists have none. */
export function oldItems(schema: Schema, old: Json | undefined): (item: Json) => Json | undefined {
  if (schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(old)) return () => undefined
  let byKeys: Map<string, Json> | undefined
  return (item) => {
    byKeys ??= new Map(old.filter(isObject).map((former) => [marshal(keyFields(schema, former)), former]))
    return isObject(item) ? byKeys.get(marshal(keyFields(schema, item))) : undefined
  }
}
