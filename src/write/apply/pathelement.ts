/**
 * One step of the path to an owned field: a member by name, an item of a list by its keys, by its own value, or by its
 * index. Two steps are the same where their texts are; the text is what FieldsV1 has as key.
 */

import { bytewise, goValue } from '../../kube/json/goformat.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { isNumber, type Json, printJson, type Spelled } from '../../kube/json/json.ts'
import { isInt64 } from '../../kube/json/number.ts'

export type PathElement =
  | { readonly kind: 'field'; readonly text: string; readonly name: string }
  | { readonly kind: 'key'; readonly text: string; readonly names: readonly string[]; readonly values: readonly Json[] }
  | { readonly kind: 'value'; readonly text: string; readonly value: Json }
  | { readonly kind: 'index'; readonly text: string; readonly index: number }

export type Path = readonly PathElement[]

export function fieldElement(name: string): PathElement {
  return { kind: 'field', text: `f:${name}`, name }
}

/** Names and values of the keys, in the order of the names; `heads`: the names' part of the text, if it is at hand. */
export function keyElement(
  names: readonly string[],
  values: readonly Json[],
  heads: readonly string[] = names.map(keyHead),
): PathElement {
  let text = 'k:{'
  for (let at = 0; at < names.length; at++) {
    if (at > 0) text += ','
    text += heads[at]! + printed(values[at]!)
  }
  return { kind: 'key', text: `${text}}`, names, values }
}

export function keyHead(name: string): string {
  return `${printJson(name)}:`
}

export function valueElement(value: Json): PathElement {
  return { kind: 'value', text: `v:${printed(value)}`, value }
}

/** Integers as they are, other numbers as Go prints a float64: 1 and 1.0 are one item. */
function printed(value: Json): string {
  if (!isNumber(value)) return printJson(value)
  if (isInt64(value)) return typeof value === 'number' ? String(value) : String(BigInt(value.source))
  return String(asFloat(value)).replace(/e([+-])(\d)$/, 'e$10$2')
}

/** A path of members: `spec`, `replicas`. */
export function pathOf(...names: string[]): Path {
  return names.map(fieldElement)
}

/** `.spec.containers[name="app"].image` */
export function printPath(path: Path): string {
  return path.map(printElement).join('')
}

export function printElement(element: PathElement): string {
  switch (element.kind) {
    case 'field':
      return `.${element.name}`
    case 'key':
      return `[${element.names.map((name, at) => `${name}=${readable(element.values[at]!)}`).join(',')}]`
    case 'value':
      return `[=${readable(element.value)}]`
    case 'index':
      return `[${element.index}]`
  }
}

function readable(value: Json): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return `[${value.map(readable).join(',')}]`
  if (value instanceof Map) return [...value].map(([name, member]) => `${name}=${readable(member)}`).join('')
  return goValue(value)
}

const ranks = { field: 0, key: 1, value: 2, index: 3 } as const

/** The order in which FieldsV1 is printed and conflicts are listed. */
export function compareElements(a: PathElement, b: PathElement): number {
  if (a.kind === 'field' && b.kind === 'field') return bytewise(a.name, b.name)
  if (a.kind === 'key' && b.kind === 'key') return compareKeys(a, b)
  if (a.kind === 'value' && b.kind === 'value') return compareValues(a.value, b.value)
  if (a.kind === 'index' && b.kind === 'index') return a.index - b.index
  return ranks[a.kind] - ranks[b.kind]
}

type Key = Extract<PathElement, { kind: 'key' }>

function compareKeys(a: Key, b: Key): number {
  for (let at = 0; at < a.names.length; at++) {
    const other = b.names[at]
    if (other === undefined) return 1
    const order = bytewise(a.names[at]!, other) || compareValues(a.values[at]!, b.values[at]!)
    if (order !== 0) return order
  }
  return a.names.length - b.names.length
}

/** Numbers before strings, then booleans, lists, objects and null. */
function compareValues(a: Json, b: Json): number {
  if (isNumber(a) && isNumber(b)) return asFloat(a) - asFloat(b)
  if (typeof a === 'string' && typeof b === 'string') return bytewise(a, b)
  return rankOf(a) - rankOf(b) || bytewise(printJson(a), printJson(b))
}

function asFloat(value: number | Spelled): number {
  return typeof value === 'number' ? value : Number(value.source)
}

function rankOf(value: Json): number {
  if (value === null) return 5
  if (isNumber(value)) return 0
  if (typeof value === 'string') return 1
  if (typeof value === 'boolean') return 2
  return Array.isArray(value) ? 3 : 4
}
