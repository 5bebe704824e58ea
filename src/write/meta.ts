/** Object metadata: reading it, and the parts of it that only the server writes. */

import { isNumber, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'

/** Go's order, in which built-ins print their metadata. Everything else a client may send is dropped. */
export const metaFields = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
  'managedFields',
] as const

export type MetaField = (typeof metaFields)[number]

/** The metadata of a tree; an empty one is put there if it has none. */
export function metaOf(tree: JsonObject): JsonObject {
  const meta = tree.get('metadata')
  if (isObject(meta)) return meta
  const made: JsonObject = new Map()
  tree.set('metadata', made)
  return made
}

export function nameOf(tree: JsonObject): string {
  return text(tree, 'metadata', 'name')
}

export function listOf(meta: JsonObject, field: MetaField): readonly Json[] {
  const value = meta.get(field)
  return Array.isArray(value) ? value : []
}

export function finalizersOf(meta: JsonObject): string[] {
  return listOf(meta, 'finalizers').filter((name) => typeof name === 'string')
}

export function setFinalizers(meta: JsonObject, finalizers: readonly string[]): void {
  if (finalizers.length === 0) meta.delete('finalizers')
  else meta.set('finalizers', [...finalizers])
}

export function isDeleting(meta: JsonObject): boolean {
  return text(meta, 'deletionTimestamp') !== ''
}

/** A whole number, or undefined when it is absent. */
export function wholeOf(meta: JsonObject, field: 'generation' | 'deletionGracePeriodSeconds'): number | undefined {
  const value = meta.get(field)
  return isNumber(value) ? Number(typeof value === 'number' ? value : value.source) : undefined
}

/** Copies a field, or its absence. */
export function copyField(from: JsonObject, to: JsonObject, field: string): void {
  const value = from.get(field)
  if (value === undefined) to.delete(field)
  else to.set(field, value)
}

/** RFC 3339 in whole seconds, as metav1.Time prints. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** What a client may not decide about a new object. */
export function wipeSystemFields(meta: JsonObject): void {
  for (const field of ['creationTimestamp', 'uid', 'deletionTimestamp', 'deletionGracePeriodSeconds'])
    meta.delete(field)
}

export function raiseGeneration(meta: JsonObject, from: JsonObject = meta): void {
  meta.set('generation', (wholeOf(from, 'generation') ?? 0) + 1)
}

const duplicateOwners =
  '.metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: '

/** Drops owner references that stand there twice; answers the warning the client gets. */
export function dropDuplicateOwners(meta: JsonObject, same: (a: Json, b: Json) => boolean): string[] {
  const owners = listOf(meta, 'ownerReferences')
  const kept: Json[] = []
  const doubles: string[] = []
  for (const owner of owners) {
    if (kept.some((other) => same(other, owner))) doubles.push(text(owner, 'uid'))
    else kept.push(owner)
  }
  if (doubles.length === 0) return []
  meta.set('ownerReferences', kept)
  return [duplicateOwners + doubles.join(', ')]
}
