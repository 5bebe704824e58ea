/**
 * The catalog: which resources exist, and what reading and writing each takes. All parts ask it the same, however it is fed:
 * an authority's from facts and its own definitions (`endpoint/owncatalog`), a mirror's from discovery and the cloud's
 * definitions (`mirror/documents/catalog`). What a definition says of a resource is read here for both.
 */
import { type SelectableFields, selectableFields } from '../fields.ts'
import type { JsonObject } from '../json/json.ts'
import type { Resource } from '../resource.ts'
import type { ScalePaths } from './scaled.ts'
import type { Schema } from './schema.ts'
import { type DefinitionVersion, definitionResources, definitionVersions, type PrinterColumn } from './versions.ts'

export interface Catalog<T extends { readonly resource: Resource }> {
  find(group: string, version: string, plural: string): T | undefined
  /** Everything served, built-in and custom. */
  resources(): Iterable<Resource>
}

/** One served version of a resource. */
export type Cataloged = {
  readonly resource: Resource
  readonly fields: SelectableFields
  /** A definition's own columns. */
  readonly columns: readonly PrinterColumn[] | undefined
  /** What clients of a deprecated version are warned with. */
  readonly deprecation: string | undefined
  /** Of a custom resource, where it can be written. */
  readonly definition?: Definition | undefined
}

/** What writing one served version of a custom resource takes. */
export type Definition = {
  /** The version in which objects are kept, like `v1`. */
  readonly storageVersion: string
  readonly schema: Schema | undefined
  /** The schema of the version objects are kept in, where this is another one. */
  readonly storageSchema?: Schema
  /** Whether the status subresource is on. */
  readonly status: boolean
  readonly scale?: ScalePaths
  /** Paths as field selectors spell them: `spec.color`. */
  readonly selectableFields: readonly string[]
  /** The definition is being deleted: nothing new is accepted. */
  readonly terminating: boolean
}

/** What a definition adds to the catalog, version by version; of `versions` each schema is one object for all readers. */
export function definedResources(
  crd: JsonObject,
  versions = definitionVersions(crd),
): (Cataloged & { readonly version: DefinitionVersion })[] {
  return definitionResources(crd).flatMap((resource) => {
    const version = versions.find(({ name }) => name === resource.version)
    if (version === undefined) return []
    const { selectableFields: selectable, columns: all, deprecation } = version
    const columns = all.length === 0 ? undefined : all
    return { resource, fields: selectableFields(resource, selectable), columns, deprecation, version }
  })
}

/** By group, version and plural: a lookup makes no new string. */
export class ByResource<T> {
  readonly #groups = new Map<string, Map<string, Map<string, T>>>()

  get(group: string, version: string, plural: string): T | undefined {
    return this.#groups.get(group)?.get(version)?.get(plural)
  }

  set({ group, version, resource }: Resource, value: T): void {
    const versions = inserted(this.#groups, group, () => new Map<string, Map<string, T>>())
    inserted(versions, version, () => new Map<string, T>()).set(resource, value)
  }

  delete({ group, version, resource }: Resource): void {
    const versions = this.#groups.get(group)
    const plurals = versions?.get(version)
    plurals?.delete(resource)
    if (plurals?.size === 0) versions?.delete(version)
    if (versions?.size === 0) this.#groups.delete(group)
  }

  /** By group and version. */
  get groups(): ReadonlyMap<string, ReadonlyMap<string, ReadonlyMap<string, T>>> {
    return this.#groups
  }
}

/** What stands under the key, made where nothing does. */
export function inserted<K, T>(map: Map<K, T>, key: K, make: () => T): T {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
