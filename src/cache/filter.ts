/**
 * Which objects of an interest a request means: namespace, exact key, selectors. Compiled once per request; its equality
 * terms let lists and events find their matches by index instead of trying everyone.
 */
import type { FieldSelector } from '../kube/fieldselector.ts'
import type { FieldPlan } from '../kube/object.ts'
import { objectKey } from '../kube/resource.ts'
import type { LabelSelector } from '../kube/selector.ts'
import type { Item } from './item.ts'

/** A required value of one label (`l:app`) or planned field (`f:spec.nodeName`). */
export type Term = { readonly on: string; readonly value: string }

export type Filter = {
  /** undefined: every namespace. */
  readonly namespace: string | undefined
  /** Set when at most one object can match. */
  readonly key: string | undefined
  readonly terms: readonly Term[]
  /** Whether anything but the namespace is asked: otherwise a range needs no test per object. */
  readonly selects: boolean
  /** Everything: namespace, key and selectors. */
  matches(item: Item): boolean
}

export const everything: Filter = {
  namespace: undefined,
  key: undefined,
  terms: [],
  selects: false,
  matches: () => true,
}

export function makeFilter(parts: {
  namespaced: boolean
  namespace: string
  name?: string | undefined
  labels?: LabelSelector | undefined
  fields?: FieldSelector | undefined
  plan: FieldPlan
  /** The value a planned field has where an object does not spell it. */
  defaults?: ReadonlyMap<string, string> | undefined
}): Filter {
  const { labels, fields, plan, defaults } = parts
  const namespace = parts.namespace === '' ? undefined : parts.namespace
  let name = parts.name
  const terms: Term[] = []
  const tests: ((item: Item) => boolean)[] = []
  if (namespace !== undefined) tests.push((item) => item.namespace === namespace)
  for (const { field, operator, value } of fields?.requirements ?? []) {
    if (field === 'metadata.name' && operator === '=' && name === undefined) name = value
    if (operator === '=' && plan.paths.includes(field) && !defaults?.has(field)) terms.push({ on: `f:${field}`, value })
    const read = fieldReader(field, plan, defaults)
    tests.push(operator === '=' ? (item) => read(item) === value : (item) => read(item) !== value)
  }
  if (name !== undefined && parts.name !== undefined) {
    const wanted = name
    tests.push((item) => item.name === wanted)
  }
  if (labels !== undefined && !labels.empty) {
    for (const [label, value] of labels.equalities) terms.push({ on: `l:${label}`, value })
    tests.push((item) => labels.matches(item.labels))
  }
  const key =
    name === undefined || (parts.namespaced && namespace === undefined)
      ? undefined
      : objectKey(parts.namespaced ? (namespace as string) : '', name)
  const selects = tests.length > (namespace === undefined ? 0 : 1)
  return { namespace, key, terms, selects, matches: allOf(tests) }
}

function allOf(tests: readonly ((item: Item) => boolean)[]): (item: Item) => boolean {
  const [first, second] = tests
  if (first === undefined) return () => true
  if (second === undefined) return first
  if (tests.length === 2) return (item) => first(item) && second(item)
  return (item) => tests.every((test) => test(item))
}

export function fieldReader(
  field: string,
  plan: FieldPlan,
  defaults: ReadonlyMap<string, string> | undefined,
): (item: Item) => string {
  if (field === 'metadata.name') return (item) => item.name
  if (field === 'metadata.namespace') return (item) => item.namespace
  const index = plan.paths.indexOf(field)
  const absent = defaults?.get(field) ?? ''
  return (item) => item.fields[index] || absent
}

/** The value an item has for a term's left side; undefined when it has none (a label that is not there). */
export function termReader(on: string, plan: FieldPlan): (item: Item) => string | undefined {
  const what = on.slice(2)
  if (on.startsWith('l:')) return (item) => item.labels?.get(what)
  const index = plan.paths.indexOf(what)
  return (item) => item.fields[index]
}
