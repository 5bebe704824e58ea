/** How an item of a list that is a set or a map is found again: by its value, or by the fields that are its keys. */

import { quoted } from '../../kube/json/gotext.ts'
import type { Json, JsonObject } from '../../kube/json/json.ts'
import type { FieldType, ListType } from './fieldtype.ts'
import { keyElement, type PathElement, valueElement } from './pathelement.ts'

/** The step to the item, or what is wrong with it. */
export function itemElement(list: ListType, item: Json): PathElement | string {
  const fault = itemFault(list, item)
  if (fault !== undefined) return fault
  return list.keys.length > 0 ? keyedElement(list, item as JsonObject) : valueElement(item)
}

/** Why there is no step to the item. */
export function itemFault(list: ListType, item: Json): string | undefined {
  if (list.atomic) return 'invalid indexing of non-associative list'
  return list.keys.length > 0 ? keyedFault(list, item) : setFault(item)
}

function keyedFault({ element, keys }: ListType, item: Json): string | undefined {
  if (item === null) return 'associative list with keys may not have a null element'
  if (!(item instanceof Map)) return 'associative list with keys may not have non-map elements'
  let found = 0
  for (const name of keys) {
    if (item.has(name)) found++
    else if (element.map === undefined) {
      return `couldn't find default value for ${name}: associative list may not have non-map types`
    } else if (defaultOf(element, name) !== undefined) found++
  }
  if (found > 0) return undefined
  const names = `[${keys.map(quoted).join(' ')}]`
  return `associative list with keys has an element that omits all key fields ${names} (and doesn't have default values for any key fields)`
}

function keyedElement({ element, sortedKeys, keyHeads }: ListType, item: JsonObject): PathElement {
  const values: Json[] = []
  for (const name of sortedKeys) {
    const value = item.get(name) ?? (item.has(name) ? null : defaultOf(element, name))
    if (value !== undefined) values.push(value)
  }
  if (values.length === sortedKeys.length) return keyElement(sortedKeys, values, keyHeads)
  // A key that is absent and has no default is not the same as one that is null: without it this is another item.
  const named = sortedKeys.filter((name) => item.has(name) || defaultOf(element, name) !== undefined)
  return keyElement(named, values)
}

function defaultOf(element: FieldType, name: string): Json | undefined {
  return element.map?.fields.get(name)?.default ?? undefined
}

function setFault(item: Json): string | undefined {
  if (item instanceof Map) return "associative list without keys has an element that's a map type"
  if (Array.isArray(item)) return 'not supported: associative list with lists as elements'
  if (item === null) return "associative list without keys has an element that's an explicit null"
  return undefined
}
