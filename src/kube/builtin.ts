/**
 * What Kubernetes' own resources are: names, discovery, write rules, schemas, OpenAPI operations and Table columns, and the
 * roles and bindings that every cluster begins with, as a real kube-apiserver told conformance/facts/facts.ts. builtin.jsonl holds one part per line, and a part is parsed when asked
 * for: serving pods does not need schemas. The prose (descriptions, examples) of all parts is dropped.
 */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Resource } from './resource.ts'

export type BuiltinFacts = {
  /** `v1.36.3` */
  readonly kubernetes: string
  /** The document of /version. */
  readonly version: Readonly<Record<string, string>>
  /** The core group (`''`) first, then the others as /apis lists them. */
  readonly groups: readonly BuiltinGroup[]
  /** In the order of discovery: by group as above, versions as in their group, then as the group version lists them. */
  readonly resources: readonly BuiltinResource[]
}

export type BuiltinGroup = { readonly name: string; readonly versions: readonly string[]; readonly preferred: string }

export type BuiltinResource = Resource & {
  /** What a field selector may name; a pod's spec.host is spec.nodeName, and its status.podIPs is always empty. */
  readonly selectableFields: readonly string[]
  /**
   * The message of the 400 for any other field, which stands where the text has `{field}`. Absent for the usual text:
   * `"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"`.
   */
  readonly fieldRefusal?: string
  /** Absent where nothing is stored: reviews, bindings, componentstatuses. */
  readonly writes?: WriteRules
}

/**
 * How writing differs between the built-ins. Everything not said here is the same for all: metadata.generation sent with
 * a create is kept where the server sets none, and an update never changes it except as `generation` says.
 */
export type WriteRules = {
  /** The apiVersion objects are stored in; not the resource's own for autoscaling/v1 and events.k8s.io/v1. */
  readonly storageVersion: string
  /** A PUT without metadata.resourceVersion overwrites whatever is there. */
  readonly unconditionalUpdate: boolean
  /** A PUT of a name that does not exist creates it (201); otherwise 404. */
  readonly createOnUpdate: boolean
  /** Absent where the server neither sets nor raises metadata.generation. */
  readonly generation?: {
    /** A create sets it to 1. */
    readonly created: boolean
    /** Field paths whose change raises it by 1 (a deletion that has to wait raises it too, for every resource). */
    readonly raisedBy: readonly string[]
  }
  /**
   * Field paths whose sent value is ignored: the stored one stays, or none on create. `metadata` means labels,
   * annotations, finalizers, ownerReferences, generation and deletionTimestamp; managedFields are always the writer's.
   * A subresource's own list is under its name.
   */
  readonly reset: { readonly create: readonly string[]; readonly update: readonly string[] } & {
    readonly [subresource: string]: readonly string[]
  }
  /** `status` of a freshly created object to which none was given; absent where it has none. Timestamps are left out. */
  readonly createdStatus?: unknown
  /**
   * What a DELETE that takes effect at once answers: the last state of the object, or a Status. (One that has to wait
   * for finalizers always answers the object; namespaces and CRDs always have to wait.)
   */
  readonly deleteAnswers: 'object' | 'status'
  /** What happens to dependents if a DELETE names no policy. `None`: the resource takes no part in garbage collection. */
  readonly propagation: 'Background' | 'Orphan' | 'None'
}

/** An OpenAPI v3 schema object, with the x-kubernetes-* extensions. */
export type BuiltinSchema = { readonly [keyword: string]: unknown }

/**
 * By component name (`io.k8s.api.core.v1.Pod`). Two of them, DeleteOptions and WatchEvent, list the group version kinds
 * of all groups here; a group version's own document has those of the core group and of itself only.
 */
export type BuiltinSchemas = { readonly [name: string]: BuiltinSchema }

/** Operations are few in shape and many in number: an operation is its shape and what fills the holes. */
export type BuiltinPaths = {
  /** Operation objects whose references are the strings `$0`, `$1` …, without tags, operationId and kind. */
  readonly shapes: readonly BuiltinSchema[]
  /** Parameter lists of whole paths. */
  readonly parameters: readonly (readonly BuiltinSchema[])[]
  /** By the document's name in /openapi/v3: `api/v1`, `apis/apps/v1`, `apis/apps`, `version`. */
  readonly documents: { readonly [name: string]: { readonly tag: string; readonly paths: BuiltinPathTable } }
}

type BuiltinPathTable = {
  /** Index into `parameters` (-1: none), then by method: shape, operationId, `group/version/kind` or '', references. */
  readonly [path: string]: readonly [
    number,
    { readonly [method: string]: readonly [number, string, string, ...string[]] },
  ]
}

export type BuiltinColumn = {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly priority: number
}

/** By `group/version/resource`; the core group is empty: `/v1/pods`. */
export type BuiltinColumns = { readonly [groupVersionResource: string]: readonly BuiltinColumn[] }

/** What kube-apiserver makes at its start where it judges by roles, each as it is written. */
export type BuiltinPolicy = {
  readonly [R in 'clusterroles' | 'clusterrolebindings' | 'roles' | 'rolebindings']: readonly {
    readonly metadata: { readonly name: string; readonly namespace?: string }
  }[]
}

const parts: unknown[] = []

/** The file is read anew for each part rather than kept: five reads at most, and no megabyte of text in memory. */
function part(line: 0 | 1 | 2 | 3 | 4): unknown {
  if (parts[line] === undefined) {
    const bytes = readFileSync(join(import.meta.dirname, 'builtin.jsonl'))
    let start = 0
    for (let skipped = 0; skipped < line; skipped++) start = bytes.indexOf(10, start) + 1
    parts[line] = JSON.parse(bytes.toString('utf8', start, bytes.indexOf(10, start)))
  }
  return parts[line]
}

export function builtinFacts(): BuiltinFacts {
  return part(0) as BuiltinFacts
}

let groups: ReadonlySet<string> | undefined

export function isBuiltinGroup(group: string): boolean {
  groups ??= new Set(builtinFacts().groups.map(({ name }) => name))
  return groups.has(group)
}

export function builtinSchemas(): BuiltinSchemas {
  return part(1) as BuiltinSchemas
}

export function builtinPaths(): BuiltinPaths {
  return part(2) as BuiltinPaths
}

export function builtinColumns(): BuiltinColumns {
  return part(3) as BuiltinColumns
}

export function builtinPolicy(): BuiltinPolicy {
  return part(4) as BuiltinPolicy
}

/** The `paths` of one document of /openapi/v3, whole again; undefined if there is no such document. */
export function expandPaths(facts: BuiltinPaths, document: string): Record<string, unknown> | undefined {
  const found = facts.documents[document]
  if (found === undefined) return undefined
  const paths: Record<string, unknown> = {}
  for (const [path, [parameters, methods]] of Object.entries(found.paths)) {
    const item: Record<string, unknown> = {}
    for (const [method, [shape, operationId, kind, ...references]] of Object.entries(methods)) {
      const operation: Record<string, unknown> = { tags: [found.tag], operationId }
      Object.assign(operation, fill(facts.shapes[shape], references))
      if (kind !== '') operation['x-kubernetes-group-version-kind'] = kindOf(kind)
      item[method] = operation
    }
    if (parameters >= 0) item.parameters = facts.parameters[parameters]
    paths[path] = item
  }
  return paths
}

function kindOf(text: string): { group: string; version: string; kind: string } {
  const [group = '', version = '', kind = ''] = text.split('/')
  return { group, version, kind }
}

function fill(shape: unknown, references: readonly string[]): unknown {
  if (Array.isArray(shape)) return shape.map((item) => fill(item, references))
  if (typeof shape !== 'object' || shape === null) return shape
  const filled: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(shape)) {
    if (key === '$ref') filled.$ref = `#/components/schemas/${references[Number(String(value).slice(1))]}`
    else filled[key] = fill(value, references)
  }
  return filled
}
