/**
 * The shape of an object after decoding, in place: unknown fields are dropped and named, nulls that mean "not set"
 * go, defaults come, metadata keeps only what metadata may hold.
 */

import { builtinSchemas } from '../kube/builtin.ts'
import { cloneJson, isObject, type Json, type JsonObject } from '../kube/json/json.ts'
import { checkBuiltin } from '../kube/schema/builtin.ts'
import { applyDefaults, fillDefaults } from '../kube/schema/defaulting.ts'
import type { Components } from '../kube/schema/gostruct.ts'
import { prune } from '../kube/schema/prune.ts'
import type { FieldError } from '../kube/status.ts'
import { componentOf, type KindName } from './components.ts'
import { fillBuiltin } from './defaults.ts'
import type { RequestScope } from './engine.ts'
import { metaFields, metaOf } from './meta.ts'
import { metaTypeFault } from './metavalidate.ts'
import { fillNulls } from './nulls.ts'

export type ShapeFindings = {
  /** A value of the wrong type, as Go's decoder reports it. */
  readonly fault?: string
  /** Paths that were dropped. */
  readonly unknown: readonly string[]
  /** Required fields that are not there. */
  readonly missing: readonly FieldError[]
}

/** `old` is what a patch was applied to: fields a newer server stored there are not ours to lose. */
export function shapeObject(scope: RequestScope, tree: JsonObject, old?: JsonObject): ShapeFindings {
  return scope.resource.custom ? shapeCustom(scope, tree) : shapeKind(scope.resource, tree, old)
}

/** The same for what an apply made: of a custom resource nothing is dropped, because nothing it does not know came in. */
export function shapeApplied(scope: RequestScope, tree: JsonObject, old: JsonObject | undefined): ShapeFindings {
  const { resource, definition } = scope
  if (!resource.custom) return shapeKind(resource, tree, old)
  const fault = metaTypeFault(tree.get('metadata'))
  if (fault !== undefined) return { fault, unknown: [], missing: [] }
  tidyCustomMeta(metaOf(tree))
  fillDefaults(tree, definition?.schema)
  return { unknown: [], missing: [] }
}

/** A custom resource that was sent as another version than the URL's: what that version does not know is named. */
export function shapeVersion({ sibling }: RequestScope, version: string, tree: JsonObject): ShapeFindings {
  const inMeta = tidyCustomMeta(metaOf(tree)).map((name) => `metadata.${name}`)
  // A version that there is not knows nothing.
  const unknown = inMeta.concat(prune(tree, sibling(version)?.schema ?? {}))
  return { unknown: unknown.sort(), missing: [] }
}

function shapeCustom({ definition }: RequestScope, tree: JsonObject): ShapeFindings {
  const fault = metaTypeFault(tree.get('metadata'))
  if (fault !== undefined) return { fault, unknown: [], missing: [] }
  let unknown = tidyCustomMeta(metaOf(tree)).map((name) => `metadata.${name}`)
  if (definition?.schema !== undefined) {
    unknown = unknown.concat(prune(tree, definition.schema))
    applyDefaults(tree, definition.schema)
  }
  return { unknown: unknown.sort(), missing: [] }
}

/** On its way to storage an object passes through its storage version, which fills in what it would have. That has no owner. */
export function fillStored({ definition }: RequestScope, tree: JsonObject): void {
  fillDefaults(tree, definition?.storageSchema)
}

/** A stored object as a version of its definition shows it: without what that version does not know. */
export function inVersion({ definition }: RequestScope, stored: JsonObject): JsonObject {
  if (definition?.storageSchema === undefined || definition.schema === undefined) return stored
  const tree = cloneJson(stored)
  prune(tree, definition.schema)
  return tree
}

/** The same for any built-in kind, be it stored or not. */
export function shapeKind(kind: KindName, tree: JsonObject, old?: JsonObject): ShapeFindings {
  const component = componentOf(kind)
  if (component === undefined) return { unknown: [], missing: [] }
  const { undecodable, unknown, errors } = checkBuiltin(tree, builtinSchemas() as Components, component, old)
  if (undecodable !== undefined) return { fault: undecodable, unknown: [], missing: [] }
  tidyMeta(metaOf(tree))
  fillStructs(tree, component)
  fillBuiltin(tree, component)
  fillNulls(tree, component)
  // Metadata is validated for all kinds alike, and a definition as a whole by its own rules.
  const missing = kind.kind === definitionKind ? [] : errors.filter(({ field }) => !inMetadata(field))
  return { unknown, missing }
}

const definitionKind = 'CustomResourceDefinition'

function inMetadata(field: string): boolean {
  return field.startsWith('metadata.')
}

/** A struct that is no pointer is printed by Go even if no client sent it; the component gives it an empty default. */
function fillStructs(tree: JsonObject, component: string): void {
  const properties = (builtinSchemas() as Components)[component]?.properties ?? {}
  for (const [key, { default: value }] of Object.entries(properties)) {
    const isStruct = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (isStruct && key !== 'status' && !tree.has(key)) tree.set(key, new Map())
  }
}

const serverOnly: ReadonlySet<string> = new Set(['selfLink'])
const kept: ReadonlySet<string> = new Set(metaFields)

/** The metadata of custom resources is a Go struct's too, but an empty list in it is as good as none. */
function tidyCustomMeta(meta: JsonObject): string[] {
  const unknown = tidyMeta(meta)
  const managed = meta.get('managedFields')
  if (Array.isArray(managed) && managed.length === 0) meta.delete('managedFields')
  for (const name of ['labels', 'annotations']) {
    const map = meta.get(name)
    if (isObject(map)) for (const [key, value] of map) if (value === null) map.set(key, '')
  }
  return unknown
}

/** Leaves what metadata may hold and is not empty; answers the unknown names. */
function tidyMeta(meta: JsonObject): string[] {
  const unknown: string[] = []
  for (const [key, value] of meta) {
    if (!kept.has(key)) {
      if (!serverOnly.has(key)) unknown.push(key)
      meta.delete(key)
    } else if (isEmpty(value) && !says(key, value)) meta.delete(key)
  }
  return unknown
}

/** No grace is a grace period too, and no managed fields, sent as a list, ask for a fresh start. */
function says(key: string, value: Json): boolean {
  if (key === 'deletionGracePeriodSeconds') return value === 0
  return key === 'managedFields' && Array.isArray(value)
}

function isEmpty(value: Json): boolean {
  if (value === null || value === '' || value === 0) return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && value.size === 0
}
