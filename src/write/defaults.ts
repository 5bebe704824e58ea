/**
 * Defaults of built-in kinds, as kube-apiserver gives them to whatever is written: clients dereference them without
 * looking. The few that the OpenAPI documents carry come from there, all others from the table (defaulttable.ts).
 */

import { builtinSchemas } from '../kube/builtin.ts'
import { cloneJson, fromPlain, isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import type { Components } from '../kube/schema/gostruct.ts'
import type { Schema } from '../kube/schema/schema.ts'
import { defaultTable, type StructDefaults } from './defaulttable.ts'
import { structWalk } from './structs.ts'

type Prepared = {
  readonly absent: JsonObject
  readonly zero: readonly (readonly [name: string, value: Json])[]
  readonly rule: ((struct: JsonObject) => void) | undefined
}

/** Fills in place what an object of a built-in kind leaves to the server. */
export const fillBuiltin = structWalk({
  concerns: (component) => preparedOf(component) !== undefined,
  visit: (struct, component) => {
    const prepared = preparedOf(component)
    if (prepared === undefined) return
    // Rules first: some look at whether anything at all was said.
    prepared.rule?.(struct)
    fillAbsent(struct, prepared.absent)
    for (const [name, value] of prepared.zero) if ((struct.get(name) ?? 0) === 0) struct.set(name, value)
  },
})

const prepared = new Map<string, Prepared | undefined>()

function preparedOf(component: string): Prepared | undefined {
  if (prepared.has(component)) return prepared.get(component)
  const { absent = {}, zero = {}, rule }: StructDefaults = defaultTable[component.replace('io.k8s.api.', '')] ?? {}
  const values = { ...documented(component), ...absent }
  const empty = Object.keys(values).length === 0 && Object.keys(zero).length === 0 && rule === undefined
  const made = empty
    ? undefined
    : { absent: fromPlain(values) as JsonObject, zero: [...(fromPlain(zero) as JsonObject)], rule }
  prepared.set(component, made)
  return made
}

/** The defaults that a component's schema names. A zero there is no default: it is how Go has what is not set. */
function documented(component: string): Readonly<Record<string, unknown>> {
  const { properties = {} } = ((builtinSchemas() as Components)[component] ?? {}) as Schema
  const named = Object.entries(properties).map(([name, property]) => [name, property.default] as const)
  return Object.fromEntries(named.filter(([, value]) => value && typeof value !== 'object'))
}

/** An empty string is how Go has a string that is not set. */
function fillAbsent(struct: JsonObject, values: JsonObject): void {
  for (const [name, value] of values) {
    const held = struct.get(name)
    if (held === undefined || held === '') struct.set(name, cloneJson(value))
    else if (isObject(held) && isObject(value)) fillAbsent(held, value)
  }
}
