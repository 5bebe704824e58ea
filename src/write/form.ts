/**
 * The forms of an object around a write: the stored bytes of a list item, the tree as its requested version serves it
 * (with kind and apiVersion), and back. Built-ins print metadata in Go's order, custom resources every key sorted.
 */

import { type Json, type JsonObject, isObject, parseJson, printJson, text } from '../kube/json.ts'
import { apiVersion, objectKey, type Resource } from '../kube/resource.ts'
import { metaFields, metaOf } from './meta.ts'
import type { Definition, Stored } from './write.ts'

/** Kinds that hold foreign content, in which a null means something. */
const foreignContent: Readonly<Record<string, string>> = { ControllerRevision: 'data' }

/** The stored object as the resource's version serves it, with kind and apiVersion in front. */
export function servedTree(resource: Resource, stored: Stored): JsonObject {
  const tree = parseJson(stored.bytes) as JsonObject
  const served: JsonObject = new Map<string, Json>([
    ['kind', resource.kind],
    ['apiVersion', apiVersion(resource)],
  ])
  for (const [key, value] of tree) if (!served.has(key)) served.set(servedKey(resource, key), value)
  return served
}

/** Prepares the tree for storing: `print` may be called once the version is known. The tree itself is consumed. */
export function storedForm(resource: Resource, definition: Definition | undefined, tree: JsonObject) {
  const form = resource.custom
    ? customForm(resource, definition, tree)
    : builtinForm(resource, tree)
  const meta = metaOf(form)
  return {
    print(version: number): Buffer {
      meta.set('resourceVersion', String(version))
      return Buffer.from(printJson(form))
    },
    /** What a dry run answers with: nothing was stored, so the version is the one that was there before. */
    unstored(before: Stored | undefined): Stored {
      if (before === undefined) meta.delete('resourceVersion')
      else meta.set('resourceVersion', String(before.version))
      const namespace = text(meta, 'namespace')
      const name = text(meta, 'name')
      const version = before?.version ?? 0
      const bytes = Buffer.from(printJson(form))
      return { key: objectKey(namespace, name), namespace, name, uid: text(meta, 'uid'), version, bytes }
    },
    form,
  }
}

export type StoredForm = ReturnType<typeof storedForm>

function builtinForm(resource: Resource, tree: JsonObject): JsonObject {
  const form: JsonObject = new Map([['metadata', arrangedMeta(metaOf(tree))]])
  const foreign = foreignContent[resource.kind]
  for (const [key, value] of tree) {
    if (key === 'kind' || key === 'apiVersion' || key === 'metadata' || key === 'status') continue
    const content = key === foreign ? value : withoutNulls(value)
    if (content !== null) form.set(storedKey(resource, key), content)
  }
  const status = tree.get('status')
  // A new autoscaler's status prints `currentMetrics: null`: its own nulls are kept.
  if (status !== undefined && status !== null) form.set('status', status)
  return form
}

function customForm(resource: Resource, definition: Definition | undefined, tree: JsonObject): JsonObject {
  const version = definition?.storageVersion ?? resource.version
  tree.set('kind', resource.kind)
  tree.set('apiVersion', apiVersion({ group: resource.group, version }))
  tree.set('metadata', arrangedMeta(metaOf(tree)))
  return sorted(tree) as JsonObject
}

/** Only what metadata may hold, without empty values, the version's place kept. */
function arrangedMeta(meta: JsonObject): JsonObject {
  const arranged: JsonObject = new Map()
  for (const field of metaFields) {
    const value = meta.get(field)
    if (field === 'resourceVersion') arranged.set(field, '')
    else if (value !== undefined && !isEmpty(value)) {
      arranged.set(field, field === 'labels' || field === 'annotations' ? sorted(value) : withoutNulls(value))
    }
  }
  // A grace period of zero is a statement, not an absence.
  if (meta.get('deletionGracePeriodSeconds') === 0) return withZeroGrace(arranged)
  return arranged
}

function withZeroGrace(meta: JsonObject): JsonObject {
  const arranged: JsonObject = new Map()
  for (const field of metaFields) {
    const value = field === 'deletionGracePeriodSeconds' ? 0 : meta.get(field)
    if (value !== undefined) arranged.set(field, value)
  }
  return arranged
}

function isEmpty(value: Json): boolean {
  if (value === null || value === '' || value === 0) return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && value.size === 0
}

/** Go decodes a null into "not set", which is not printed again. */
function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  const kept: JsonObject = new Map()
  for (const [key, member] of value) if (member !== null) kept.set(key, withoutNulls(member))
  return kept
}

/** Every key in bytewise order, as Go prints maps. */
export function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const ordered: JsonObject = new Map()
  for (const key of [...value.keys()].sort(bytewise)) ordered.set(key, sorted(value.get(key) ?? null))
  return ordered
}

function bytewise(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** Events are kept once, in the core group's spelling; events.k8s.io has other names for some of their fields. */
const eventKeys: readonly (readonly [core: string, events: string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
]
const toEvents = new Map(eventKeys)
const toCore = new Map(eventKeys.map(([core, events]) => [events, core]))

function servedKey(resource: Resource, key: string): string {
  return resource.group === 'events.k8s.io' ? (toEvents.get(key) ?? key) : key
}

function storedKey(resource: Resource, key: string): string {
  return resource.group === 'events.k8s.io' ? (toCore.get(key) ?? key) : key
}
