/** The OpenAPI components of built-in kinds, found by kind: `io.k8s.api.core.v1.Pod`. */

import { builtinSchemas } from '../kube/builtin.ts'
import { mergeSchemaOf, type OpenApiSchema } from '../kube/patch/mergeschema.ts'
import type { MergeSchema } from '../kube/patch/strategic.ts'

export type KindName = { readonly group: string; readonly version: string; readonly kind: string }

let names: ReadonlyMap<string, string> | undefined

export function componentOf({ group, version, kind }: KindName): string | undefined {
  names ??= new Map(
    Object.entries(builtinSchemas()).flatMap(([name, schema]) => {
      const kinds = schema['x-kubernetes-group-version-kind']
      return Array.isArray(kinds) ? kinds.map((one) => [`${one.group}/${one.version}/${one.kind}`, name] as const) : []
    }),
  )
  return names.get(`${group}/${version}/${kind}`)
}

/** Kinds of the core group that no path takes or gives, and so have no component. */
const bareKinds: ReadonlySet<string> = new Set([
  'List',
  'NodeProxyOptions',
  'PodAttachOptions',
  'PodExecOptions',
  'PodLogOptions',
  'PodPortForwardOptions',
  'PodProxyOptions',
  'RangeAllocation',
  'ServiceProxyOptions',
])

/** Whether the real server has a Go type for it: custom kinds have none. */
export function isBuiltinKind(kind: KindName): boolean {
  return componentOf(kind) !== undefined || (kind.group === '' && kind.version === 'v1' && bareKinds.has(kind.kind))
}

/** How strategic patches merge the kind; undefined for kinds without a component. */
export function mergeSchemaFor(kind: KindName): MergeSchema | undefined {
  const name = componentOf(kind)
  return name === undefined ? undefined : mergeSchemaOf(builtinSchemas() as Record<string, OpenApiSchema>, name)
}
