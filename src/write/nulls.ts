/**
 * What Go prints as null when it is empty: times that are no pointers, and lists and pointers whose tag does not say
 * that they may be left out. Clients send them or leave them out as they like; what is kept has them, as with the real
 * server.
 */

import { nullable } from './nullable.ts'
import { structWalk } from './structs.ts'

/** Fills in place what an object of a built-in kind has as null. */
export const fillNulls = structWalk({
  concerns: (component) => Object.hasOwn(nullable, component),
  visit: (struct, component) => {
    for (const name of nullable[component] ?? []) if (!struct.has(name)) struct.set(name, null)
  },
})
