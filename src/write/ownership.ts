/**
 * Ownership around writes: every write marks in metadata.managedFields what it changed. Here the pure part (apply/) meets
 * the engine; what an apply does with the marks is in merging.ts, the types and versions of a kind in kindversions.ts.
 */

import { equalJson, field, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { apiVersion } from '../kube/resource.ts'
import {
  isCleared,
  isOwn,
  type Managed,
  ManagedFault,
  parseManaged,
  printManaged,
  unmanaged,
} from './apply/managed/managed.ts'
import { recordUpdate } from './apply/managed/record.ts'
import type { Versions } from './apply/owner.ts'
import { isBuiltinKind, type KindName } from './components.ts'
import type { Engine, RequestScope } from './engine.ts'
import { builtinType, versionsFor } from './kindversions.ts'
import { metaOf, timestamp } from './meta.ts'
import { inVersion } from './shape.ts'
import { nothingOf, withZeros } from './zeros.ts'

/** Whose write it is, and through which subresource. */
export type FieldManager = { readonly manager: string; readonly subresource: string }

/** Who owns what after a write. `old` is the object as it is, undefined for a new one; `next` as it shall be. */
export function ownersAfter(
  engine: Engine,
  scope: RequestScope,
  mark: FieldManager,
  old: JsonObject | undefined,
  next: JsonObject,
): Managed {
  const { resource: kind } = scope
  const meta = metaOf(next)
  const held = field(old, 'metadata', 'managedFields')
  const managed = mark.subresource === '' ? sentOrHeld(meta.get('managedFields'), held) : readable(held)
  const versions = versionsFor(engine, scope, mark.subresource)
  const before = old === undefined ? undefined : inVersion(scope, old)
  return recordIn(engine, { kind, versions, mark }, managed, before, next)
}

export type MarkedWrite = { readonly kind: KindName; readonly versions: Versions; readonly mark: FieldManager }

/** The same for any kind, from these owners: who owns what of `next`. */
export function recordIn(
  engine: Pick<Engine, 'clock' | 'log'>,
  { kind, versions, mark }: MarkedWrite,
  managed: Managed,
  old: JsonObject | undefined,
  next: JsonObject,
): Managed {
  // An object whose owners were never kept does not begin to have them with a change.
  if (managed.owners.size === 0 && text(old, 'metadata', 'uid') !== '') return unmanaged
  const live = old === undefined ? nothingOf(kind) : liveOf(kind, old)
  const now = timestamp(engine.clock.now())
  try {
    const admitted = isOwn(field(old, 'metadata', 'managedFields'))
    const decoded = isBuiltinKind(kind)
    const given = { ...mark, live, managed, versions, apiVersion: apiVersion(kind), now, admitted, decoded }
    return recordUpdate({ ...given, next: withZeros(withoutManaged(next), kind) })
  } catch (error) {
    // A write is never refused for its marks; wrong ones would be worse than none.
    const version = apiVersion(kind)
    engine.log.warn('ownership.lost', { kind: kind.kind, version, error: String(error) })
    return unmanaged
  }
}

/** Marks a second write in the same step: the server's own, behind the one whose marks `next` already has. */
export function recordOwn(
  engine: Engine,
  scope: RequestScope,
  mark: FieldManager,
  old: JsonObject,
  next: JsonObject,
): void {
  const { resource: kind } = scope
  const managed = readable(metaOf(next).get('managedFields'))
  const writing = { kind, versions: versionsFor(engine, scope, mark.subresource), mark }
  setManaged(metaOf(next), recordIn(engine, writing, managed, old, next), kind.custom)
}

/** Marks a built-in object that is answered and never stored. */
export function recordNew(
  engine: Pick<Engine, 'clock' | 'log'>,
  kind: KindName,
  mark: FieldManager,
  next: JsonObject,
): void {
  const typeOf = (version: string) => (version === apiVersion(kind) ? builtinType(kind) : undefined)
  const versions: Versions = { typeOf, convert: (tree) => tree }
  const managed = sentOrHeld(metaOf(next).get('managedFields'), undefined)
  const writing = { kind, versions, mark }
  setManaged(metaOf(next), recordIn(engine, writing, managed, undefined, next), false)
}

/** Clients that know nothing of managedFields leave them out; that must not lose them. */
function sentOrHeld(sent: Json | undefined, held: Json | undefined): Managed {
  if (isCleared(sent)) return unmanaged
  // A client that read the object before writing it sends what is there.
  if (sent !== undefined && held !== undefined && equalJson(sent, held)) return readable(held)
  const managed = readable(sent)
  return managed.owners.size > 0 ? managed : readable(held)
}

function readable(entries: Json | undefined): Managed {
  try {
    return parseManaged(entries)
  } catch (error) {
    if (error instanceof ManagedFault) return unmanaged
    throw error
  }
}

export function setManaged(meta: JsonObject, managed: Managed, custom: boolean): void {
  const printed = printManaged(managed, custom)
  if (printed === undefined) meta.delete('managedFields')
  else meta.set('managedFields', printed)
}

/** The object as it is, or as it is before there is anything in it. */
export function liveOf(kind: KindName, old: JsonObject | undefined): JsonObject {
  if (old !== undefined) return withZeros(withoutManaged(old), kind)
  const named = new Map<string, Json>([
    ['kind', kind.kind],
    ['apiVersion', apiVersion(kind)],
  ])
  return withZeros(named, kind)
}

export function withoutManaged(tree: JsonObject): JsonObject {
  const meta = tree.get('metadata')
  if (!isObject(meta) || !meta.has('managedFields')) return tree
  const rest = new Map(meta)
  rest.delete('managedFields')
  return new Map(tree).set('metadata', rest)
}
