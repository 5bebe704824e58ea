/** What one owner has, and what is known of the versions of the kind it writes. */

import type { JsonObject } from '../../kube/json/json.ts'
import type { FieldSet } from './fieldset.ts'
import type { FieldType } from './fieldtype.ts'

/** What one owner has, in the words of one version; `applied`: by apply, not by any other write. */
export type Owned = { readonly set: FieldSet; readonly apiVersion: string; readonly applied: boolean }

/** By the text that an owner is known by. */
export type Owners = ReadonlyMap<string, Owned>

/** The versions of one kind. */
export type Versions = {
  /** Undefined: there is no such version (any more). */
  typeOf(apiVersion: string): FieldType | undefined
  /** `tree`, which is of version `from`, as version `to`, both of which have a type. Never changes the tree. */
  convert(tree: JsonObject, from: string, to: string): JsonObject
  /** What remains of a set when the fields are left out that a write in this version does not touch; absent: all. */
  filter?(fields: FieldSet, apiVersion: string): FieldSet
}

/** Of a version that is known to exist. */
export function typeFor(versions: Versions, apiVersion: string): FieldType {
  const type = versions.typeOf(apiVersion)
  if (type === undefined) throw new RangeError(`no type of version ${apiVersion}`)
  return type
}
