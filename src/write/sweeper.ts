/**
 * What ends slowly: a deleted namespace loses its contents and then itself, a deleted definition its objects. One loop
 * does both, begins with whatever an earlier process left unfinished, and waits for finalizers others have to remove.
 */
import { Bell } from '../base/bell.ts'
import { isBuiltinGroup } from '../kube/builtin.ts'
import { field, type Json, type JsonObject, parseJson, text } from '../kube/json/json.ts'
import { type GroupVersionResource, groupResource, type Resource } from '../kube/resource.ts'
import { StatusError } from '../kube/status.ts'
import { cleanupFinalizer, settleNames } from './definitions.ts'
import { deleteKey } from './delete.ts'
import { definitions, type Engine, lockKey, namespaces, type RequestScope, scopeOf } from './engine.ts'
import { namespacePlace, resourcePlace } from './entering.ts'
import { storedForm } from './form.ts'
import { finalizersOf, isDeleting, metaOf, setFinalizers } from './meta.ts'
import { plainDelete } from './options.ts'
import type { StoredObject } from './write.ts'

const retryMs = 1000 // others may take long over their finalizers; a removal wakes the sweeper anyway
const background = { ...plainDelete, propagationPolicy: 'Background' }

export class Sweeper {
  readonly #engine: Engine
  /** How many namespaces and definitions were still there after the last sweep; unknown before the first one. */
  #leaving = Number.POSITIVE_INFINITY
  readonly #bell: Bell

  constructor(engine: Engine) {
    this.#engine = engine
    this.#bell = new Bell(engine.clock)
  }

  /** `began`: a namespace or definition was deleted. Otherwise something was removed, perhaps the last thing in one. */
  wake(began: boolean): void {
    if (!began && this.#leaving === 0) return
    this.#bell.ring()
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#leaving = await this.sweep(signal)
      // With nothing left there is nothing to try again: only a new deletion or the end wakes it.
      await this.#bell.wait(signal, this.#leaving === 0 ? undefined : retryMs)
    }
  }

  /** One round over everything that is leaving; answers how many are left. A refusing disk is met again next round. */
  async sweep(signal?: AbortSignal): Promise<number> {
    let left = 0
    for (const [resource, finish] of [
      [namespaces, (stored: StoredObject, tree: JsonObject) => this.#emptyNamespace(stored, tree)],
      [definitions, (stored: StoredObject, tree: JsonObject) => this.#emptyDefinition(stored, tree)],
    ] as const) {
      for (const stored of this.#all(resource)) {
        if (signal?.aborted === true) return left
        const tree = parseJson(stored.bytes) as JsonObject
        if (!isDeleting(metaOf(tree))) continue
        try {
          if (!(await finish(stored, tree))) left++
        } catch (error) {
          left++
          this.#engine.log.warn('sweep', { resource: resource.resource, key: stored.key, error: String(error) })
        }
      }
    }
    return left
  }

  /** None where one of them is damaged: the rest of the server goes on without a sweep. */
  #all(resource: GroupVersionResource): readonly StoredObject[] {
    try {
      return this.#engine.objectsOf(resource).select(undefined)
    } catch (error) {
      this.#engine.log.warn('sweep', { resource: resource.resource, error: String(error) })
      return []
    }
  }

  async #emptyNamespace(stored: StoredObject, tree: JsonObject): Promise<boolean> {
    if (!specFinalizers(tree).includes('kubernetes')) return false
    const engine = this.#engine
    let remaining = engine.entering.count(namespacePlace(stored.name))
    const visited = new Set<string>()
    for (const resource of engine.catalog.resources()) {
      if (!resource.namespaced || !resource.verbs.includes('delete') || visited.has(groupResource(resource))) continue
      visited.add(groupResource(resource))
      remaining += await this.#emptyOut(scopeOf(engine, resource), stored.name)
    }
    return remaining === 0 && this.#finishNamespace(stored.key)
  }

  /** Deletes what can be deleted; answers how much is still there. */
  async #emptyOut(scope: RequestScope, namespace: string | undefined): Promise<number> {
    for (const { key } of scope.objects.select(namespace)) {
      try {
        await deleteKey(this.#engine, scope, key, background)
      } catch (error) {
        if (!(error instanceof StatusError && error.code === 404)) throw error
      }
    }
    return scope.objects.select(namespace).length
  }

  async #finishNamespace(key: string): Promise<boolean> {
    return this.#finish(namespaces, key, (tree) => {
      const others = specFinalizers(tree).filter((name) => name !== 'kubernetes')
      const spec = tree.get('spec') as JsonObject
      if (others.length === 0) spec.delete('finalizers')
      else spec.set('finalizers', others)
      return others.length === 0 && finalizersOf(metaOf(tree)).length === 0
    })
  }

  async #emptyDefinition(stored: StoredObject, tree: JsonObject): Promise<boolean> {
    if (!finalizersOf(metaOf(tree)).includes(cleanupFinalizer)) return false
    const engine = this.#engine
    const resource = resourceOf(tree)
    const definition = { ...bareDefinition, storageVersion: resource.version }
    const scope: RequestScope = { ...scopeOf(engine, resource), definition }
    // A definition serves nothing in one of Kubernetes' own groups: what is stored there is not of it.
    if (!isBuiltinGroup(resource.group)) {
      const remaining = (await this.#emptyOut(scope, undefined)) + engine.entering.count(resourcePlace(resource))
      if (remaining > 0) return false
    }
    const gone = await this.#finish(definitions, stored.key, (draft) => {
      const meta = metaOf(draft)
      const others = finalizersOf(meta).filter((name) => name !== cleanupFinalizer)
      setFinalizers(meta, others)
      return others.length === 0
    })
    if (gone) await settleNames(engine, resource.group)
    return gone
  }

  /** Takes the mark off under the object's lock; `ends` says whether nothing else holds it. */
  async #finish(of: GroupVersionResource, key: string, ends: (tree: JsonObject) => boolean): Promise<boolean> {
    const { catalog, objectsOf, lock } = this.#engine
    const resource = catalog.find(of.group, of.version, of.resource)?.resource
    if (resource === undefined) return false
    return lock.hold(lockKey(resource, key), async () => {
      const objects = objectsOf(resource)
      const current = objects.get(key)
      if (current === undefined) return true
      const tree = parseJson(current.bytes) as JsonObject
      if (!isDeleting(metaOf(tree))) return false
      if (ends(tree)) {
        await objects.remove(key)
        return true
      }
      const form = storedForm(resource, undefined, tree)
      await objects.put(key, (version) => form.print(version))
      return false
    })
  }
}

const bareDefinition = { schema: undefined, status: false, selectableFields: [], terminating: true } as const

function specFinalizers(tree: JsonObject): string[] {
  const held = field(tree, 'spec', 'finalizers')
  return Array.isArray(held) ? held.filter((name): name is string & Json => typeof name === 'string') : []
}

/** A definition's resource in its storage version, served or not: its objects have to go all the same. */
function resourceOf(tree: JsonObject): Resource {
  const versions = field(tree, 'spec', 'versions')
  const storage = (Array.isArray(versions) ? versions : []).find((one) => field(one, 'storage') === true)
  const group = text(tree, 'spec', 'group')
  const plural = text(tree, 'spec', 'names', 'plural')
  return {
    group,
    version: text(storage, 'name'),
    resource: plural,
    kind: text(tree, 'spec', 'names', 'kind'),
    listKind: text(tree, 'spec', 'names', 'listKind'),
    singular: text(tree, 'spec', 'names', 'singular'),
    namespaced: text(tree, 'spec', 'scope') === 'Namespaced',
    verbs: [],
    shortNames: [],
    categories: [],
    subresources: [],
    interest: `${group}/${plural}`,
    custom: true,
  }
}
