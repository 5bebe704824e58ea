/**
 * A resource as served: what discovery says about it and what reading and writing need to know. Names and kinds come
 * from the generated facts of Kubernetes (builtin.jsonl) or from a CRD, never from English plural rules.
 */

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection'

export type Subresource = {
  /** `status`, `scale`, `binding` … */
  readonly name: string
  readonly verbs: readonly Verb[]
  /** The kind that requests and answers carry; the parent's own for `status`. */
  readonly group: string
  readonly version: string
  readonly kind: string
}

export type Resource = {
  readonly group: string
  readonly version: string
  /** The plural: `deployments`. */
  readonly resource: string
  readonly kind: string
  readonly listKind: string
  readonly singular: string
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly Subresource[]
  /** As discovery prints it; absent where the real server has none. */
  readonly storageVersionHash?: string
  /**
   * Which interest its objects live in: `group/plural`. Two resources share one where they are two spellings of the same
   * objects (`/events` for core and events.k8s.io, every version of a CRD).
   */
  readonly interest: string
  /** Custom resources print apiVersion and kind inside list items; built-ins do not. */
  readonly custom: boolean
}

export type GroupResource = Pick<Resource, 'group' | 'resource'>
export type GroupVersionResource = GroupResource & Pick<Resource, 'version'>

export function isResource(one: GroupResource, other: GroupResource): boolean {
  return one.resource === other.resource && one.group === other.group
}

/** `pods`, `deployments.apps`: one text for the same objects, in whichever version, and events in either of their groups. */
export function groupResource({ group, resource }: GroupResource): string {
  return group === '' || (resource === 'events' && group === 'events.k8s.io') ? resource : `${resource}.${group}`
}

/** `apps/v1`, or `v1` in the core group. */
export function apiVersion(of: { readonly group: string; readonly version: string }): string {
  return of.group === '' ? of.version : `${of.group}/${of.version}`
}

/** The storage key within an interest: `namespace/name`, or `name`. Lists are ordered by it, bytewise. */
export function objectKey(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`
}
