/** What every verb works with: the parts given to the writer, and the facts of the resource at hand. */

import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { WriteRules } from '../kube/builtin.ts'
import type { JsonObject } from '../kube/json/json.ts'
import { type GroupResource, type GroupVersionResource, groupResource, type Resource } from '../kube/resource.ts'
import type { Definition } from '../kube/schema/catalog.ts'
import type { KnownOwners } from './apply/managed/known.ts'
import type { Entering } from './entering.ts'
import type { KeyLock } from './lock.ts'
import { rulesOf } from './rules.ts'
import type { Objects, ObjectsOf, Writable, WriteRequest } from './write.ts'

export type Engine = {
  readonly objectsOf: ObjectsOf
  readonly catalog: Writable
  readonly clock: Clock
  readonly log: Log
  readonly lock: KeyLock
  /** A whole number below its argument. */
  readonly random: (below: number) => number
  readonly newUid: () => string
  /** `began`: a namespace or a definition was deleted; otherwise something is gone that one may have waited for. */
  readonly wakeSweeper: (began: boolean) => void
  readonly entering: Entering
  readonly known: KnownOwners
  readonly guard: WriteGuard | undefined
}

/** Throws the refusal of an object as it shall be, in the place of `old`; it is asked before anything else is looked at. */
export type WriteGuard = (request: WriteRequest, next: JsonObject, old: JsonObject | undefined) => void

/** One resource as a verb sees it. */
export type RequestScope = {
  readonly resource: Resource
  readonly objects: Objects
  readonly rules: WriteRules
  readonly definition: Definition | undefined
  /** The definition of the same resource in another version, if that is served. */
  readonly sibling: (version: string) => Definition | undefined
}

export function scopeOf(engine: Engine, resource: Resource): RequestScope {
  const { catalog, objectsOf } = engine
  const definition = definitionOf(engine, resource)
  const sibling = (version: string) => catalog.find(resource.group, version, resource.resource)?.definition
  return { resource, objects: objectsOf(resource), rules: rulesOf(resource, definition), definition, sibling }
}

/** As it is now; undefined for built-ins. */
export function definitionOf({ catalog }: Engine, { group, version, resource }: Resource): Definition | undefined {
  return catalog.find(group, version, resource)?.definition
}

/** The same objects share their locks, whichever version they are written through. */
export function lockKey(resource: GroupResource, key: string): string {
  return `${groupResource(resource)}\n${key}`
}

// The resources with rules of their own. What their interests are called is up to the surroundings: an edge spells them
// otherwise than an authority.
export const namespaces = core('namespaces')
export const pods = core('pods')
export const secrets = core('secrets')
export const configMaps = core('configmaps')
export const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }

export function core(resource: string): GroupVersionResource {
  return { group: '', version: 'v1', resource }
}
