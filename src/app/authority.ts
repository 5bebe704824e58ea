/** A copy that is its own authority: what the write engine sees of it, and the definitions that decide what it serves. */
import type { Copy } from '../cache/copy.ts'
import { makeFilter } from '../cache/filter.ts'
import type { Resources } from '../endpoint/registry.ts'
import type { Objects, ObjectsOf } from '../write/write.ts'

const definitions = 'apiextensions.k8s.io/customresourcedefinitions'

export function objectsOf(copy: Copy, resources: Resources): ObjectsOf {
  return (interest): Objects => {
    const cache = copy.cache(interest)
    return {
      get version() {
        return cache.version
      },
      get: (key) => cache.get(key),
      select: (namespace, labels, fields) => {
        const resource = [...resources.resources()].find((one) => one.interest === interest)
        const served = resource && resources.find(resource.group, resource.version, resource.resource)
        const namespaced = namespace !== undefined
        const paths = served?.fields.paths ?? {}
        return cache.list(
          makeFilter({ namespaced, namespace: namespace ?? '', labels, fields, paths, plan: cache.plan }),
        )
      },
      put: (key, build) => copy.put(interest, key, build),
      remove: (key) => copy.remove(interest, key),
    }
  }
}

/** Custom resources follow their definitions the moment these are published, before the writer gets its answer. */
export function followDefinitions(copy: Copy, resources: Resources): void {
  const apply = (name: string, bytes: Buffer | undefined) => {
    for (const { interest, gone } of resources.apply(name, bytes)) {
      const cache = copy.cache(interest)
      cache.replan(resources.planOf(interest))
      if (gone) for (const watcher of cache.watchers) watcher.finish()
    }
  }
  const cache = copy.cache(definitions)
  for (const item of cache.all()) apply(item.key, item.bytes)
  cache.observe((event) => apply(event.key, event.item?.bytes))
}
