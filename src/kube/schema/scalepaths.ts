/** The simple paths by which a definition says where its resource keeps replicas and selector: `.spec.replicas`. */

import { field, isNumber, isObject, type Json, type JsonObject } from '../json/json.ts'

export function keysOf(path: string): string[] {
  return path.replace(/^\./, '').split('.')
}

export function valueAt(tree: JsonObject, path: string): Json | undefined {
  return field(tree, ...keysOf(path))
}

export function putAt(tree: JsonObject, path: string, value: Json): void {
  const keys = keysOf(path)
  let at = tree
  for (const key of keys.slice(0, -1)) {
    let next = at.get(key)
    if (!isObject(next)) {
      next = new Map()
      at.set(key, next)
    }
    at = next
  }
  at.set(keys.at(-1) ?? '', value)
}

export function wholeAt(tree: JsonObject, path: string): number | undefined {
  const value = valueAt(tree, path)
  return isNumber(value) ? Number(typeof value === 'number' ? value : value.source) : undefined
}
