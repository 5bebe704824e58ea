/**
 * The forms of an object around a write: the stored bytes of a list item, the tree as its requested version serves it
 * (with kind and apiVersion), and back. Metadata is printed in Go's order, that of custom resources sorted; everything else
 * keeps the order it came in (A5), though the real server sorts all keys of custom resources.
 */

import { fromStored, toStored } from '../kube/convert/convert.ts'
import { bytewise } from '../kube/json/goformat.ts'
import { equalJson, type Json, type JsonObject, parseJson, printJson, text } from '../kube/json/json.ts'
import { apiVersion, objectKey, type Resource } from '../kube/resource.ts'
import type { Definition } from '../kube/schema/catalog.ts'
import { applyDefaults } from '../kube/schema/defaulting.ts'
import { prune } from '../kube/schema/prune.ts'
import { managedText, sameOwners } from './apply/managed/managed.ts'
import { metaFields, metaOf } from './meta.ts'
import { plainFailure } from './refusals.ts'
import type { StoredObject } from './write.ts'

/**
 * The real server's, whose storage refuses more: a reader of an object, and a caller that adds to it, make us hold all of it in memory.
 * Custom resources are stored as JSON there, built-ins in protobuf, where a character never takes more than a sixth of what it may in
 * JSON.
 */
const customBytesMax = 1.5 * 1024 * 1024
const builtinBytesMax = 6 * customBytesMax

/** The stored object as the resource's version serves it, with kind and apiVersion in front. */
export function servedTree(resource: Resource, stored: StoredObject): JsonObject {
  return servedForm(resource, parseJson(stored.bytes) as JsonObject)
}

/** The same for a tree that is already there; what lies below its top is shared, not copied. */
export function servedForm(resource: Resource, tree: JsonObject): JsonObject {
  const served: JsonObject = new Map<string, Json>([
    ['kind', resource.kind],
    ['apiVersion', apiVersion(resource)],
  ])
  for (const [key, value] of fromStored(resource, tree)) if (!served.has(key)) served.set(key, value)
  return served
}

/** Prepares the tree for storing: `print` may be called once the version is known. The tree itself is consumed. */
export function storedForm(resource: Resource, definition: Definition | undefined, tree: JsonObject) {
  const form = resource.custom ? customForm(resource, definition, tree) : builtinForm(resource, tree)
  const meta = metaOf(form)
  const labelled = (version: string): JsonObject => {
    if (version === '') meta.delete('resourceVersion')
    else meta.set('resourceVersion', version)
    return form
  }
  return {
    managedFields: meta.get('managedFields'),
    /** Throws what the real server answers where the object is too large to be stored. */
    print(version: number): Buffer {
      const bytes = Buffer.from(printed(labelled(String(version))))
      if (bytes.length > (resource.custom ? customBytesMax : builtinBytesMax)) {
        throw plainFailure('etcdserver: request is too large')
      }
      return bytes
    },
    /** Whether storing it would change nothing but when something was owned; `before` is the tree of what is stored. */
    isSame: (current: StoredObject, before: JsonObject): boolean => sameBut(labelled(String(current.version)), before),
    /** What is answered when nothing was stored: the version is the one that was there before, or none. */
    unstored(before: StoredObject | undefined): StoredObject {
      const bytes = Buffer.from(printed(labelled(before === undefined ? '' : String(before.version))))
      const namespace = text(meta, 'namespace')
      const name = text(meta, 'name')
      const version = before?.version ?? 0
      return { key: objectKey(namespace, name), namespace, name, uid: text(meta, 'uid'), version, bytes }
    },
  }
}

/** As printJson, but for marks, whose text is mostly known. */
function printed(form: JsonObject): string {
  const meta = metaOf(form)
  const marks = meta.get('managedFields')
  if (!Array.isArray(marks)) return printJson(form)
  return members(form, (key, value) => (key === 'metadata' ? members(meta, printMeta) : printJson(value)))
}

function printMeta(key: string, value: Json): string {
  return key === 'managedFields' && Array.isArray(value) ? managedText(value) : printJson(value)
}

function members(object: JsonObject, print: (key: string, value: Json) => string): string {
  let out = '{'
  for (const [key, value] of object) out += `${out === '{' ? '' : ','}${printJson(key)}:${print(key, value)}`
  return `${out}}`
}

/** Times of owners alone are no change. */
function sameBut(form: JsonObject, before: JsonObject): boolean {
  const [now, then] = [metaOf(form).get('managedFields'), metaOf(before).get('managedFields')]
  if (now === undefined || then === undefined || !sameOwners(now, then)) return equalJson(form, before)
  const meta = new Map(metaOf(form)).set('managedFields', then)
  return equalJson(new Map(form).set('metadata', meta), before)
}

function builtinForm(resource: Resource, served: JsonObject): JsonObject {
  const tree = toStored(resource, served)
  const form: JsonObject = new Map([['metadata', arrangedMeta(metaOf(tree))]])
  for (const [key, value] of tree) {
    if (key !== 'kind' && key !== 'apiVersion' && key !== 'metadata' && key !== 'status') {
      form.set(key, value)
    }
  }
  const status = tree.get('status')
  if (status !== undefined) form.set('status', status)
  if (resource.kind === 'Event') for (const [key, value] of eventZeros) if (!form.has(key)) form.set(key, value)
  return form
}

/** What Go prints of an event even where nothing was said. */
const eventZeros: readonly (readonly [string, Json])[] = [
  ['firstTimestamp', null],
  ['lastTimestamp', null],
  ['eventTime', null],
  ['reportingComponent', ''],
  ['reportingInstance', ''],
]

function customForm(resource: Resource, definition: Definition | undefined, tree: JsonObject): JsonObject {
  const version = definition?.storageVersion ?? resource.version
  const form: JsonObject = new Map<string, Json>([
    ['apiVersion', apiVersion({ group: resource.group, version })],
    ['kind', resource.kind],
    ['metadata', sortedMeta(metaOf(tree))],
  ])
  for (const [key, value] of tree) if (!form.has(key)) form.set(key, value)
  // What its storage version does not know is not kept, whatever version it came in by.
  if (definition?.storageSchema !== undefined) {
    prune(form, definition.storageSchema)
    applyDefaults(form, definition.storageSchema)
  }
  return form
}

function sortedMeta(meta: JsonObject): JsonObject {
  return new Map([...arrangedMeta(meta)].sort(([a], [b]) => bytewise(a, b)))
}

/** Metadata in Go's order, the version's place kept. */
function arrangedMeta(meta: JsonObject): JsonObject {
  const arranged: JsonObject = new Map()
  for (const field of metaFields) {
    const value = field === 'resourceVersion' ? '' : meta.get(field)
    if (value !== undefined) arranged.set(field, value)
  }
  return arranged
}
