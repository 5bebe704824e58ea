/**
 * Delete: an object goes at once, or is marked and waits for its finalizers or its grace period. The order of steps and
 * the two events of a forced pod deletion (marked, then gone) are the real registry's.
 */

import { cloneJson, type JsonObject, parseJson, text } from '../kube/json/json.ts'
import { type GroupResource, groupResource, isResource, objectKey } from '../kube/resource.ts'
import { conflict, notFound, type Status } from '../kube/status.ts'
import { markDefinition } from './definitions.ts'
import { definitions, type Engine, lockKey, namespaces, pods, type RequestScope, scopeOf } from './engine.ts'
import { storedForm } from './form.ts'
import { podGraceSeconds } from './grace.ts'
import { finalizersOf, isDeleting, metaOf, raiseGeneration, setFinalizers, timestamp, wholeOf } from './meta.ts'
import { refuseImmortal } from './namespaces.ts'
import { type DeleteOptions, readDeleteOptions } from './options.ts'
import { carrying } from './warnings.ts'
import type { StoredObject, WriteRequest, WriteResult } from './write.ts'

export async function deleteObject(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const options = await readDeleteOptions(request)
  const key = objectKey(request.resource.namespaced ? request.namespace : '', request.name)
  const discarded = scope.objects.isDamaged(key) ? await discard(engine, scope, key, options) : undefined
  if (discarded !== undefined) return discarded
  refuseImmortal(request, request.name)
  const warnings = orphanWarnings(scope, options)
  return carrying(warnings, async () => ({ ...(await deleteKey(engine, scope, key, options)), warnings }))
}

/**
 * Of an object whose bytes are damaged nothing can be asked, neither preconditions nor finalizers: all that can be done with
 * it is to let it go. Undefined where another delete was faster.
 */
async function discard(
  engine: Engine,
  { resource, objects }: RequestScope,
  key: string,
  { dryRun }: DeleteOptions,
): Promise<WriteResult | undefined> {
  return engine.lock.hold(lockKey(resource, key), async () => {
    if (!objects.isDamaged(key)) return undefined
    if (!dryRun) {
      await objects.remove(key)
      engine.wakeSweeper(false)
      engine.log.warn('store.discarded', { resource: groupResource(resource), object: key })
    }
    return { code: 200, status: goneStatus(resource, { name: key.slice(key.indexOf('/') + 1) }), warnings: [] }
  })
}

/** A default that leaves dependents behind surprises; of jobs the real server says so. */
export function orphanWarnings({ resource }: RequestScope, options: DeleteOptions): string[] {
  const asked = options.propagationPolicy !== undefined || options.orphanDependents !== undefined
  return isResource(resource, jobs) && !asked ? [podsStay] : []
}

const jobs = { group: 'batch', resource: 'jobs' }
const podsStay =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning'

/** Whether an object may go at once is decided under its lock. */
export async function deleteKey(
  engine: Engine,
  scope: RequestScope,
  key: string,
  options: DeleteOptions,
): Promise<WriteResult> {
  const { resource, objects } = scope
  return engine.lock.hold(lockKey(resource, key), async () => {
    const current = objects.get(key)
    if (current === undefined) throw notFound(resource, key.slice(key.indexOf('/') + 1))
    const tree = parseJson(current.bytes) as JsonObject
    checkPreconditions(scope, current, options)
    if (isResource(resource, namespaces) || isResource(resource, definitions)) {
      return deleteMarked(engine, scope, current, tree, options)
    }
    return deletePlain(engine, scope, current, tree, options)
  })
}

function checkPreconditions(
  { resource }: RequestScope,
  current: StoredObject,
  { uid, resourceVersion }: DeleteOptions,
): void {
  const special = isResource(resource, namespaces) || isResource(resource, definitions)
  // The generic text names the kind where the resource is meant; namespaces and definitions have their own.
  const named = special ? resource : { group: resource.group, resource: resource.kind }
  const version = String(current.version)
  if (uid !== undefined && uid !== current.uid) {
    const why = special
      ? `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${current.uid}`
      : `the UID in the precondition (${uid}) does not match the UID in record (${current.uid}). The object might have been deleted and then recreated`
    throw conflict(named, current.name, why)
  }
  if (resourceVersion !== undefined && resourceVersion !== version) {
    const why = special
      ? `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${version}`
      : `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${version}). The object might have been modified`
    throw conflict(named, current.name, why)
  }
}

async function deletePlain(
  engine: Engine,
  scope: RequestScope,
  current: StoredObject,
  tree: JsonObject,
  options: DeleteOptions,
): Promise<WriteResult> {
  const meta = metaOf(tree)
  const now = engine.clock.now()
  const grace = isResource(scope.resource, pods) ? beginGrace(tree, options, now) : { kind: 'none' as const }
  if (grace.kind === 'pending') return answer(scope, current, true, options)
  const finalizers = finalizersFor(scope, meta, options)
  setFinalizers(meta, finalizers)
  if (grace.kind === 'none' && finalizers.length === 0) return removeNow(engine, scope, current, options)
  if (grace.kind === 'none') markDeleting(meta, now)
  const marked = await put(scope, current, tree, options.dryRun)
  if (finalizers.length > 0 || (grace.kind === 'graceful' && grace.seconds > 0)) {
    return { code: pendingCode(options), item: marked, warnings: [] }
  }
  return options.dryRun ? answer(scope, marked, true, options) : removeNow(engine, scope, marked, options)
}

type Grace = { kind: 'none' | 'pending' } | { kind: 'graceful'; seconds: number }

/** Pods go gracefully. Marks the tree; `pending` means that an earlier deletion is under way and nothing changes. */
function beginGrace(tree: JsonObject, options: DeleteOptions, now: number): Grace {
  const meta = metaOf(tree)
  const asked = options.gracePeriodSeconds === undefined ? undefined : atLeastOne(options.gracePeriodSeconds)
  if (!isDeleting(meta)) {
    const seconds = podGraceSeconds(tree, asked)
    meta.set('deletionTimestamp', timestamp(now + seconds * 1000))
    meta.set('deletionGracePeriodSeconds', seconds)
    if ((wholeOf(meta, 'generation') ?? 0) > 0) raiseGeneration(meta)
    return { kind: 'graceful', seconds }
  }
  const running = atLeastOne(wholeOf(meta, 'deletionGracePeriodSeconds') ?? 0)
  if (running === 0) return { kind: 'none' }
  // Only a shorter period may be asked for.
  if (asked === undefined || asked >= running) return { kind: 'pending' }
  const due = Date.parse(text(meta, 'deletionTimestamp')) + (asked - running) * 1000
  const seconds = due < now && asked !== 0 ? 1 : asked
  meta.set('deletionTimestamp', timestamp(Math.max(due, now)))
  meta.set('deletionGracePeriodSeconds', seconds)
  return { kind: 'graceful', seconds }
}

/** A negative period means the shortest one. */
function atLeastOne(seconds: number): number {
  return seconds < 0 ? 1 : seconds
}

function markDeleting(meta: JsonObject, now: number): void {
  const before = text(meta, 'deletionTimestamp')
  if (before === '' && (wholeOf(meta, 'generation') ?? 0) > 0) raiseGeneration(meta)
  if (before === '' || Date.parse(before) > now) meta.set('deletionTimestamp', timestamp(now))
  meta.set('deletionGracePeriodSeconds', 0)
}

const orphan = 'orphan'
const foreground = 'foregroundDeletion'

/** The object's finalizers with the wish for its dependents written among them. */
function finalizersFor({ rules }: RequestScope, meta: JsonObject, options: DeleteOptions): string[] {
  const held = finalizersOf(meta)
  if (rules.propagation === 'None') return held
  const wish = wishFor(held, options) ?? (rules.propagation === 'Orphan' ? orphan : undefined)
  const others = held.filter((name) => name !== orphan && name !== foreground)
  const wanted = wish === orphan || wish === foreground ? [...others, wish] : others
  return wanted.length === held.length && wanted.every((name) => held.includes(name)) ? held : wanted
}

function wishFor(held: readonly string[], { orphanDependents, propagationPolicy }: DeleteOptions): string | undefined {
  if (orphanDependents !== undefined) return orphanDependents ? orphan : 'background'
  if (propagationPolicy !== undefined) {
    return { Orphan: orphan, Foreground: foreground, Background: 'background' }[propagationPolicy]
  }
  return held.find((name) => name === orphan || name === foreground)
}

/** Namespaces and definitions are first marked; the sweeper empties them and takes them away. */
async function deleteMarked(
  engine: Engine,
  scope: RequestScope,
  current: StoredObject,
  tree: JsonObject,
  options: DeleteOptions,
): Promise<WriteResult> {
  const meta = metaOf(tree)
  const isNamespace = isResource(scope.resource, namespaces)
  if (!isDeleting(meta)) {
    const now = engine.clock.now()
    meta.set('deletionTimestamp', timestamp(now))
    if (isNamespace) {
      tree.set('status', new Map([...((tree.get('status') as JsonObject) ?? []), ['phase', 'Terminating']]))
      setFinalizers(meta, finalizersFor(scope, meta, options))
    } else markDefinition(tree, now)
    const item = await put(scope, current, tree, options.dryRun)
    if (!options.dryRun) engine.wakeSweeper(true)
    return { code: pendingCode(options), item, warnings: [] }
  }
  const spec = tree.get('spec')
  const waiting =
    isNamespace && spec instanceof Map && Array.isArray(spec.get('finalizers')) ? spec.get('finalizers') : []
  if (Array.isArray(waiting) && waiting.length > 0) return { code: pendingCode(options), item: current, warnings: [] }
  return deletePlain(engine, scope, current, tree, options)
}

async function put(
  scope: RequestScope,
  current: StoredObject,
  tree: JsonObject,
  dryRun: boolean,
): Promise<StoredObject> {
  const before = parseJson(current.bytes) as JsonObject
  const form = storedForm(scope.resource, scope.definition, cloneJson(tree))
  if (form.isSame(current, before)) return current
  return dryRun ? form.unstored(current) : scope.objects.put(current.key, (version) => form.print(version))
}

async function removeNow(
  engine: Engine,
  scope: RequestScope,
  current: StoredObject,
  options: DeleteOptions,
): Promise<WriteResult> {
  const last = options.dryRun ? current : await scope.objects.remove(current.key)
  if (!options.dryRun) engine.wakeSweeper(false)
  return answer(scope, last, false, options)
}

/** What a client gets for an object that is gone, or that an earlier request is deleting. */
function answer(
  { resource, rules }: RequestScope,
  last: StoredObject,
  pending: boolean,
  options: DeleteOptions,
): WriteResult {
  const code = pending ? pendingCode(options) : 200
  if (rules.deleteAnswers === 'object') return { code, item: last, warnings: [] }
  return { code, status: goneStatus(resource, last), warnings: [] }
}

function goneStatus({ group, resource }: GroupResource, { name, uid }: { name: string; uid?: string }): Status {
  const details: NonNullable<Status['details']> = { name }
  if (group !== '') details.group = group
  details.kind = resource
  if (uid !== undefined) details.uid = uid
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}

/** 202 only for the old way of asking for a cascade. */
function pendingCode({ orphanDependents }: DeleteOptions): number {
  return orphanDependents === false ? 202 : 200
}
