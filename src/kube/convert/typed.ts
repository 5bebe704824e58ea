/**
 * JSON read as Go reads it into a struct: names match in any case, null is nothing, and one value of a wrong type spoils
 * the whole. Annotations that carry another version's fields are read so; one that does not fit is as good as none.
 */

import { isNumber, isObject, type Json, JsonError, type JsonObject, parseJson } from '../json/json.ts'
import { Spelled } from '../json/number.ts'

export type Shape = 'text' | 'int32' | 'quantity' | 'time' | 'object' | Struct | readonly [Shape]
export type Struct = { readonly [name: string]: Shape }

/** The value with names as the shape spells them and without nulls; undefined where it does not fit. */
export function readTyped(source: string, shape: Shape): Json | undefined {
  try {
    return typed(parseJson(source), shape)
  } catch (error) {
    if (error instanceof JsonError || error instanceof Misfit) return undefined
    throw error
  }
}

class Misfit extends Error {}

function typed(value: Json, shape: Shape): Json {
  if (Array.isArray(shape)) {
    if (value === null) return []
    if (!Array.isArray(value)) throw new Misfit()
    return value.map((element) => typed(element, shape[0] as Shape))
  }
  if (typeof shape === 'object') return typedStruct(value, shape as Struct)
  if (!fits[shape as keyof typeof fits](value)) throw new Misfit()
  return value
}

function typedStruct(value: Json, shape: Struct): JsonObject {
  const result: JsonObject = new Map()
  if (value === null) return result
  if (!isObject(value)) throw new Misfit()
  for (const [key, member] of value) {
    if (member === null) continue
    const name = nameIn(shape, key)
    const inner = name === undefined ? undefined : shape[name]
    if (name === undefined || inner === undefined) result.set(key, member)
    else result.set(name, typed(member, inner))
  }
  return result
}

function nameIn(shape: Struct, key: string): string | undefined {
  if (Object.hasOwn(shape, key)) return key
  const folded = key.toLowerCase()
  return Object.keys(shape).find((name) => name.toLowerCase() === folded)
}

const quantity = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/
const int32Max = 2 ** 31

const fits: Readonly<Record<'text' | 'int32' | 'quantity' | 'time' | 'object', (value: Json) => boolean>> = {
  text: (value) => typeof value === 'string',
  int32: (value) => Number.isInteger(value) && Number(value) >= -int32Max && Number(value) < int32Max,
  quantity: (value) => quantity.test(spelling(value).trim()),
  time: (value) => typeof value === 'string' && time.test(value) && !Number.isNaN(Date.parse(value)),
  object: isObject,
}

function spelling(value: Json): string {
  if (value instanceof Spelled) return value.source
  return typeof value === 'string' || isNumber(value) ? String(value) : ''
}
