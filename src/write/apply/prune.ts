/**
 * What an applier gives up: fields of its last configuration that are not in the new one go, unless another owner has
 * them. What would only go along with them (fields without an owner inside of what is given up) stays.
 */

import type { JsonObject } from '../../kube/json/json.ts'
import { FieldSet } from './fieldset.ts'
import { fieldsOf } from './fieldsof.ts'
import type { FieldType } from './fieldtype.ts'
import { type Owned, type Owners, typeFor, type Versions } from './owner.ts'
import { withNamedFields } from './reconcile.ts'
import { removeFields } from './removefields.ts'

type Pruning = {
  /** The object with the configuration laid over it. */
  readonly merged: JsonObject
  readonly apiVersion: string
  /** The applier as it was before. */
  readonly last: Owned | undefined
  /** What the applier owns from now on. */
  readonly applied: FieldSet
  /** All owners, the applier with its new fields. */
  readonly owners: Owners
  readonly versions: Versions
}

export function pruneFields({ merged, apiVersion, last, applied, owners, versions }: Pruning): JsonObject {
  if (last === undefined || last.set.isEmpty) return merged
  // The common case, a configuration with other values: nothing is given up.
  if (last.apiVersion === apiVersion && last.set.difference(applied).isEmpty) return merged
  const whole = new Versioned(merged, apiVersion, versions).as(last.apiVersion)
  const given = withNamedFields(last.set, whole.type)
  const owned = keepOwned(whole, whole.without(given), owners).as(last.apiVersion)
  return whole.without(whole.fields().difference(owned.fields()).intersection(given)).as(apiVersion).tree
}

/** Puts back what any owner, the applier with its new configuration among them, still owns. */
function keepOwned(merged: Versioned, pruned: Versioned, owners: Owners): Versioned {
  const byVersion = new Map<string, FieldSet>([[merged.apiVersion, FieldSet.of()]])
  for (const { apiVersion, set } of owners.values()) {
    byVersion.set(apiVersion, byVersion.get(apiVersion)?.union(set) ?? set)
  }
  let whole = merged
  let left = pruned
  // The pruned version comes first: what it puts back may be needed to convert to the others.
  for (const [apiVersion, fields] of byVersion) {
    if (fields.isEmpty) continue
    whole = whole.as(apiVersion)
    const kept = left.as(apiVersion).fields().union(withNamedFields(fields, whole.type))
    left = whole.without(whole.fields().difference(kept))
  }
  return left
}

/** An object in one of its versions. */
class Versioned {
  readonly tree: JsonObject
  readonly apiVersion: string
  readonly type: FieldType
  readonly #versions: Versions
  #fields: FieldSet | undefined

  constructor(tree: JsonObject, apiVersion: string, versions: Versions) {
    this.tree = tree
    this.apiVersion = apiVersion
    this.type = typeFor(versions, apiVersion)
    this.#versions = versions
  }

  as(apiVersion: string): Versioned {
    if (apiVersion === this.apiVersion) return this
    const converted = this.#versions.convert(this.tree, this.apiVersion, apiVersion)
    return new Versioned(converted, apiVersion, this.#versions)
  }

  /** All fields, named ones included. */
  fields(): FieldSet {
    this.#fields ??= withNamedFields(fieldsOf(this.tree, this.type), this.type)
    return this.#fields
  }

  without(fields: FieldSet): Versioned {
    if (fields.isEmpty) return this
    const left = removeFields(this.tree, fields, this.type)
    return new Versioned(left instanceof Map ? left : new Map(), this.apiVersion, this.#versions)
  }
}
