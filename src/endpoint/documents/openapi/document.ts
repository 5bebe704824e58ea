/**
 * The documents of /openapi/v3 as plain objects: one per group version (and a few small ones), each with its paths and
 * every schema these lead to. Built-in ones come from the generated facts, those of custom resources from definitions.
 */
import { type BuiltinSchema, builtinFacts, builtinPaths, builtinSchemas, expandPaths } from '../../../kube/builtin.ts'
import type { Resource } from '../../../kube/resource.ts'
import type { Definition } from '../../../kube/schema/catalog.ts'
import { customPaths, customSchemas } from './custom.ts'

export type OpenApiDocument = {
  readonly openapi: '3.0.0'
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, unknown>>
  readonly components: {
    readonly schemas?: Readonly<Record<string, BuiltinSchema>>
    readonly securitySchemes?: unknown
  }
}

/** One version of a custom resource with what its definition says. */
export type CustomVersion = { readonly resource: Resource; readonly definition: Definition }

export const bearerToken = {
  BearerToken: { type: 'apiKey', description: 'Bearer Token authentication', name: 'authorization', in: 'header' },
}

/** Title and version as kube-apiserver prints them. */
export function serverInfo(): { title: string; version: string } {
  const { major, minor } = builtinFacts().version
  return { title: 'Kubernetes', version: `${major}.${minor}` }
}

/** By the name it has in the index, like `apis/apps/v1`; undefined if there is none. */
export function builtinDocument(name: string): OpenApiDocument | undefined {
  const paths = expandPaths(builtinPaths(), name)
  if (paths === undefined) return undefined
  const [prefix, group = '', version = ''] = name.split('/')
  const own = prefix === 'apis' ? { group, version } : { group: '', version: group }
  const schemas = reachable(paths, {}, (kind) => kind.group === '' || isOf(kind, own))
  const components = Object.keys(schemas).length === 0 ? {} : { schemas }
  return { openapi: '3.0.0', info: serverInfo(), paths, components: { ...components, securitySchemes: bearerToken } }
}

/** All custom resources of one group version. */
export function customDocument(versions: readonly CustomVersion[]): OpenApiDocument {
  const paths: Record<string, unknown> = {}
  const own: Record<string, BuiltinSchema> = {}
  for (const { resource, definition } of versions) {
    Object.assign(paths, customPaths(resource))
    Object.assign(own, customSchemas(resource, definition))
  }
  const info = { title: 'Kubernetes CRD Swagger', version: 'v0.1.0' }
  return { openapi: '3.0.0', info, paths: byName(paths), components: { schemas: reachable(paths, own, () => true) } }
}

/** The schemas that paths refer to, directly or through others, by name. */
function reachable(
  paths: Readonly<Record<string, unknown>>,
  own: Readonly<Record<string, BuiltinSchema>>,
  names: (kind: GroupVersion) => boolean,
): Record<string, BuiltinSchema> {
  const builtin = builtinSchemas()
  const found = new Map<string, BuiltinSchema>()
  const visit = (name: string): void => {
    if (found.has(name)) return
    const schema = Object.hasOwn(own, name) ? own[name] : builtin[name]
    if (schema === undefined) return
    found.set(name, withKinds(name, schema, names))
    eachReference(schema, visit)
  }
  eachReference(paths, visit)
  return byName(Object.fromEntries(found))
}

function byName<T>(entries: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1'

type GroupVersion = { readonly group: string; readonly version: string }

function isOf(kind: GroupVersion, { group, version }: GroupVersion): boolean {
  return kind.group === group && kind.version === version
}

/** Two kinds belong to every group; a built-in document names only the core group's and its own. */
function withKinds(name: string, schema: BuiltinSchema, names: (kind: GroupVersion) => boolean): BuiltinSchema {
  if (name !== `${metaPackage}.DeleteOptions` && name !== `${metaPackage}.WatchEvent`) return schema
  const kinds = schema['x-kubernetes-group-version-kind'] as readonly GroupVersion[]
  return { ...schema, 'x-kubernetes-group-version-kind': kinds.filter(names) }
}

const referencePrefix = '#/components/schemas/'

function eachReference(node: unknown, visit: (name: string) => void): void {
  if (typeof node !== 'object' || node === null) return
  for (const [key, value] of Object.entries(node)) {
    if (key === '$ref' && typeof value === 'string') visit(value.slice(referencePrefix.length))
    else eachReference(value, visit)
  }
}
