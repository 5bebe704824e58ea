/** Objects as CEL sees them, typed by their schema: bigint for integers, times and durations by format, escaped names. */

import type * as Cel from '@marcbachmann/cel-js'
import { isNumber, isObject, type Json, type JsonObject } from '../../json/json.ts'
import { parseDuration } from '../formats.ts'
import { META_FIELDS, type Schema, valuesOf } from '../schema.ts'
import { bigOf, floatOf, kindOf } from '../values.ts'

export type Environment = Cel.Environment

/** An error of the data a rule looks at, as opposed to something the engine lacks. */
export type Fail = (message: string) => Error

/** Makes the engine's duration of nanoseconds. */
export type DurationOf = (nanoseconds: number) => unknown

/** `root` adds what every resource has: apiVersion, kind, metadata.name and metadata.generateName. */
export function celValue(value: Json, schema: Schema | undefined, durationOf: DurationOf, root = false): unknown {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') return textValue(value, schema, durationOf)
  if (isNumber(value)) {
    if (schema?.type === 'number') return floatOf(value)
    if (kindOf(value) === 'integer') return bigOf(value)
    return schema?.type === 'integer' ? BigInt(floatOf(value)) : floatOf(value)
  }
  if (Array.isArray(value)) return value.map((item) => celValue(item, schema?.items, durationOf))
  return objectValue(value, schema, durationOf, root)
}

function textValue(value: string, schema: Schema | undefined, durationOf: DurationOf): unknown {
  if (schema?.type !== 'string') return value
  switch (schema.format) {
    case 'byte':
      return new Uint8Array(Buffer.from(value, 'base64'))
    case 'duration': {
      const nanoseconds = parseDuration(value)
      return nanoseconds === undefined ? value : durationOf(nanoseconds)
    }
    case 'date':
    case 'date-time': {
      const time = new Date(value)
      return Number.isNaN(time.getTime()) ? value : time
    }
    default:
      return value
  }
}

function objectValue(value: JsonObject, schema: Schema | undefined, durationOf: DurationOf, root: boolean): unknown {
  const seen = new Map<string, unknown>()
  const values = valuesOf(schema)
  if (schema?.properties === undefined && !root) {
    for (const [key, item] of value) seen.set(key, celValue(item, values, durationOf))
    return seen
  }
  for (const [key, property] of Object.entries(schema?.properties ?? {})) {
    const item = value.get(key)
    const name = escapeName(key)
    if (item === undefined || name === undefined || (root && META_FIELDS.has(key))) continue
    seen.set(name, celValue(item, property, durationOf, property['x-kubernetes-embedded-resource'] === true))
  }
  if (root) {
    for (const key of ['apiVersion', 'kind']) if (value.has(key)) seen.set(key, value.get(key))
    const metadata = value.get('metadata')
    if (isObject(metadata)) {
      const names = ['name', 'generateName'].filter((key) => metadata.has(key))
      seen.set('metadata', new Map(names.map((key) => [key, metadata.get(key)])))
    }
  }
  return seen
}

const RESERVED: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

const ESCAPES: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
}

/** How a rule spells a field's name; undefined for names no rule can reach. */
export function escapeName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`
  if (!/^[A-Za-z_][A-Za-z0-9_./-]*$/.test(name)) return undefined
  return name.replace(/__|[./-]/g, (found) => ESCAPES[found] ?? found)
}
