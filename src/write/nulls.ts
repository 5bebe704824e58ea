/**
 * What Go prints as null when it is empty: times that are no pointers, and lists and pointers whose tag does not say
 * that they may be left out. Clients send them or leave them out as they like; what is kept has them, as with the real
 * server.
 */

import { isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import { nullable } from './nullable.ts'
import { type Plan, planOf } from './zeros.ts'

/** Fills in place what an object of a built-in kind has as null. */
export function fillNulls(tree: JsonObject, component: string): void {
  fill(tree, planOf(component))
}

function fill(value: Json, plan: Plan): void {
  if (!isObject(value)) return
  for (const name of nullable[plan.component] ?? []) if (!value.has(name)) value.set(name, null)
  for (const [name, inner] of leading(plan)) {
    const member = value.get(name)
    if (Array.isArray(member)) for (const item of member) fill(item, inner)
    else if (isObject(member) && plan.members.get(name)?.shape === 'map') {
      for (const item of member.values()) fill(item, inner)
    } else if (member !== undefined) fill(member, inner)
  }
}

const found = new WeakMap<Plan, readonly (readonly [name: string, inner: Plan])[]>()

/** The members below which something may be null: most parts of most kinds are passed over. */
function leading(plan: Plan): readonly (readonly [name: string, inner: Plan])[] {
  let known = found.get(plan)
  if (known === undefined) {
    known = [...plan.members].map(([name, inner]) => [name, inner.plan()] as const).filter(([, inner]) => leads(inner))
    found.set(plan, known)
  }
  return known
}

function leads(plan: Plan): boolean {
  const seen = new Set([plan])
  for (const { component, members } of seen) {
    if (Object.hasOwn(nullable, component)) return true
    for (const inner of members.values()) seen.add(inner.plan())
  }
  return false
}
