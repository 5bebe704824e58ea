/**
 * The order of a merged list in strategic merge patch: items the patch names stand in the patch's order, the others in
 * the order they had, and the two are interleaved by where the object had them before.
 */
import { goType, goValue } from '../json/goformat.ts'
import { isNumber, type Json, type JsonObject, printJson } from '../json/json.ts'
import { failure, type StatusError } from '../status.ts'

/** What two values must share to be the same to Go: the type and the value. */
export function identity(value: Json): string {
  const type = goType(value)
  if (value instanceof Map || Array.isArray(value)) return `${type} ${printJson(value)}`
  if (isNumber(value) && typeof value !== 'number') {
    return `${type} ${type === 'int64' ? BigInt(value.source) : Number(value.source)}`
  }
  return `${type} ${value}`
}

/** An error without a reason, as kube-apiserver answers where its patch code fails with a bare error. */
export function internal(message: string): StatusError {
  return failure(500, '', message)
}

export function wrongType(expected: string, actual: Json): StatusError {
  return internal(`expected a ${expected}, but received a ${goType(actual).replace('<nil>', '%!s(<nil>)')}`)
}

export function noMergeKey(element: JsonObject, mergeKey: string): StatusError {
  return internal(`map: ${goValue(element)} does not contain declared merge key: ${mergeKey}`)
}

/** The merge key's value of a list element that must be an object and have one. */
export function mergeValue(element: Json, mergeKey: string): Json {
  if (!(element instanceof Map)) throw wrongType('map[string]interface {}', element)
  const value = element.get(mergeKey)
  if (value === undefined) throw noMergeKey(element, mergeKey)
  return value
}

/**
 * Puts `merged` in order: `named` is what decides (the patch list, or $setElementOrder), `before` the list as the object
 * had it. Without a merge key the elements are scalars that stand for themselves.
 */
export function inOrder(merged: Json[], named: Json[], before: Json[], mergeKey: string | undefined): Json[] {
  const idOf = (element: Json): string => identity(mergeKey === undefined ? element : mergeValue(element, mergeKey))
  const namedAt = positions(named, idOf)
  const beforeAt = positions(before, idOf)
  const items = merged.map((element) => ({ element, id: idOf(element) }))
  const place = (order: Map<string, number>, id: string): number => order.get(id) ?? Number.MAX_SAFE_INTEGER
  const fromPatch = items
    .filter(({ id }) => namedAt.has(id))
    .sort((a, b) => place(namedAt, a.id) - place(namedAt, b.id))
  const others = items
    .filter(({ id }) => !namedAt.has(id))
    .sort((a, b) => place(beforeAt, a.id) - place(beforeAt, b.id))

  const result: Json[] = []
  let next = 0
  for (const item of fromPatch) {
    const limit = beforeAt.get(item.id)
    // An item the object did not have gives no hint, so it goes ahead of what is left of the others.
    for (; limit !== undefined && next < others.length; next++) {
      const other = others[next]!
      if (place(beforeAt, other.id) >= limit) break
      result.push(other.element)
    }
    result.push(item.element)
  }
  for (; next < others.length; next++) result.push(others[next]!.element)
  return result
}

/** First position of each identity. */
function positions(list: Json[], idOf: (element: Json) => string): Map<string, number> {
  const found = new Map<string, number>()
  list.forEach((element, index) => {
    const id = idOf(element)
    if (!found.has(id)) found.set(id, index)
  })
  return found
}

/**
 * The order by which kube-apiserver places items under $setElementOrder. It reads it from the object's list after having
 * merged in place, where deletions moved the rest up and new items took the slots that became free at the end. A client
 * that renames a container sees the difference, so the same slots are filled here.
 */
export function orderAfterMerge(before: Json[], deleted: string[], added: Json[], mergeKey: string): Json[] {
  const placesOf = new Map<string, number[]>()
  for (const [place, element] of before.entries()) {
    const id = identity(mergeValue(element, mergeKey))
    const places = placesOf.get(id)
    if (places === undefined) placesOf.set(id, [place])
    else places.push(place)
  }
  const { slots, used: kept } = movedUp(
    before,
    deleted.flatMap((id) => placesOf.get(id) ?? []),
  )
  const known = new Set(placesOf.keys())
  for (const id of deleted) known.delete(id)
  let used = kept
  for (const element of added) {
    const id = identity(mergeValue(element, mergeKey))
    if (known.has(id)) continue
    known.add(id)
    if (used < slots.length) slots[used++] = element
  }
  return slots
}

/**
 * A list after items were taken out one by one, each time moving up what was behind: the slot that becomes free keeps
 * what was last at that time. Only the first `used` slots are in use.
 */
function movedUp(list: Json[], places: readonly number[]): { slots: Json[]; used: number } {
  const gone = new Set<number>()
  const free: Json[] = []
  let last = list.length - 1
  for (const place of places) {
    free.push(list[last]!)
    gone.add(place)
    while (gone.has(last)) last--
  }
  const slots = list.filter((_, place) => !gone.has(place))
  return { slots: [...slots, ...free.reverse()], used: slots.length }
}
