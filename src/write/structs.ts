/**
 * A walk over the structs of an object of a built-in kind, a struct before what lies in it. Most parts of most kinds hold
 * nothing that a walk is after, and are passed over.
 */

import { isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import { type Plan, planOf } from './zeros.ts'

type Walk = {
  /** Whether structs of this component are to be visited. */
  readonly concerns: (component: string) => boolean
  /** May change the struct in place. */
  readonly visit: (struct: JsonObject, component: string) => void
}

type Members = readonly (readonly [name: string, inner: Plan])[]

export function structWalk({ concerns, visit }: Walk): (tree: JsonObject, component: string) => void {
  const known = new WeakMap<Plan, Members>()

  const leads = (plan: Plan): boolean => {
    const seen = new Set([plan])
    for (const { component, members } of seen) {
      if (concerns(component)) return true
      for (const inner of members.values()) seen.add(inner.plan())
    }
    return false
  }

  const leading = (plan: Plan): Members => {
    let found = known.get(plan)
    if (found === undefined) {
      found = [...plan.members].map(([name, inner]) => [name, inner.plan()] as const).filter(([, one]) => leads(one))
      known.set(plan, found)
    }
    return found
  }

  const walk = (value: Json, plan: Plan): void => {
    if (!isObject(value)) return
    if (concerns(plan.component)) visit(value, plan.component)
    for (const [name, inner] of leading(plan)) {
      const member = value.get(name)
      if (Array.isArray(member)) for (const item of member) walk(item, inner)
      else if (isObject(member) && plan.members.get(name)?.shape === 'map') {
        for (const item of member.values()) walk(item, inner)
      } else if (member !== undefined) walk(member, inner)
    }
  }

  return (tree, component) => walk(tree, planOf(component))
}
