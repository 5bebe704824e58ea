/**
 * The local write engine: what kube-apiserver's registry does between a decoded request and its storage. A write takes
 * the lock of its key, reads the committed object, computes the next one (defaults, merge, preconditions, validation,
 * finalizers) and commits it; only then does it answer. Nothing here knows of sockets, so a standalone server and an
 * edge without its cloud use the same engine. One file per verb (create, update, patch, applying, delete), `writer.ts` in
 * front. Who owns which field is kept by `ownership.ts` over the pure part in `apply/`.
 *
 * Objects are handled as trees (kube/json) and kept as the bytes of a list item: built-ins without kind and apiVersion,
 * custom resources with those of their storage version. What the engine needs from its surroundings is declared here
 * and supplied by the composition that builds it.
 */

import type { Caller } from '../kube/caller.ts'
import type { FieldSelector } from '../kube/fieldselector.ts'
import type { JsonObject } from '../kube/json/json.ts'
import type { PatchKind } from '../kube/patch/patch.ts'
import type { GroupVersionResource, Resource } from '../kube/resource.ts'
import type { Catalog, Cataloged } from '../kube/schema/catalog.ts'
import type { LabelSelector } from '../kube/selector.ts'
import type { Status } from '../kube/status.ts'

/** An object at a committed version (0 for what a dry run made). */
export type StoredObject = {
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly version: number
  readonly bytes: Buffer
}

/** One resource's objects as the writer sees them: committed state only. */
export interface Objects {
  /** The newest committed version of the whole store. */
  readonly version: number
  get(key: string): StoredObject | undefined
  /** Whether it is there with bytes that are damaged: `get` throws for such a one. */
  isDamaged(key: string): boolean
  /** Ordered by key; undefined as namespace means all. */
  select(namespace: string | undefined, labels?: LabelSelector, fields?: FieldSelector): readonly StoredObject[]
  /**
   * Assigns the next version, lets `build` print the bytes for it, commits durably, publishes, then resolves. Rejects
   * with a StatusError when the disk refuses.
   */
  put(key: string, build: (version: number) => Buffer): Promise<StoredObject>
  /** Resolves with the last state, its resourceVersion being the version of the removal. */
  remove(key: string): Promise<StoredObject>
}

/** In which interest they live is not the engine's concern. */
export type ObjectsOf = (resource: GroupVersionResource) => Objects

/** What is served, as far as writing depends on it: the end of a namespace has to visit all of it. */
export type Writable = Catalog<Pick<Cataloged, 'resource' | 'definition'>>

export type BodyFormat = 'json' | 'yaml' | 'protobuf'

export type WriteRequest = {
  readonly resource: Resource
  /** '' for the object itself. */
  readonly subresource: string
  readonly namespace: string
  /** '' for create and deletecollection. */
  readonly name: string
  readonly query: (name: string) => string | undefined
  readonly body: Buffer | undefined
  readonly format: BodyFormat
  /** What the content type of a PATCH said. */
  readonly patchKind?: PatchKind | 'apply'
  /** The header of that name: its first word owns what a request without a field manager writes. */
  readonly userAgent?: string
  readonly caller: Caller
  /** Whose turns it takes where it is much. */
  readonly who?: string
}

/** Exactly one of item, status, list and review is there. */
export type WriteResult = {
  readonly code: number
  readonly item?: StoredObject
  readonly status?: Status
  /** The objects as they were before a deletecollection, with the version of that reading. */
  readonly list?: { readonly version: number; readonly items: readonly StoredObject[] }
  /** A complete object that is never stored: a review, a Scale. */
  readonly review?: JsonObject
  readonly warnings: readonly string[]
}
