/**
 * Strategic merge patch: merge patch that knows from the schema which lists are merged by a key, and obeys directives in
 * the patch ($patch, $retainKeys, $setElementOrder, $deleteFromPrimitiveList). Works in place on copies made for it.
 */

import { goType, goValue } from '../json/goformat.ts'
import { quoted } from '../json/gotext.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { badRequest } from '../status.ts'
import { identity, inOrder, internal, mergeValue, noMergeKey, orderAfterMerge, wrongType } from './elementorder.ts'
import { unprocessable } from './jsonpatch.ts'

/** What merging needs to know about the type of a value, and about the property that holds it. */
export interface MergeSchema {
  /** The type's bare name (`PodSpec`), or `map` for free keys; for messages. */
  readonly name: string
  /** Undefined for a property the type does not declare. */
  property(name: string): MergeSchema | undefined
  /** The type of a list's elements; undefined when this is no list. */
  element(): MergeSchema | undefined
  readonly mergeKey?: string
  /** `merge`, `replace`, `retainKeys`; usually none. */
  readonly strategies: readonly string[]
}

const DIRECTIVE = '$patch'
const RETAIN_KEYS = '$retainKeys'
const DELETE_PRIMITIVES = '$deleteFromPrimitiveList'
const SET_ORDER = '$setElementOrder'

/** Both arguments are used up. */
export function applyStrategicPatch(original: JsonObject, patch: JsonObject, schema: MergeSchema): JsonObject {
  return mergeObject(original, patch, schema)
}

function mergeObject(original: JsonObject, patch: JsonObject, schema: MergeSchema): JsonObject {
  const directive = patch.get(DIRECTIVE)
  if (directive === 'replace') {
    patch.delete(DIRECTIVE)
    return patch
  }
  if (directive === 'delete') return new Map()
  if (directive !== undefined) throw unknownDirective(directive, patch)
  retainKeys(original, patch)
  mergeOrderedLists(original, patch, schema)
  for (const [key, value] of patch) {
    if (key.startsWith(DELETE_PRIMITIVES)) deletePrimitives(original, bareKey(key, DELETE_PRIMITIVES), value)
    else mergeMember(original, key, value, schema)
  }
  return original
}

function mergeMember(original: JsonObject, key: string, value: Json, schema: MergeSchema): void {
  if (value === null) {
    original.delete(key)
    return
  }
  const current = original.get(key)
  if (current instanceof Map && value instanceof Map) {
    const property = lookUp(schema, key)
    original.set(key, strategyOf(property) === 'replace' ? value : mergeObject(current, value, property))
    return
  }
  if (Array.isArray(current) && Array.isArray(value)) {
    const { list, element } = lookUpList(schema, key)
    original.set(key, mergeList(current, value, list, element))
    return
  }
  dropNulls(value)
  const kept = withoutDirectives(value)
  if (kept === undefined) original.delete(key)
  else original.set(key, kept)
}

function unknownDirective(directive: Json, object: JsonObject): Error {
  const shown = typeof directive === 'string' ? directive : `%!s(${goType(directive)}=${goValue(directive)})`
  return internal(`unknown patch type: ${shown} in map: ${goValue(object)}`)
}

function lookUp(schema: MergeSchema, key: string): MergeSchema {
  const property = schema.property(key)
  if (property !== undefined) return property
  if (schema.name === 'map') throw internal('merging an object in json but data type is not struct, instead is: map')
  throw internal(`unable to find api field in struct ${schema.name} for the json field ${quoted(key)}`)
}

function lookUpList(schema: MergeSchema, key: string): { list: MergeSchema; element: MergeSchema } {
  const list = lookUp(schema, key)
  const element = list.element()
  if (element === undefined) throw internal('expected slice or array type, but got: struct')
  return { list, element }
}

/** retainKeys only tells clients which directive to send; merging obeys the other strategy. */
function strategyOf(schema: MergeSchema): string | undefined {
  return schema.strategies.find((strategy) => strategy !== 'retainKeys')
}

function bareKey(key: string, prefix: string): string {
  if (key.startsWith(`${prefix}/`)) return key.slice(prefix.length + 1)
  throw badRequest(
    prefix === SET_ORDER ? 'invalid patch format of setElementOrder list' : 'invalid patch format of primitive list',
  )
}

/** $retainKeys: every other member goes, and the patch may not set one it does not retain. */
function retainKeys(original: JsonObject, patch: JsonObject): void {
  const list = patch.get(RETAIN_KEYS)
  if (list === undefined) return
  patch.delete(RETAIN_KEYS)
  if (!Array.isArray(list)) throw badRequest('invalid patch format of retainKeys')
  const retained = new Set(list)
  for (const [key, value] of patch) {
    if (value === null || key.startsWith(DELETE_PRIMITIVES) || key.startsWith(SET_ORDER)) continue
    if (!retained.has(key)) throw badRequest('invalid patch format of retainKeys')
  }
  for (const key of original.keys()) if (!retained.has(key)) original.delete(key)
}

/** Merges every list that comes with a $setElementOrder, and takes both out of the patch. */
function mergeOrderedLists(original: JsonObject, patch: JsonObject, schema: MergeSchema): void {
  for (const [directive, order] of [...patch]) {
    if (!directive.startsWith(SET_ORDER)) continue
    patch.delete(directive)
    const named = asList(order)
    const key = bareKey(directive, SET_ORDER)
    const current = original.get(key)
    const change = patch.get(key)
    const before = current === undefined ? [] : asList(current)
    const changes = change === undefined ? [] : asList(change)
    const { list, element } = lookUpList(schema, key)
    checkOrder(changes, named, list.mergeKey)
    if (current === undefined && change === undefined) continue
    let merged = before
    let place = before
    if (current === undefined) merged = withoutDirectives(changes) as Json[]
    else if (change !== undefined) {
      merged = mergeList(before, changes, list, element)
      place = placesAfter(before, changes, list)
    }
    elementType(before, changes)
    original.set(key, inOrder(merged, named, place, list.mergeKey))
    patch.delete(key)
  }
}

function placesAfter(before: Json[], changes: Json[], list: MergeSchema): Json[] {
  if (list.mergeKey === undefined || strategyOf(list) !== 'merge') return before
  const { changes: added, deleted, replaced } = directivesOf(changes as JsonObject[], list.mergeKey)
  return orderAfterMerge(before, [...deleted], replaced ? [] : added, list.mergeKey)
}

function asList(value: Json): Json[] {
  if (!Array.isArray(value)) throw wrongType('[]interface {}', value)
  return value
}

/** The patch's items must be named in $setElementOrder, in the same order; deletions need not be. */
function checkOrder(changes: Json[], named: Json[], mergeKey: string | undefined): void {
  if (changes.length === 0 || named.length === 0) return
  const idOf = (element: Json): string => identity(mergeKey === undefined ? element : mergeValue(element, mergeKey))
  let at = 0
  for (const element of changes) {
    if (element instanceof Map && element.has(DIRECTIVE)) continue
    const id = idOf(element)
    while (at < named.length && idOf(named[at]!) !== id) at++
    if (at++ < named.length) continue
    const lists = `${goValue(changes)}\n doesn't match ${SET_ORDER} list:\n${goValue(named)}\n`
    throw internal(`The order in patch list:\n${lists}`)
  }
}

function mergeList(original: Json[], patch: Json[], list: MergeSchema, element: MergeSchema): Json[] {
  if (strategyOf(list) !== 'merge') return patch
  if (original.length === 0 && patch.length === 0) return original
  if (elementType(original, patch) !== 'map[string]interface {}') {
    const merged = new Map([...original, ...patch].map((value) => [identity(value), value]))
    return inOrder([...merged.values()], patch, original, undefined)
  }
  const mergeKey = list.mergeKey
  if (mergeKey === undefined) throw internal(`cannot merge lists without merge key for ${kindOf(element)}`)
  return mergeByKey(original as JsonObject[], patch as JsonObject[], mergeKey, element)
}

function kindOf(schema: MergeSchema): string {
  return schema.name === 'map' ? 'map' : 'struct'
}

function mergeByKey(original: JsonObject[], patch: JsonObject[], mergeKey: string, schema: MergeSchema): Json[] {
  const { changes, deleted, replaced } = directivesOf(patch, mergeKey)
  if (replaced) return inOrder(changes, [], changes, mergeKey)
  const before = original.filter((item) => !item.has(mergeKey) || !deleted.has(identity(item.get(mergeKey)!)))
  const merged = [...before]
  const places = new Map<string, number>()
  merged.forEach((item, index) => {
    const id = item.has(mergeKey) ? identity(item.get(mergeKey)!) : undefined
    if (id !== undefined && !places.has(id)) places.set(id, index)
  })
  for (const item of changes) {
    const id = identity(mergeValue(item, mergeKey))
    const place = places.get(id)
    if (place === undefined) places.set(id, merged.push(item) - 1)
    else merged[place] = mergeObject(merged[place]!, item, schema)
  }
  return inOrder(merged, changes, before, mergeKey)
}

/** Splits a patch list into its changes, the keys to delete, and whether it replaces the list. */
function directivesOf(patch: JsonObject[], mergeKey: string) {
  const changes: JsonObject[] = []
  const deleted = new Set<string>()
  let replaced = false
  for (const item of patch) {
    const directive = item.get(DIRECTIVE)
    if (directive === undefined) changes.push(item)
    else if (directive === 'replace') replaced = true
    else if (directive === 'merge') throw internal('merging lists cannot yet be specified in the patch')
    else if (directive !== 'delete') throw unknownDirective(directive, item)
    else if (!item.has(mergeKey)) throw noMergeKey(item, mergeKey)
    else deleted.add(identity(item.get(mergeKey)!))
  }
  return { changes, deleted, replaced }
}

function deletePrimitives(original: JsonObject, key: string, value: Json): void {
  if (value === null) original.delete(key)
  const current = original.get(key)
  if (!Array.isArray(current) || !Array.isArray(value) || current.length + value.length === 0) return
  if (elementType(current, value) === 'map[string]interface {}') {
    throw internal('cannot merge lists without merge key for struct')
  }
  const deleted = new Set(value.map(identity))
  original.set(
    key,
    current.filter((element) => !deleted.has(identity(element))),
  )
}

/** All elements of both lists must be of one type, and not lists. */
function elementType(...lists: Json[][]): string {
  const types = lists.flat(1).map((element) => goType(element))
  const [first] = types
  if (first === undefined) throw internal('no elements in any of the given slices')
  if (first === '[]interface {}') throw unprocessable('lists of lists are not supported')
  if (types.every((type) => type === first)) return first
  throw internal(`list element types are not identical: ${goValue(lists)}`)
}

function dropNulls(value: Json): void {
  if (Array.isArray(value)) value.forEach(dropNulls)
  if (!(value instanceof Map)) return
  for (const [key, member] of value) {
    if (member === null) value.delete(key)
    else dropNulls(member)
  }
}

/** Objects with a $patch are no content; undefined when `value` itself is one. */
function withoutDirectives(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((element) => element !== undefined)
  if (!(value instanceof Map)) return value
  if (value.has(DIRECTIVE)) return undefined
  for (const [key, member] of value) {
    const kept = withoutDirectives(member)
    if (kept === undefined) value.delete(key)
    else value.set(key, kept)
  }
  return value
}
