/**
 * Reading fields of a parsed object for display. Nothing here throws: an object that was never validated still gets a row,
 * with the zero value (empty text, 0, no items) where a field is missing or of another type, as Go's structs would have.
 */

import { ageOf } from '../duration.ts'

/** A parsed object, or a part of one. */
export type View = Readonly<Record<string, unknown>>

/** One line of a table; a condition marks what is done, for clients that want to hide it. */
export type TableRow = { readonly cells: readonly Cell[]; readonly conditions?: readonly RowCondition[] }

export type Cell = string | number | boolean | null

export type RowCondition = {
  readonly type: 'Completed'
  readonly status: 'True'
  readonly reason: string
  readonly message: string
}

/** The cells of an object in the order of its resource's columns, the wide ones included. */
export type Printer = (object: View, nowMs: number) => readonly Cell[]

export type Printers = Readonly<Record<string, Printer>>

export function field(of: unknown, ...path: readonly string[]): unknown {
  let value = of
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as View)[name]
  }
  return value ?? undefined
}

export function text(of: unknown, ...path: readonly string[]): string {
  const value = field(of, ...path)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** The text, or what stands for its absence: `<none>`, `<unset>`. */
export function textOr(absent: string, of: unknown, ...path: readonly string[]): string {
  return field(of, ...path) === undefined ? absent : text(of, ...path)
}

export function count(of: unknown, ...path: readonly string[]): number {
  const value = field(of, ...path)
  return typeof value === 'number' ? value : 0
}

export function flag(of: unknown, ...path: readonly string[]): boolean {
  return field(of, ...path) === true
}

export function list(of: unknown, ...path: readonly string[]): readonly unknown[] {
  const value = field(of, ...path)
  return Array.isArray(value) ? value : []
}

export function texts(of: unknown, ...path: readonly string[]): readonly string[] {
  return list(of, ...path).filter((value) => typeof value === 'string')
}

export function record(of: unknown, ...path: readonly string[]): View {
  const value = field(of, ...path)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as View) : {}
}

export function nameOf(object: View): string {
  return text(object, 'metadata', 'name')
}

export function age(object: View, nowMs: number): string {
  return ageOf(field(object, 'metadata', 'creationTimestamp'), nowMs)
}

export function deleting(object: View): boolean {
  return field(object, 'metadata', 'deletionTimestamp') !== undefined
}

/** The first condition of a type in `status.conditions`. */
export function condition(object: View, type: string): unknown {
  return list(object, 'status', 'conditions').find((entry) => text(entry, 'type') === type)
}

/** `a,b + 3 more...`: what does not fit is only counted. */
export function shortened(all: readonly string[], most: number, separator = ','): string {
  const shown = all.slice(0, most).join(separator)
  return all.length > most ? `${shown} + ${all.length - most} more...` : shown
}

/** `a=1,b=2`, or `<none>`. */
export function formatLabels(labels: View): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${String(value)}`)
  return pairs.length === 0 ? '<none>' : pairs.sort().join(',')
}

/** A label selector in the query syntax; undefined when it is not valid. */
export function selectorText(selector: unknown): string | undefined {
  const requirements: [key: string, text: string][] = []
  for (const [key, value] of Object.entries(record(selector, 'matchLabels'))) {
    requirements.push([key, `${key}=${String(value)}`])
  }
  for (const entry of list(selector, 'matchExpressions')) {
    const key = text(entry, 'key')
    const values = [...texts(entry, 'values')].sort().join(',')
    const operator = text(entry, 'operator')
    if (operator === 'In') requirements.push([key, `${key} in (${values})`])
    else if (operator === 'NotIn') requirements.push([key, `${key} notin (${values})`])
    else if (operator === 'Exists') requirements.push([key, key])
    else if (operator === 'DoesNotExist') requirements.push([key, `!${key}`])
    else return undefined
  }
  requirements.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return requirements.map(([, requirement]) => requirement).join(',')
}

export function formatSelector(selector: unknown): string {
  const formatted = selectorText(selector)
  if (formatted === undefined) return '<error>'
  return formatted === '' ? '<none>' : formatted
}
