/** A definition as something served: its versions in order of preference, their schemas, and the resources they make. */

import { createHash } from 'node:crypto'
import { field, isObject, type Json, type JsonObject, text, toPlain } from '../json/json.ts'
import type { Resource, Subresource, Verb } from '../resource.ts'
import type { ScalePaths } from './scaled.ts'
import type { Schema } from './schema.ts'
import { listOf } from './subresource.ts'

export type PrinterColumn = {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
  readonly jsonPath: string
}

export type DefinitionVersion = {
  readonly name: string
  readonly served: boolean
  readonly storage: boolean
  /** What a client of a deprecated version is warned with. */
  readonly deprecation?: string
  readonly schema: Schema
  /** Paths as field selectors spell them: `spec.color`. */
  readonly selectableFields: readonly string[]
  readonly columns: readonly PrinterColumn[]
  readonly status: boolean
  readonly scale?: ScalePaths
}

const VERBS: readonly Verb[] = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch']
const SUBRESOURCE_VERBS: readonly Verb[] = ['get', 'patch', 'update']

/** The list of versions, each an object. */
export function versionsOf(spec: Json | undefined): JsonObject[] {
  const versions = field(spec, 'versions')
  return Array.isArray(versions) ? versions.filter(isObject) : []
}

/** The schema of a version as a plain object. */
export function schemaIn(version: JsonObject): Schema | undefined {
  const schema = field(version, 'schema', 'openAPIV3Schema')
  return isObject(schema) ? (toPlain(schema) as Schema) : undefined
}

/**
 * All versions, the preferred first. Ask once per change of a definition and keep the answer: what is compiled for a
 * schema is kept by the schema's identity.
 */
export function definitionVersions(crd: JsonObject): DefinitionVersion[] {
  return versionsOf(field(crd, 'spec'))
    .map((version) => versionFrom(crd, version))
    .sort((a, b) => compareVersions(b.name, a.name))
}

function versionFrom(crd: JsonObject, version: JsonObject): DefinitionVersion {
  const scale = field(version, 'subresources', 'scale')
  const selector = text(scale, 'labelSelectorPath')
  return {
    name: text(version, 'name'),
    served: version.get('served') === true,
    storage: version.get('storage') === true,
    ...(version.get('deprecated') === true ? { deprecation: deprecationOf(crd, version) } : {}),
    schema: schemaIn(version) ?? {},
    selectableFields: listOf(version, 'selectableFields').map((one) => text(one, 'jsonPath').replace(/^\./, '')),
    columns: listOf(version, 'additionalPrinterColumns').map(columnFrom),
    status: field(version, 'subresources', 'status') !== undefined,
    ...(isObject(scale)
      ? {
          scale: {
            specReplicasPath: text(scale, 'specReplicasPath'),
            statusReplicasPath: text(scale, 'statusReplicasPath'),
            ...(selector === '' ? {} : { labelSelectorPath: selector }),
          },
        }
      : {}),
  }
}

function deprecationOf(crd: JsonObject, version: JsonObject): string {
  const own = text(version, 'deprecationWarning')
  if (own !== '') return own
  const kind = text(crd, 'spec', 'names', 'kind')
  return `${text(crd, 'spec', 'group')}/${text(version, 'name')} ${kind} is deprecated`
}

function columnFrom(column: Json): PrinterColumn {
  const priority = field(column, 'priority')
  return {
    name: text(column, 'name'),
    type: text(column, 'type'),
    format: text(column, 'format'),
    description: text(column, 'description'),
    priority: typeof priority === 'number' ? priority : 0,
    jsonPath: text(column, 'jsonPath'),
  }
}

/** The resources a definition makes once its names are its own; none before. */
export function definitionResources(crd: JsonObject): Resource[] {
  const conditions = field(crd, 'status', 'conditions')
  const established = (Array.isArray(conditions) ? conditions : []).some(
    (condition) => text(condition, 'type') === 'Established' && text(condition, 'status') === 'True',
  )
  if (!established) return []
  const names = field(crd, 'status', 'acceptedNames')
  const group = text(crd, 'spec', 'group')
  const plural = text(names, 'plural')
  const kind = text(names, 'kind')
  const versions = definitionVersions(crd)
  const storage = versions.find((version) => version.storage)?.name ?? ''
  return versions
    .filter((version) => version.served)
    .map((version) => ({
      group,
      version: version.name,
      resource: plural,
      kind,
      listKind: text(names, 'listKind'),
      singular: text(names, 'singular'),
      namespaced: text(crd, 'spec', 'scope') === 'Namespaced',
      verbs: VERBS,
      shortNames: strings(field(names, 'shortNames')),
      categories: strings(field(names, 'categories')),
      subresources: subresourcesOf(version, group, kind),
      storageVersionHash: storageVersionHash(group, storage, kind),
      interest: `${group}/${plural}`,
      custom: true,
    }))
}

function strings(list: Json | undefined): string[] {
  return Array.isArray(list) ? list.map(String) : []
}

function subresourcesOf(version: DefinitionVersion, group: string, kind: string): Subresource[] {
  const found: Subresource[] = []
  if (version.status) found.push({ name: 'status', verbs: SUBRESOURCE_VERBS, group, version: version.name, kind })
  if (version.scale !== undefined) {
    found.push({ name: 'scale', verbs: SUBRESOURCE_VERBS, group: 'autoscaling', version: 'v1', kind: 'Scale' })
  }
  return found
}

/** How discovery lets clients see that objects moved to another storage version. */
function storageVersionHash(group: string, version: string, kind: string): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}

const MATURITY: Readonly<Record<string, number>> = { alpha: 0, beta: 1 }

/** Kubernetes' order of versions: v10, v2, v1, v2beta1, v1alpha1, then any other by name, ascending. */
function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map(parsed)
  if (left === undefined && right === undefined) return a < b ? 1 : a > b ? -1 : 0
  if (left === undefined) return -1
  if (right === undefined) return 1
  for (const [index, part] of left.entries()) {
    const difference = part - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Maturity, major, minor. */
function parsed(version: string): number[] | undefined {
  const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
  if (found === null) return undefined
  return [found[2] === undefined ? 2 : (MATURITY[found[2]] ?? 0), Number(found[1]), Number(found[3] ?? 0)]
}
