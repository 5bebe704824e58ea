/**
 * A configuration laid over an object: nothing is taken away, scalars and atomic parts come from the configuration,
 * maps and lists of items are merged member by member.
 */

import type { Json, JsonObject } from '../../kube/json/json.ts'
import { fault, TypeFault } from './faults.ts'
import { type FieldType, formsOf, type ListType, leadingForm, type MapType, memberType } from './fieldtype.ts'
import { itemElement } from './listitem.ts'

/** Shares parts with both. `over` was admitted before; throws TypeFault where items of `base` cannot be told apart. */
export function mergeValues(base: Json, over: Json, type: FieldType): Json {
  switch (leadingForm(formsOf(type, over))) {
    case 'map':
      return mergeMaps(base, over, type.map!)
    case 'list':
      return mergeLists(base, over, type.list!)
    case 'scalar':
      return over
  }
}

function mergeMaps(base: Json, over: Json, type: MapType): Json {
  if (type.atomic || !(base instanceof Map) || base.size === 0) return over
  if (!(over instanceof Map)) return base
  const merged: JsonObject = new Map(base)
  for (const [name, member] of over) {
    const held = base.get(name)
    merged.set(name, held === undefined ? member : mergeValues(held, member, memberType(type, name)))
  }
  return merged
}

function mergeLists(base: Json, over: Json, type: ListType): Json {
  if (type.atomic || !Array.isArray(base) || base.length === 0) return over
  return Array.isArray(over) && over.length > 0 ? new ListMerge(base, over, type).items() : base
}

/**
 * Two lists become one: items of both sides stand in the order of the second; items of the first alone stay where they
 * were among them, and new ones follow those.
 */
class ListMerge {
  readonly #left: readonly Json[]
  readonly #type: ListType
  readonly #leftKeys: readonly string[]
  readonly #rightKeys: readonly string[]
  readonly #leftItems = new Map<string, Json>()
  readonly #rightItems = new Map<string, Json>()

  constructor(left: readonly Json[], right: readonly Json[], type: ListType) {
    this.#left = left
    this.#type = type
    this.#rightKeys = keysOf(right, type)
    for (const [index, key] of this.#rightKeys.entries()) this.#rightItems.set(key, right[index]!)
    this.#leftKeys = keysOf(left, type)
    // Of items that stand twice nothing can be kept: the configuration's item replaces them.
    for (const [index, key] of this.#leftKeys.entries()) {
      this.#leftItems.set(key, this.#leftItems.has(key) ? null : left[index]!)
    }
  }

  items(): Json[] {
    const out: Json[] = []
    const shared = this.#rightKeys.filter((key) => this.#leftItems.has(key))
    const merged = new Set<string>()
    let next = 0
    let at = 0
    let behind = 0
    const takeRight = (key: string) => {
      const base = this.#leftItems.get(key)
      const over = this.#rightItems.get(key)!
      out.push(base === undefined ? over : mergeValues(base, over, this.#type.element))
      merged.add(key)
    }
    while (at < this.#leftKeys.length || behind < this.#rightKeys.length) {
      const left = this.#leftKeys[at]
      const right = this.#rightKeys[behind]
      if (left !== undefined && right !== undefined) {
        if (left === right) {
          takeRight(left)
          at++
          behind++
          next++
          continue
        }
        // In both, but its turn has not come.
        if (this.#rightItems.has(left) && next < shared.length && shared[next] !== left) {
          at++
          continue
        }
      }
      if (left !== undefined) {
        if (!this.#rightItems.has(left)) {
          out.push(this.#left[at]!)
          at++
          continue
        }
        if (merged.has(left)) at++
      }
      if (right !== undefined) {
        takeRight(right)
        behind++
        if (shared[next] === right) next++
      }
    }
    return out
  }
}

function keysOf(list: readonly Json[], type: ListType): string[] {
  return list.map((item, index) => {
    const element = itemElement(type, item)
    if (typeof element === 'string') throw new TypeFault(fault(`element ${index}: ${element}`))
    return element.text
  })
}
