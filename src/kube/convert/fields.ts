/**
 * One JSON object as a Go struct prints it: its fields in their order, zeros left out or filled in as their tags say.
 * Two versions of a resource differ in exactly this, so a conversion is a choice of values and such a list. Members the
 * list does not know come last and are kept: a newer server may have put them there.
 */

import { cloneJson, isObject, type Json, type JsonObject } from '../json/json.ts'

/**
 * How a field is printed. `set`: unless it is null (a pointer). `filled`: unless it is zero (omitempty of a plain value).
 * Otherwise it always stands there, with this zero where nothing is known.
 */
export type Print = 'set' | 'filled' | { readonly zero: Json }

/** Field names in the order of the struct. */
export type Fields = Readonly<Record<string, Print>>

export const always = (zero: Json): Print => ({ zero })

/** The object with its known fields first, as `fields` says; the members of `without` belong to another version. */
export function arranged(from: JsonObject, fields: Fields, without: Fields = {}): JsonObject {
  const result: JsonObject = new Map()
  for (const [name, print] of Object.entries(fields)) {
    const value = from.get(name) ?? null
    if (typeof print === 'object') result.set(name, value ?? cloneJson(print.zero))
    else if (value !== null && (print === 'set' || !isZero(value))) result.set(name, value)
  }
  for (const [name, value] of from) {
    if (!Object.hasOwn(fields, name) && !Object.hasOwn(without, name)) result.set(name, value)
  }
  return result
}

function isZero(value: Json): boolean {
  return value === '' || value === 0 || value === false || (Array.isArray(value) && value.length === 0)
}

/** The object, or an empty one in the place of anything else. */
export function objectOr(value: Json | undefined): JsonObject {
  return isObject(value) ? value : new Map()
}
