/** The few built-in kinds whose objects the server completes itself, because clients and this engine depend on it. */

import { cloneJson, field, fromPlain, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { isResource } from '../kube/resource.ts'
import { definitionDefaults } from '../kube/schema/definition.ts'
import { definitions, namespaces, pods, type RequestScope, secrets } from './engine.ts'
import { metaOf, timestamp } from './meta.ts'

const volumes = { group: '', resource: 'persistentvolumes' }

/** A new object's fields that are not the client's to set: status, and what the kind adds. */
export function completeNew(scope: RequestScope, tree: JsonObject, now: number): void {
  const { rules, resource } = scope
  if (rules.reset.create.includes('status')) tree.delete('status')
  if (rules.createdStatus !== undefined && !tree.has('status')) tree.set('status', fromPlain(rules.createdStatus))
  if (isResource(resource, namespaces)) requireFinalizer(tree)
  else if (isResource(resource, pods)) setMember(tree, 'status', 'qosClass', qosClass(tree.get('spec')))
  else if (isResource(resource, volumes)) setMember(tree, 'status', 'lastPhaseTransitionTime', timestamp(now))
  complete(scope, tree)
}

/** What the kind adds to any written object. */
export function complete({ resource }: RequestScope, tree: JsonObject): void {
  if (isResource(resource, namespaces)) {
    const meta = metaOf(tree)
    if (text(meta, 'name') === '') return
    const labels = meta.get('labels')
    const own: JsonObject = isObject(labels) ? labels : new Map()
    own.set('kubernetes.io/metadata.name', text(meta, 'name'))
    meta.set('labels', own)
  } else if (isResource(resource, secrets)) foldStringData(tree)
  else if (isResource(resource, definitions)) definitionDefaults(tree)
}

/** The namespace controller's mark: as long as it is there, the contents are still to be deleted. */
function requireFinalizer(tree: JsonObject): void {
  const spec = tree.get('spec')
  const finalizers = field(spec, 'finalizers')
  const held = Array.isArray(finalizers) ? finalizers : []
  if (held.includes('kubernetes')) return
  const completed: JsonObject = isObject(spec) ? spec : new Map()
  completed.set('finalizers', [...held, 'kubernetes'])
  tree.set('spec', completed)
}

/** `stringData` is for writing only: it is kept in `data`, encoded. */
function foldStringData(tree: JsonObject): void {
  const plain = tree.get('stringData')
  if (isObject(plain)) {
    const before = tree.get('data')
    const folded: JsonObject = isObject(before) ? before : new Map()
    for (const [key, value] of plain) {
      if (typeof value === 'string') folded.set(key, Buffer.from(value).toString('base64'))
    }
    tree.delete('stringData')
    if (folded.size > 0) tree.set('data', folded)
  }
  if (text(tree, 'type') === '') tree.set('type', 'Opaque')
}

function setMember(tree: JsonObject, name: string, member: string, value: Json): void {
  const held = tree.get(name)
  const object: JsonObject = isObject(held) ? held : new Map()
  object.set(member, value)
  tree.set(name, object)
}

const computed = ['cpu', 'memory']

/** Guaranteed: every container has limits for cpu and memory and requests nothing else; BestEffort: none says anything. */
function qosClass(spec: Json | undefined): string {
  const containers = [field(spec, 'initContainers'), field(spec, 'containers')].flatMap((list) =>
    Array.isArray(list) ? list : [],
  )
  let said = false
  let guaranteed = containers.length > 0
  for (const container of containers) {
    for (const name of computed) {
      const limit = quantity(container, 'limits', name)
      const asked = quantity(container, 'requests', name)
      if (limit !== undefined || asked !== undefined) said = true
      if (limit === undefined || (asked !== undefined && asked !== limit)) guaranteed = false
    }
  }
  if (!said) return 'BestEffort'
  return guaranteed ? 'Guaranteed' : 'Burstable'
}

function quantity(container: Json, list: string, name: string): string | undefined {
  const value = field(container, 'resources', list, name)
  return value === undefined || value === '0' || value === 0 ? undefined : String(value)
}

/** Of a pod, these subresources write one part of its spec and nothing else. */
export function keepPodButPart(tree: JsonObject, old: JsonObject, subresource: string): void {
  const sent = tree.get('spec')
  const version = text(tree, 'metadata', 'resourceVersion')
  const managed = metaOf(tree).get('managedFields')
  tree.clear()
  for (const [key, value] of old) tree.set(key, cloneJson(value))
  if (version !== '') metaOf(tree).set('resourceVersion', version)
  keepManaged(metaOf(tree), managed)
  const spec = tree.get('spec')
  if (!isObject(spec)) return
  if (subresource === 'ephemeralcontainers') {
    const containers = field(sent, 'ephemeralContainers')
    if (containers !== undefined) spec.set('ephemeralContainers', containers)
    return
  }
  for (const list of ['initContainers', 'containers']) {
    const sentList = field(sent, list)
    const held = spec.get(list)
    if (!Array.isArray(sentList) || !Array.isArray(held)) continue
    for (const container of held) {
      const match = sentList.find((one) => text(one, 'name') === text(container, 'name'))
      const resources = field(match, 'resources')
      if (isObject(container) && resources !== undefined) container.set('resources', resources)
    }
  }
}

/** Marks are of the write, not of the part that it writes. */
export function keepManaged(meta: JsonObject, managed: Json | undefined): void {
  if (managed === undefined) meta.delete('managedFields')
  else meta.set('managedFields', managed)
}

const resettableMeta = ['labels', 'annotations', 'finalizers', 'ownerReferences', 'generation', 'deletionTimestamp']

/** Puts the stored values of these paths back, or their absence. */
export function resetPaths(tree: JsonObject, old: JsonObject, paths: readonly string[]): void {
  for (const path of paths) {
    if (path === 'metadata') for (const name of resettableMeta) copyPath(tree, old, ['metadata', name])
    else copyPath(tree, old, path.split('.'))
  }
}

function copyPath(tree: JsonObject, old: JsonObject, path: readonly string[]): void {
  const last = path.at(-1) ?? ''
  const value = field(old, ...path)
  let at = tree
  for (const key of path.slice(0, -1)) {
    let next = at.get(key)
    if (!isObject(next)) {
      if (value === undefined) return
      next = new Map()
      at.set(key, next)
    }
    at = next
  }
  if (value === undefined) at.delete(last)
  else at.set(last, cloneJson(value))
}
