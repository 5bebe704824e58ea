/**
 * Rows of custom resources: the name, then what the CRD's `additionalPrinterColumns` point at, coerced to the column's
 * type. A value that is missing or of another type is an empty cell (null), never an error.
 */

import { bytewise, goValue } from '../../json/goformat.ts'
import { fromPlain, isObject, type Json, printJson } from '../../json/json.ts'
import { ageOf, parseTime } from '../duration.ts'
import { compileJsonPath, type JsonPath } from '../jsonpath.ts'
import { type Cell, nameOf, type View } from './read.ts'

/** An entry of `additionalPrinterColumns`, as the CRD spells it. */
export type CustomColumn = {
  readonly name: string
  readonly type: string
  readonly format?: string
  readonly description?: string
  readonly priority?: number
  readonly jsonPath: string
}

export type CompiledColumn = CustomColumn & { readonly find: JsonPath }

/** What a CRD without columns of its own shows. */
const AGE_ONLY: readonly CustomColumn[] = [
  { name: 'Age', type: 'date', description: 'Time since its creation', jsonPath: '.metadata.creationTimestamp' },
]

/** Keyed by the CRD's own array, which lives as long as that version of the CRD does. */
const compiled = new WeakMap<readonly CustomColumn[], readonly CompiledColumn[]>()

/** The columns ready to print; those from the first path that does not parse on are left out. */
export function compileColumns(given: readonly CustomColumn[] | undefined): readonly CompiledColumn[] {
  const columns = given === undefined || given.length === 0 ? AGE_ONLY : given
  let ready = compiled.get(columns)
  if (ready === undefined) {
    const parsed: CompiledColumn[] = []
    for (const column of columns) {
      const find = compileJsonPath(column.jsonPath)
      if (find === undefined) break
      parsed.push({ ...column, find })
    }
    ready = parsed
    compiled.set(columns, ready)
  }
  return ready
}

export function printCustom(object: View, columns: readonly CompiledColumn[], nowMs: number): readonly Cell[] {
  return [nameOf(object), ...columns.map((column) => cellOf(column, object, nowMs))]
}

function cellOf(column: CompiledColumn, object: View, nowMs: number): Cell {
  const found = column.find(object)
  // A path that finds several things shows the first.
  return found.length === 0 ? null : coerce(column.type, found[0], nowMs)
}

function coerce(type: string, value: unknown, nowMs: number): Cell {
  switch (type) {
    case 'string':
      return printed(value)
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return typeof value === 'string' ? dated(value, nowMs) : null
    default:
      return null
  }
}

/** Levels of what a cell shows: Go knows no such limit, but here each level takes a part of the stack. */
const levelsMax = 500

/** Any value as text: scalars as Go prints them, the rest as JSON with sorted keys. Too deep a value is an empty cell. */
function printed(value: unknown): string | null {
  if (value === null) return '<no value>'
  if (isDeeper(value, levelsMax)) return null
  const json = fromPlain(value)
  return isObject(json) || Array.isArray(json) ? printJson(sorted(json)) : goValue(json)
}

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const entries = [...value].sort(([a], [b]) => bytewise(a, b))
  return new Map(entries.map(([key, member]) => [key, sorted(member)]))
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}

function dated(text: string, nowMs: number): string {
  const unset = text === '' || text === 'null'
  return unset || parseTime(text) !== undefined ? ageOf(text, nowMs) : '<invalid>'
}
