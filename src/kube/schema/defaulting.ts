/** Defaults of structural schemas, and the nulls that mean "not set". */

import { fromPlain, isObject, type Json } from '../json/json.ts'
import { propertyOf, type Schema, valuesOf } from './schema.ts'

/**
 * Brings a decoded object into its full form, in place: a null where null is not allowed is dropped (or replaced by the
 * default), and every missing field with a default gets it. Run after pruning, on what a client sent and on what an
 * older schema stored.
 */
export function applyDefaults(value: Json, schema: Schema | undefined): void {
  dropNulls(value, schema)
  fillDefaults(value, schema)
}

function dropNulls(value: Json, schema: Schema | undefined): void {
  if (Array.isArray(value)) {
    for (const item of value) dropNulls(item, schema?.items)
  } else if (isObject(value)) {
    for (const [key, item] of value) {
      const inner = propertyOf(schema, key) ?? valuesOf(schema)
      if (item === null && inner !== undefined && inner.nullable !== true && !hasDefault(inner)) value.delete(key)
      else dropNulls(item, inner)
    }
  }
}

/** Only the defaults: a null that stands for none of them stays, and is for validation to judge. */
export function fillDefaults(value: Json, schema: Schema | undefined): void {
  if (schema === undefined) return
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return
    for (const [index, item] of value.entries()) {
      if (isUnset(item, items)) value[index] = fromPlain(items.default)
      fillDefaults(value[index] ?? null, items)
    }
  } else if (isObject(value)) {
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      if (!hasDefault(property)) continue
      const item = value.get(key)
      if (item === undefined || isUnset(item, property)) value.set(key, fromPlain(property.default))
    }
    const values = valuesOf(schema)
    for (const [key, item] of value) {
      const property = propertyOf(schema, key)
      if (property === undefined && values !== undefined && isUnset(item, values))
        value.set(key, fromPlain(values.default))
      fillDefaults(value.get(key) ?? null, property ?? values)
    }
  }
}

function isUnset(value: Json, schema: Schema): boolean {
  return value === null && schema.nullable !== true
}

/** A default of null is none: structural schemas cannot tell the two apart. */
function hasDefault(schema: Schema): boolean {
  return schema.default !== undefined && schema.default !== null
}
