/**
 * Who owns which field of an object. Every write leaves a mark in metadata.managedFields: an *owner* is a field manager
 * with the operation it used (Apply or Update), the version it wrote in and the fields that are its. An update takes
 * over what it changes. An apply states all that its manager wants to own: the configuration is laid over the object
 * (mergevalue), what the manager applied before and has no owner now is taken away (prune), and a field that another
 * owner has with another value is a conflict, unless the apply is forced. Everything up to here is pure: trees and
 * owners in, trees and owners out, none of them changed. How managedFields are read, printed and timed is added by
 * managed and its neighbours.
 *
 * Fields are sets of paths (fieldset, printed as FieldsV1 by fieldsv1). Whether a list is one field, a set or a map by
 * keys, and a map one field or many, its type says (fieldtype, read from OpenAPI by typesfrom).
 */

import { bytewise } from '../../kube/json/goformat.ts'
import { equalJson, type JsonObject } from '../../kube/json/json.ts'
import { admit, admitStored } from './admit.ts'
import { compareValues, type FieldComparison } from './comparevalues.ts'
import { FieldSet } from './fieldset.ts'
import { fieldsOf } from './fieldsof.ts'
import { mergeValues } from './mergevalue.ts'
import { type Owned, type Owners, typeFor, type Versions } from './owner.ts'
import type { Path } from './pathelement.ts'
import { pruneFields } from './prune.ts'
import { reconcileFields } from './reconcile.ts'

export type Ownership = {
  /** The stored object as version `apiVersion` has it, with apiVersion and kind, without metadata.managedFields. */
  readonly live: JsonObject
  readonly owners: Owners
  /** The manager that writes. */
  readonly owner: string
  /** The version of the request. */
  readonly apiVersion: string
  readonly versions: Versions
  /** `live` has been looked at before, when it was written. */
  readonly admitted?: boolean
  /** Both objects have been decoded into their types: what is left to find, comparing them finds. */
  readonly decoded?: boolean
}

export type Conflict = { readonly owner: string; readonly path: Path }

/** Fields that others own with other values: by owner, then in the order of the fields. */
export class ApplyConflict extends Error {
  readonly conflicts: readonly Conflict[]

  constructor(conflicts: readonly Conflict[]) {
    super('the configuration conflicts with other owners')
    this.conflicts = conflicts
  }
}

/**
 * The owners after a write that was not an apply: `next` is the object as it will be stored. Throws TypeFault for
 * objects whose fields cannot be told apart.
 */
export function updateOwners({ next, ...given }: Ownership & { readonly next: JsonObject }): Owners {
  const { owner, apiVersion, versions } = given
  const type = typeFor(versions, apiVersion)
  if (given.decoded !== true) {
    admitStored(next, type)
    if (given.admitted !== true) admitStored(given.live, type)
  }
  const owners = reconcileOwners(given)
  const changes = takeOver({ ...given, next, owners, force: true })
  const held = owners.get(owner)?.set ?? FieldSet.of()
  const fields = held.difference(changes.removed).union(changes.modified).union(changes.added)
  settle(owners, owner, { set: versions.filter?.(fields, apiVersion) ?? fields, apiVersion, applied: false })
  return owners
}

export type Applied = {
  /** Shares parts with the object and the configuration. Undefined: the object is what it was. */
  readonly tree: JsonObject | undefined
  readonly owners: Owners
}

/** Throws TypeFault for a configuration that is not of its type, ApplyConflict for one that others stand against. */
export function applyConfiguration({
  config,
  force,
  ...given
}: Ownership & { readonly config: JsonObject; readonly force: boolean }): Applied {
  const { live, owner, apiVersion, versions } = given
  const type = typeFor(versions, apiVersion)
  admit(config, type)
  admitStored(live, type)
  const owners = reconcileOwners(given)
  const merged = mergeValues(live, config, type) as JsonObject
  const last = owners.get(owner)
  const named = fieldsOf(config, type)
  const set = versions.filter?.(named, apiVersion) ?? named
  owners.set(owner, { set, apiVersion, applied: true })
  const next = pruneFields({ merged, apiVersion, last, applied: set, owners, versions })
  takeOver({ ...given, next, owners, force })
  if (set.isEmpty) owners.delete(owner)
  return { tree: equalJson(live, next) ? undefined : next, owners }
}

/** With sets that fit the types of now. Owners in versions that are gone own nothing any more. */
function reconcileOwners({ owners, versions }: Ownership): Map<string, Owned> {
  const known = new Map<string, Owned>()
  for (const [key, owned] of owners) {
    const type = versions.typeOf(owned.apiVersion)
    if (type === undefined) continue
    const set = reconcileFields(owned.set, type)
    known.set(key, set === owned.set ? owned : { ...owned, set })
  }
  return known
}

type Takeover = Ownership & {
  readonly next: JsonObject
  readonly owners: Map<string, Owned>
  readonly force: boolean
}

/** Takes from the others what the write changes; answers with the changes in the writer's version. */
function takeOver({ live, next, owner, apiVersion, owners, versions, force }: Takeover): FieldComparison {
  const comparisons = new Map<string, FieldComparison>()
  const changesIn = (version: string): FieldComparison => {
    let found = comparisons.get(version)
    if (found === undefined) {
      const as = (tree: JsonObject) => (version === apiVersion ? tree : versions.convert(tree, apiVersion, version))
      found = filtered(compareValues(as(live), as(next), typeFor(versions, version)), version, versions)
      comparisons.set(version, found)
    }
    return found
  }
  const lost = new Map<string, FieldSet>()
  for (const [key, other] of owners) {
    if (key === owner) continue
    const { modified, added } = changesIn(other.apiVersion)
    lost.set(key, other.set.intersection(modified.union(added)))
  }
  if (!force) refuseConflicts(lost)
  for (const [key, fields] of lost) {
    const other = owners.get(key)!
    const set = other.set.difference(fields).difference(changesIn(other.apiVersion).removed)
    settle(owners, key, { ...other, set })
  }
  return changesIn(apiVersion)
}

function filtered(
  { removed, modified, added }: FieldComparison,
  apiVersion: string,
  versions: Versions,
): FieldComparison {
  const keep = (fields: FieldSet) => versions.filter?.(fields, apiVersion) ?? fields
  return { removed: keep(removed), modified: keep(modified), added: keep(added) }
}

/** Of all paths together: each conflict is told with its whole path, and a path can be as long as a body. */
const conflictTextMax = 1024 * 1024

function refuseConflicts(lost: ReadonlyMap<string, FieldSet>): void {
  const conflicts: Conflict[] = []
  let size = 0
  for (const [owner, fields] of [...lost].sort(([a], [b]) => bytewise(a, b))) {
    for (const path of fields.paths()) {
      conflicts.push({ owner, path })
      for (const { text } of path) size += text.length
      if (size > conflictTextMax) throw new ApplyConflict(conflicts)
    }
  }
  if (conflicts.length > 0) throw new ApplyConflict(conflicts)
}

/** A manager that owns nothing is no owner. */
function settle(owners: Map<string, Owned>, key: string, owned: Owned): void {
  if (owned.set.isEmpty) owners.delete(key)
  else owners.set(key, owned)
}
