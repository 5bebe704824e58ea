/** A copy that is its own authority: what the write engine sees of it, and the definitions that decide what it serves. */
import type { Rbac, RbacResource } from '../access/rbac/rbac.ts'
import type { AuthorityCopy } from '../cache/authoritycopy.ts'
import { makeFilter } from '../cache/filter.ts'
import type { OwnCatalog } from '../endpoint/owncatalog.ts'
import type { FieldPath } from '../kube/fields.ts'
import type { Objects, ObjectsOf } from '../write/write.ts'

const definitions = 'apiextensions.k8s.io/customresourcedefinitions'
const roleResources: readonly RbacResource[] = ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings']

export function objectsOf(copy: AuthorityCopy, resources: OwnCatalog): ObjectsOf {
  return ({ group, version, resource }): Objects => {
    // What a definition served until now may have left objects behind.
    const interest = resources.find(group, version, resource)?.resource.interest ?? `${group}/${resource}`
    const cache = copy.cache(interest)
    return {
      get version() {
        return cache.version
      },
      get: (key) => cache.get(key),
      isDamaged: (key) => cache.isCorrupt(key),
      select: (namespace, labels, fields) => {
        const namespaced = namespace !== undefined
        const paths = fields === undefined || fields.empty ? {} : pathsOf(resources, interest)
        return cache.list(
          makeFilter({ namespaced, namespace: namespace ?? '', labels, fields, paths, plan: cache.plan }),
        )
      },
      put: (key, build) => copy.put(interest, key, build),
      remove: (key) => copy.remove(interest, key),
    }
  }
}

/** Where fields stand in the objects of an interest, whichever of its versions offers them. */
function pathsOf(resources: OwnCatalog, interest: string): Readonly<Record<string, FieldPath>> {
  const paths: Record<string, FieldPath> = {}
  for (const { group, version, resource, interest: own } of resources.resources()) {
    if (own === interest) Object.assign(paths, resources.find(group, version, resource)?.fields.paths)
  }
  return paths
}

/** Custom resources follow their definitions the moment these are published, before the writer gets its answer. */
export function followDefinitions(copy: AuthorityCopy, resources: OwnCatalog): void {
  const apply = (name: string, bytes: Buffer | undefined) => {
    for (const { interest, gone } of resources.apply(name, bytes)) {
      const cache = copy.cache(interest)
      cache.replan(resources.planOf(interest))
      // There is nothing left to come back to: a watch too young to end well ends all the same.
      if (gone) for (const watcher of cache.watchers) if (watcher.finish() > 0) void watcher.return()
    }
  }
  const cache = copy.cache(definitions)
  for (const item of cache.all()) apply(item.key, item.bytes)
  cache.observe((event) => apply(event.key, event.item?.bytes))
}

/** What callers may do follows roles and bindings the moment these are published. One that is damaged gives nothing. */
export function followRoles(copy: AuthorityCopy, rbac: Rbac): void {
  for (const resource of roleResources) {
    const cache = copy.cache(`rbac.authorization.k8s.io/${resource}`)
    for (const { key, bytes } of cache.all()) rbac.put(resource, key, bytes)
    cache.observe(({ key, item }) => {
      if (item === undefined) rbac.delete(resource, key)
      else rbac.put(resource, key, item.bytes)
    })
  }
}
