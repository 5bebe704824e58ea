/**
 * Which objects of an interest a request means: namespace, exact key, selectors. Compiled once per request; its equality
 * terms let lists and events find their matches by index instead of trying every object.
 */
import type { FieldPath } from '../kube/fields.ts'
import type { FieldSelector, FieldWish } from '../kube/fieldselector.ts'
import { type FieldPlan, planFields } from '../kube/object.ts'
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
  /** The one name that can match, in whichever namespace. */
  readonly name?: string | undefined
  readonly terms: readonly Term[]
  /** Whether anything but the namespace is asked: otherwise a range needs no test per object. */
  readonly selects: boolean
  /** Everything: namespace, key and selectors. */
  matches(item: Item): boolean
}

/**
 * Whether a reader with this filter may have had the object. Of a damaged one only place and name are known: that it is gone, or
 * something else now, is told to a reader too many rather than to one too few, who would keep it for ever.
 */
export function mayHave(filter: Filter, item: Item): boolean {
  if (!item.isDamaged) return filter.matches(item)
  const { namespace, name, key } = filter
  if (namespace !== undefined && namespace !== item.namespace) return false
  return (name === undefined || name === item.name) && (key === undefined || key === item.key)
}

export const everything: Filter = {
  namespace: undefined,
  key: undefined,
  terms: [],
  selects: false,
  matches: () => true,
}

type Paths = Readonly<Record<string, FieldPath>>

export function makeFilter(parts: {
  namespaced: boolean
  namespace: string
  name?: string | undefined
  labels?: LabelSelector | undefined
  /** Over canonical field names. */
  fields?: FieldSelector | undefined
  paths: Paths
  plan: FieldPlan
}): Filter {
  const { labels, plan } = parts
  const wishes = parts.fields?.wishes ?? none
  const namespace = parts.namespace === '' ? undefined : parts.namespace
  const name = parts.name ?? wishes.get('metadata.name')?.required
  const terms: Term[] = []
  const tests: ((item: Item) => boolean)[] = []
  const prefix = `${namespace}/`
  if (namespace !== undefined) tests.push((item) => item.key.startsWith(prefix))
  if (parts.name !== undefined) tests.push((item) => item.name === parts.name)
  for (const [field, wish] of wishes) {
    const place = parts.paths[field]
    if (place === undefined && !field.startsWith('metadata.')) throw new Error(`nobody knows where ${field} stands`)
    addTests(tests, wish, fieldReader(field, place, plan))
    // Only a value that stands in the object itself can be looked up; a default or a fallback cannot.
    const plain = place !== undefined && place.default === undefined && place.otherwise === undefined
    const { required: value } = wish
    if (value !== undefined && plain && plan.paths.includes(place.path)) terms.push({ on: `f:${place.path}`, value })
  }
  if (labels !== undefined && !labels.empty) {
    for (const [label, value] of labels.equalities) terms.push({ on: `l:${label}`, value })
    tests.push((item) => labels.matches(item.labels))
  }
  const single = name !== undefined && name !== '' && (!parts.namespaced || namespace !== undefined)
  return {
    namespace,
    name,
    key: single ? objectKey(parts.namespaced ? (namespace as string) : '', name) : undefined,
    terms,
    selects: tests.length > (namespace === undefined ? 0 : 1),
    matches: allOf(tests),
  }
}

const none: ReadonlyMap<string, FieldWish> = new Map()

function addTests(
  tests: ((item: Item) => boolean)[],
  { required, contradictory, refused }: FieldWish,
  read: (item: Item) => string,
): void {
  if (contradictory) tests.push(() => false)
  if (required !== undefined) tests.push((item) => read(item) === required)
  if (refused !== undefined) tests.push((item) => !refused.has(read(item)))
}

function allOf(tests: readonly ((item: Item) => boolean)[]): (item: Item) => boolean {
  const [first, second] = tests
  if (first === undefined) return () => true
  if (second === undefined) return first
  if (tests.length === 2) return (item) => first(item) && second(item)
  return (item) => tests.every((test) => test(item))
}

function fieldReader(field: string, place: FieldPath | undefined, plan: FieldPlan): (item: Item) => string {
  if (field === 'metadata.name') return (item) => item.name
  if (field === 'metadata.namespace') return (item) => item.namespace
  const index = plan.paths.indexOf(place?.path ?? '')
  const otherwise = plan.paths.indexOf(place?.otherwise ?? '')
  const absent = place?.default ?? ''
  return (item) => item.fields[index] || item.fields[otherwise] || absent
}

/** The fields that have to be read at ingest so that these paths can be selected on. */
export function planFor(all: readonly Paths[]): FieldPlan {
  const paths = new Set<string>()
  for (const fields of all) {
    for (const { path, otherwise } of Object.values(fields)) {
      for (const one of [path, otherwise]) {
        if (one !== undefined && one !== '' && !one.startsWith('metadata.')) paths.add(one)
      }
    }
  }
  return planFields([...paths])
}

/** The value an item has for a term's left side; undefined when it has none (a label that is not there). */
export function termReader(on: string, plan: FieldPlan): (item: Item) => string | undefined {
  const what = on.slice(2)
  if (on.startsWith('l:')) return (item) => item.labels?.get(what)
  const index = plan.paths.indexOf(what)
  return (item) => item.fields[index]
}
