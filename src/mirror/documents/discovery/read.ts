/** Reads discovery documents, aggregated or one by one, into what they say: groups, versions, resources. Pure. */
import { createHash } from 'node:crypto'
import type { Subresource, Verb } from '../../../kube/resource.ts'

export type Discovered = {
  /** The plural. */
  readonly resource: string
  /** '' where the server does not say. */
  readonly kind: string
  readonly singular: string
  readonly namespaced: boolean
  readonly verbs: readonly Verb[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly Subresource[]
}

export type DiscoveredVersion = {
  readonly version: string
  /** The server behind it did not answer: its resources may be missing here and exist all the same. */
  readonly stale: boolean
  readonly resources: readonly Discovered[]
  /** Changes with what is said about it. */
  readonly digest: string
}

export type DiscoveredGroup = {
  /** '' is the core group. */
  readonly name: string
  /** The preferred one first. */
  readonly versions: readonly DiscoveredVersion[]
}

type Tree = Record<string, unknown>

const verbs: ReadonlySet<string> = new Set([
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
] satisfies Verb[])

/** An answer without anything in it is that of a server which is not ready, whatever its status says. */
export function isGoodDocument(content: Buffer, form: string): boolean {
  if (!form.startsWith('application/json')) return content.length > 0
  const tree = parsed(content)
  switch (tree?.kind) {
    case 'APIGroupDiscoveryList':
      return list(tree.items).length > 0
    case 'APIVersions':
    case 'APIGroup':
      return list(tree.versions).length > 0
    case 'APIGroupList':
      return list(tree.groups).length > 0
    case 'APIResourceList':
      return list(tree.resources).length > 0
    default:
      return false
  }
}

/** undefined for anything but an aggregated document. */
export function readAggregated(content: Buffer): DiscoveredGroup[] | undefined {
  const tree = parsed(content)
  if (tree?.kind !== 'APIGroupDiscoveryList') return undefined
  return list(tree.items).map((item) => {
    const name = text(object(item.metadata).name)
    return { name, versions: list(item.versions).map((version) => aggregatedVersion(name, version)) }
  })
}

function aggregatedVersion(group: string, tree: Tree): DiscoveredVersion {
  const version = text(tree.version)
  const resources = list(tree.resources).map((one): Discovered => {
    const { kind } = kindIn(one.responseKind, group, version)
    const subresources = list(one.subresources).map((sub) => ({
      name: text(sub.subresource),
      verbs: verbsIn(sub.verbs),
      ...kindIn(sub.responseKind, group, version),
    }))
    return { ...namesIn(one), resource: text(one.resource), kind, subresources, ...scopeIn(one) }
  })
  return { version, stale: tree.freshness === 'Stale', resources, digest: digestOf(tree) }
}

function scopeIn(tree: Tree) {
  return { singular: text(tree.singularResource), namespaced: tree.scope === 'Namespaced' }
}

/** The core group's versions, from /api, or the groups with theirs, from /apis: without their resources. */
export function readGroups(content: Buffer): { readonly name: string; readonly versions: readonly string[] }[] {
  const tree = parsed(content)
  if (tree?.kind === 'APIVersions') return [{ name: '', versions: strings(tree.versions) }]
  if (tree?.kind !== 'APIGroupList') return []
  return list(tree.groups).map((group) => {
    const preferred = text(object(group.preferredVersion).version)
    const versions = list(group.versions).map(({ version }) => text(version))
    const others = versions.filter((one) => one !== preferred)
    return { name: text(group.name), versions: preferred === '' ? others : [preferred, ...others] }
  })
}

/** The resources of one group version; undefined for anything but such a list. */
export function readResourceList(content: Buffer, group: string, version: string): DiscoveredVersion | undefined {
  const tree = parsed(content)
  if (tree?.kind !== 'APIResourceList') return undefined
  const entries = list(tree.resources)
  const resources = entries.flatMap((one): Discovered[] => {
    const name = text(one.name)
    if (name.includes('/')) return []
    const subresources = entries.flatMap((sub): Subresource[] => {
      const own = text(sub.name)
      if (!own.startsWith(`${name}/`)) return []
      return [{ name: own.slice(name.length + 1), verbs: verbsIn(sub.verbs), ...kindIn(sub, group, version) }]
    })
    const scope = { singular: text(one.singularName), namespaced: one.namespaced === true }
    return [{ ...namesIn(one), resource: name, kind: text(one.kind), subresources, ...scope }]
  })
  return { version, stale: false, resources, digest: digestOf(tree) }
}

function namesIn(tree: Tree) {
  return { verbs: verbsIn(tree.verbs), shortNames: strings(tree.shortNames), categories: strings(tree.categories) }
}

/** Group and version stand there only where they differ from those of the document. */
function kindIn(value: unknown, group: string, version: string) {
  const tree = object(value)
  const own = text(tree.version) === ''
  return {
    group: own ? group : text(tree.group),
    version: own ? version : text(tree.version),
    kind: text(tree.kind),
  }
}

function verbsIn(value: unknown): Verb[] {
  return strings(value).filter((one): one is Verb => verbs.has(one))
}

function parsed(content: Buffer): Tree | undefined {
  try {
    return object(JSON.parse(content.toString('utf8')))
  } catch {
    return undefined
  }
}

function object(value: unknown): Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Tree) : {}
}

function list(value: unknown): Tree[] {
  return Array.isArray(value) ? value.map(object) : []
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(text) : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 16)
}
