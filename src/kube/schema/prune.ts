/** Pruning: fields no structural schema specifies are removed, and named for `fieldValidation`. */

import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { META_FIELDS, propertyOf, type Schema, valuesOf } from './schema.ts'

const PRESERVE = 'x-kubernetes-preserve-unknown-fields'
const EMBEDDED = 'x-kubernetes-embedded-resource'

/**
 * Prunes a resource in place. apiVersion, kind and metadata at the root are left alone. Returns the paths of what was
 * removed, sorted, as `unknown field "…"` names them.
 */
export function prune(object: JsonObject, schema: Schema | undefined): string[] {
  const removed: string[] = []
  visit(object, { ...schema, [EMBEDDED]: true }, '', removed)
  return removed.sort()
}

/** The same for a value that is no resource of its own, such as a default. */
export function pruneValue(value: Json, schema: Schema): string[] {
  const removed: string[] = []
  visit(value, schema, '', removed)
  return removed.sort()
}

function visit(value: Json, schema: Schema | undefined, path: string, removed: string[]): void {
  if (schema?.[PRESERVE] === true) {
    keep(value, schema, path, removed)
  } else if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index]!
      if (hasInside(item)) visit(item, schema?.items, `${path}[${index}]`, removed)
    }
  } else if (isObject(value)) {
    for (const [key, item] of value) {
      if (schema?.[EMBEDDED] === true && META_FIELDS.has(key)) continue
      const property = propertyOf(schema, key)
      if (property !== undefined || schema?.additionalProperties !== undefined) {
        if (hasInside(item)) visit(item, property ?? valuesOf(schema), at(path, key), removed)
      } else {
        if (schema === undefined || path !== '' || !META_FIELDS.has(key)) removed.push(at(path, key))
        value.delete(key)
      }
    }
  }
}

/** Below `preserve-unknown-fields` nothing is removed until a schema specifies something again. */
function keep(value: Json, schema: Schema | undefined, path: string, removed: string[]): void {
  if (schema === undefined) return
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) keep(item, schema.items, `${path}[${index}]`, removed)
  } else if (isObject(value)) {
    for (const [key, item] of value) {
      if (schema[EMBEDDED] === true && META_FIELDS.has(key)) continue
      const property = propertyOf(schema, key)
      if (property !== undefined || schema.additionalProperties !== undefined) {
        visit(item, property ?? valuesOf(schema), at(path, key), removed)
      }
    }
  }
}

/** Only there can be something to remove; no path is made for the rest, of which there may be very much. */
function hasInside(value: Json): boolean {
  return Array.isArray(value) || isObject(value)
}

function at(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}
