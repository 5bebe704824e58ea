/** The versions of a kind, as ownership sees them: their types, how objects go from one to another, what a write ignores. */

import { builtinSchemas } from '../kube/builtin.ts'
import { fromStored, toStored } from '../kube/convert/convert.ts'
import { field, parseJson, text } from '../kube/json/json.ts'
import { apiVersion, type Resource } from '../kube/resource.ts'
import type { Components } from '../kube/schema/gostruct.ts'
import { keysOf } from '../kube/schema/scalepaths.ts'
import { versionsOf as definedVersions } from '../kube/schema/versions.ts'
import { admit } from './apply/admit.ts'
import type { FieldType } from './apply/fieldtype.ts'
import type { ReplicasPath } from './apply/managed/scale.ts'
import type { Versions } from './apply/owner.ts'
import { pathOf } from './apply/pathelement.ts'
import { FieldTypes } from './apply/typesfrom.ts'
import { componentOf, type KindName } from './components.ts'
import { definitionOf, definitions, type Engine, type RequestScope } from './engine.ts'
import { ignoringFilter } from './ignored.ts'

let types: FieldTypes | undefined

/** The type of a built-in kind. */
export function builtinType(kind: KindName): FieldType | undefined {
  const component = componentOf(kind)
  types ??= new FieldTypes(builtinSchemas() as Components)
  return component === undefined ? undefined : types.component(component)
}

/** A version that cannot be converted to, because its definition does not name it any more. */
export class VersionFault extends Error {}

/** The versions of a resource, as a write through this subresource sees them. */
export function versionsFor(engine: Engine, scope: RequestScope, subresource: string): Versions {
  const own = apiVersion(scope.resource)
  const find = (version: string) => resourceIn(engine, scope.resource, version)
  const ignoring = ignoringFilter(scope, subresource)
  const typeOf = (version: string): FieldType | undefined => {
    const { resource } = scope
    if (version === own && !resource.custom) return builtinType(resource)
    const found = version === own ? resource : find(version)
    if (found === undefined) return undefined
    if (!found.custom) return builtinType(found)
    const { schema } = (version === own ? scope.definition : definitionOf(engine, found)) ?? {}
    types ??= new FieldTypes(builtinSchemas() as Components)
    return types.custom(schema)
  }
  return {
    typeOf,
    convert: (tree, from, to) => {
      if (scope.resource.custom) {
        const converted = new Map(tree).set('apiVersion', to)
        const type = typeOf(to)
        if (type !== undefined) admit(converted, type)
        return converted
      }
      const [source, target] = [find(from), find(to)]
      return source === undefined || target === undefined ? tree : fromStored(target, toStored(source, tree))
    },
    ...(ignoring === undefined
      ? {}
      : {
          // A definition's versions each ignore the status for themselves.
          filter: (fields, version) =>
            scope.resource.custom && subresource === '' && version !== own ? fields : ignoring(fields),
        }),
  }
}

/** Where the versions of a resource keep their replicas. */
export function replicasPaths(engine: Engine, resource: Resource): ReplicasPath {
  return (version) => {
    const found = tolerant(() => resourceIn(engine, resource, version))
    if (found === undefined) return undefined
    if (!found.custom) return pathOf('spec', 'replicas')
    const scale = definitionOf(engine, found)?.scale
    return scale === undefined ? null : pathOf(...keysOf(scale.specReplicasPath))
  }
}

function tolerant<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof VersionFault) return undefined
    throw error
  }
}

/** The same resource in another version; undefined where there is none, and a fault where there never will be. */
function resourceIn(engine: Engine, resource: Resource, version: string): Resource | undefined {
  const slash = version.indexOf('/')
  const [group, name] = slash < 0 ? ['', version] : [version.slice(0, slash), version.slice(slash + 1)]
  const found = engine.catalog.find(group, name, resource.resource)?.resource
  // Two groups may serve the same objects, but what is owned in one means nothing in the other.
  if (found !== undefined && group === resource.group) return found
  if (!resource.custom) return undefined
  const definition = engine.objectsOf(definitions).get(`${resource.resource}.${resource.group}`)
  const spec = definition === undefined ? undefined : field(parseJson(definition.bytes), 'spec')
  const defined = group === resource.group && definedVersions(spec).some((one) => text(one, 'name') === name)
  if (!defined) throw new VersionFault(`request to convert CR to an invalid group/version: ${version}`)
  return undefined
}
