/**
 * Go's structs have no way to leave out a part that is a struct itself, nor a list that is required: kube-apiserver
 * compares objects that have these parts, empty, where ours keep what was sent. Ownership is told on trees filled up in
 * the same way; what was filled in is known by its identity and is taken out again before anything is stored.
 */

import { builtinSchemas } from '../kube/builtin.ts'
import { isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import { apiVersion } from '../kube/resource.ts'
import { type Components, referenceOf } from '../kube/schema/gostruct.ts'
import type { Schema } from '../kube/schema/schema.ts'
import { componentOf, type KindName } from './components.ts'
import { nullable } from './nullable.ts'

/** What a struct has even if its writer does not say so, and the members in which there may be more of it. */
export type Plan = {
  readonly component: string
  readonly empties: readonly (readonly [name: string, value: Json])[]
  /** Numbers, strings and flags that are never left out. */
  readonly scalars: readonly (readonly [name: string, value: Json])[]
  readonly members: ReadonlyMap<string, Inner>
}

type Inner = {
  readonly shape: 'struct' | 'list' | 'map'
  readonly component: string
  readonly plan: () => Plan
}

const plans = new Map<string, Plan>()
const needed = new WeakMap<Plan, readonly (readonly [name: string, member: Inner])[]>()
const filled = new WeakSet<JsonObject>()

/** The tree of a built-in kind with what Go would have; what needs nothing is shared. */
export function withZeros(tree: JsonObject, kind: KindName): JsonObject {
  const component = componentOf(kind)
  return component === undefined ? tree : (fill(tree, planOf(component)) as JsonObject)
}

const nothings = new Map<string, JsonObject>()

/** The object of a kind before there is anything in it. */
export function nothingOf(kind: KindName): JsonObject {
  const component = componentOf(kind)
  const made = component === undefined ? undefined : nothings.get(component)
  if (made !== undefined) return made
  const named = new Map<string, Json>([
    ['kind', kind.kind],
    ['apiVersion', apiVersion(kind)],
  ])
  if (component === undefined) return named
  const nothing = new Map([...zeroStruct(component), ...named])
  nothings.set(component, nothing)
  return nothing
}

function zeroStruct(component: string): JsonObject {
  const { empties, scalars, members } = planOf(component)
  const zero: JsonObject = new Map(scalars)
  for (const [name, value] of empties)
    zero.set(name, value === null ? null : zeroStruct(members.get(name)?.component ?? ''))
  return zero
}

function fill(value: Json, plan: Plan): Json {
  if (!isObject(value)) return value
  let copy: JsonObject | undefined
  for (const [name, empty] of plan.empties) {
    if (value.has(name)) continue
    copy ??= new Map(value)
    copy.set(name, empty)
  }
  for (const [name, { shape, plan: inner }] of neededIn(plan)) {
    const member = value.get(name)
    if (member === undefined || member === null || typeof member !== 'object') continue
    const next = fillMember(member, shape, inner())
    if (next === member) continue
    copy ??= new Map(value)
    copy.set(name, next)
  }
  return copy ?? value
}

/** Members in which something can be missing: most parts of most kinds can be passed over. */
function neededIn(plan: Plan): readonly (readonly [name: string, member: Inner])[] {
  let found = needed.get(plan)
  if (found === undefined) {
    found = [...plan.members].filter(([, inner]) => leadsToEmpties(inner.plan()))
    needed.set(plan, found)
  }
  return found
}

function leadsToEmpties(plan: Plan): boolean {
  const seen = new Set([plan])
  for (const { empties, members } of seen) {
    if (empties.length > 0) return true
    for (const inner of members.values()) seen.add(inner.plan())
  }
  return false
}

function fillMember(member: Json, shape: Inner['shape'], plan: Plan): Json {
  if (shape === 'struct') return fill(member, plan)
  if (shape === 'list' && Array.isArray(member)) {
    const items = member.map((item) => fill(item, plan))
    return items.every((item, index) => item === member[index]) ? member : items
  }
  if (shape !== 'map' || !isObject(member)) return member
  let changed = false
  const values: JsonObject = new Map()
  for (const [key, value] of member) {
    const next = fill(value, plan)
    if (next !== value) changed = true
    values.set(key, next)
  }
  return changed ? values : member
}

/** Required or with a zero for a default, and yet Go leaves them out when they are empty: all there are in Kubernetes 1.36. */
const leftOut: ReadonlySet<string> = new Set([
  'io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.validationActions',
  'io.k8s.api.core.v1.ReplicationControllerSpec.minReadySeconds',
  'io.k8s.api.networking.v1.IPAddressSpec.parentRef',
  'io.k8s.api.resource.v1.CounterSet.counters',
  'io.k8s.api.resource.v1.DeviceCounterConsumption.counters',
])

export function planOf(component: string): Plan {
  const made = plans.get(component)
  if (made !== undefined) return made
  const schema = (builtinSchemas() as Components)[component] as Schema | undefined
  const empties: [string, Json][] = []
  const scalars: [string, Json][] = []
  const members = new Map<string, Inner>()
  const plan: Plan = { component, empties, scalars, members }
  // Kept before it is complete, because components refer to each other in circles.
  plans.set(component, plan)
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const inner = innerOf(property)
    if (inner !== undefined) members.set(name, inner)
    const isStruct = typeof property.default === 'object' && property.default !== null
    if (isStruct && inner?.shape === 'struct') empties.push([name, emptyStruct(referenceOf(property) ?? '')])
    else if (leftOut.has(`${component}.${name}`)) continue
    else if (isZero(property.default)) scalars.push([name, property.default])
    else if (nullable[component]?.includes(name)) empties.push([name, null])
    else if (schema?.required?.includes(name) === true && !isScalar(property)) empties.push([name, null])
  }
  return plan
}

function innerOf(property: Schema): Inner | undefined {
  const values = typeof property.additionalProperties === 'object' ? property.additionalProperties : undefined
  const [shape, holder] =
    property.items !== undefined
      ? (['list', property.items] as const)
      : values !== undefined
        ? (['map', values] as const)
        : (['struct', property] as const)
  const reference = referenceOf(holder)
  const structs = (builtinSchemas() as Components)[reference ?? ''] as Schema | undefined
  if (reference === undefined || structs?.properties === undefined) return undefined
  return { shape, component: reference, plan: () => planOf(reference) }
}

function isZero(value: unknown): value is '' | 0 | false {
  return value === '' || value === 0 || value === false
}

function isScalar(property: Schema): boolean {
  const reference = referenceOf(property)
  if (reference === undefined) return property.type !== 'array' && property.type !== 'object'
  const component = (builtinSchemas() as Components)[reference] as Schema | undefined
  return component?.properties === undefined
}

function emptyStruct(component: string): JsonObject {
  const empty: JsonObject = new Map(planOf(component).empties)
  filled.add(empty)
  return empty
}

/** A copy of the tree without what was filled in. */
export function withoutZeros(tree: JsonObject): JsonObject {
  return unfill(tree) as JsonObject
}

function unfill(value: Json): Json {
  if (Array.isArray(value)) return value.map(unfill)
  if (!isObject(value)) return value
  const copy: JsonObject = new Map()
  for (const [key, member] of value) {
    if (isObject(member)) {
      if (filled.has(member)) continue
      const inner = unfill(member) as JsonObject
      if (inner.size === 0 && member.size > 0) continue
      copy.set(key, inner)
    } else copy.set(key, unfill(member))
  }
  return copy
}
