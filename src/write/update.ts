/**
 * Update: the object a client sent, or a patch made, takes the place of the stored one. Preconditions first; then what
 * the client may not change is put back, the rest is validated, and only a real change is committed. An object that was
 * waiting for its finalizers and has none left is removed instead.
 */

import { parseUint64 } from '../kube/json/gotext.ts'
import { cloneJson, equalJson, field, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { isResource, objectKey } from '../kube/resource.ts'
import { type FieldError, notFound } from '../kube/status.ts'
import type { Managed } from './apply/managed/managed.ts'
import { makeNew, requireDefinition, storeNew } from './create.ts'
import { decodeObject, ensureName, ensureNamespace } from './decode.ts'
import { judgeDefinition } from './definitions.ts'
import { type Engine, lockKey, namespaces, pods, type RequestScope, scopeOf } from './engine.ts'
import { servedForm, storedForm } from './form.ts'
import { complete, keepManaged, keepPodButPart, resetPaths } from './kinds.ts'
import {
  copyField,
  dropDuplicateOwners,
  finalizersOf,
  isDeleting,
  metaOf,
  nameOf,
  raiseGeneration,
  wholeOf,
  wipeSystemFields,
} from './meta.ts'
import { entering } from './namespaces.ts'
import { readOptions } from './options.ts'
import { ownersAfter, setManaged } from './ownership.ts'
import { isMuch, pause } from './pause.ts'
import { methodNotServed, modifiedConflict, plainFailure, uidConflict, versionRequired } from './refusals.ts'
import { everything } from './rules.ts'
import { fillStored } from './shape.ts'
import { unenforcedWarnings } from './unenforced.ts'
import { validateUpdate } from './validate.ts'
import { carrying } from './warnings.ts'
import type { StoredObject, WriteRequest, WriteResult } from './write.ts'

/** A proposed object; `missing` are required fields it lacks. */
export type Proposal = {
  readonly tree: JsonObject
  readonly warnings: readonly string[]
  readonly missing: readonly FieldError[]
}

/** The object as it shall be, from the object as it is (undefined when there is none; never to be changed itself).
 * Where there is `much` to do it lets others in between. */
export type ObjectUpdate = {
  readonly next: (old: JsonObject | undefined, much: boolean) => Proposal | Promise<Proposal>
  /** The uid a PUT names: it must be the object's. */
  readonly uid: string
  readonly mayCreate: boolean
  /** The server's own change: nothing is put back and nothing validated. */
  readonly own?: boolean
  /** Who owns what changes; absent where `next` has seen to that, or it has no owner. */
  readonly manager?: string
  readonly dryRun: boolean
}

export async function update(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const { dryRun, fieldValidation, manager } = readOptions('UpdateOptions', request)
  const decoded = await decodeObject(scope, request, fieldValidation)
  return carrying(decoded.warnings, async () => {
    ensureNamespace(request, metaOf(decoded.tree))
    ensureName(request, decoded.tree)
    decoded.warnings.push(...dropDuplicateOwners(metaOf(decoded.tree), equalJson))
    return replace(engine, scope, request, {
      next: () => decoded,
      uid: text(decoded.tree, 'metadata', 'uid'),
      mayCreate: scope.rules.createOnUpdate && request.subresource === '',
      dryRun,
      manager,
    })
  })
}

export async function replace(
  engine: Engine,
  scope: RequestScope,
  request: WriteRequest,
  change: ObjectUpdate,
): Promise<WriteResult> {
  const { resource, objects } = scope
  const key = objectKey(resource.namespaced ? request.namespace : '', request.name)
  return engine.lock.hold(lockKey(resource, key), async () => {
    const current = objects.get(key)
    if (current === undefined && !change.mayCreate) throw notFound(resource, request.name)
    if (change.uid !== '' && change.uid !== (current?.uid ?? '')) {
      throw uidConflict(resource, key, request.name, change.uid, current?.uid ?? '')
    }
    if (current === undefined) return createInstead(engine, scope, request, change, key)
    requirePart(scope, request.subresource)
    const much = isMuch(request, current.bytes.length)
    const before = engine.known.read(lockKey(resource, key), current.version, current.bytes)
    const old = servedForm(resource, before)
    if (much) await pause(request)
    const drafted = change.next(old, much)
    const draft = drafted instanceof Promise ? await drafted : drafted
    if (change.own !== true) engine.guard?.(request, draft.tree, old)
    checkVersion(scope, request, current, draft.tree)
    if (much) await pause(request)
    const managed = record(engine, scope, request, change, old, draft.tree)
    if (much) await pause(request)
    if (managed !== undefined) setManaged(metaOf(draft.tree), managed, resource.custom)
    if (change.own !== true) fillStored(scope, draft.tree)
    if (much) await pause(request)
    const prepared = change.own === true ? [] : await prepare(engine, scope, request.subresource, draft, old)
    if (much) await pause(request)
    const noted = [...draft.warnings, ...prepared]
    return {
      code: 200,
      item: await store(engine, scope, { current, before, tree: draft.tree, dryRun: change.dryRun }),
      warnings: noted,
    }
  })
}

async function createInstead(
  engine: Engine,
  scope: RequestScope,
  request: WriteRequest,
  change: ObjectUpdate,
  key: string,
): Promise<WriteResult> {
  const much = isMuch(request)
  const drafted = change.next(undefined, much)
  const { tree, warnings, missing } = drafted instanceof Promise ? await drafted : drafted
  requireDefinition(engine, request, nameOf(tree))
  engine.guard?.(request, tree, undefined)
  wipeSystemFields(metaOf(tree))
  const managed = record(engine, scope, request, change, undefined, tree)
  if (much) {
    await pause(request)
    requireDefinition(engine, request, nameOf(tree))
  }
  if (managed !== undefined) setManaged(metaOf(tree), managed, scope.resource.custom)
  fillStored(scope, tree)
  return entering(engine, request, nameOf(tree), async () => {
    if (much) await pause(request)
    const made = await makeNew(engine, scope, tree, missing)
    if (much) await pause(request)
    return {
      code: 201,
      item: await storeNew(engine, scope, key, tree, change.dryRun),
      warnings: [...warnings, ...made],
    }
  })
}

/** Who owns what the write changes, its defaults included; undefined where that is as `next` left it. */
function record(
  engine: Engine,
  scope: RequestScope,
  { subresource }: WriteRequest,
  { manager }: ObjectUpdate,
  old: JsonObject | undefined,
  tree: JsonObject,
): Managed | undefined {
  if (manager === undefined) return undefined
  complete(scope, tree)
  return ownersAfter(engine, scope, { manager, subresource }, old, tree)
}

const podParts: ReadonlySet<string> = new Set(['ephemeralcontainers', 'resize'])

/** Throws for a subresource through which this kind is not written. */
function requirePart({ resource, rules, definition }: RequestScope, subresource: string): void {
  if (subresource === '' || subresource === 'scale') return
  const known = resource.custom
    ? subresource === 'status' && definition?.status === true
    : rules.reset[subresource] !== undefined || (isResource(resource, pods) && podParts.has(subresource))
  if (!known) throw methodNotServed()
}

/** The version a client names must be the current one; naming none is allowed where updates may be blind. */
function checkVersion(
  { resource, rules }: RequestScope,
  request: WriteRequest,
  current: StoredObject,
  tree: JsonObject,
): void {
  const version = text(tree, 'metadata', 'resourceVersion')
  if (version === '' || version === '0') {
    if (!rules.unconditionalUpdate) throw versionRequired(resource, request.name)
    return
  }
  const parsed = parseUint64(version)
  if ('fault' in parsed) throw plainFailure(parsed.fault)
  if (parsed.value !== BigInt(current.version)) throw modifiedConflict(resource, request.name)
}

/** Puts back what is not the client's, raises the generation, validates. Answers warnings. */
async function prepare(
  engine: Engine,
  scope: RequestScope,
  subresource: string,
  draft: Proposal,
  old: JsonObject,
): Promise<string[]> {
  const { tree } = draft
  const { rules, resource } = scope
  const meta = metaOf(tree)
  const oldMeta = metaOf(old)
  const warnings = dropDuplicateOwners(meta, equalJson)
  copyField(oldMeta, meta, 'generation')
  if (text(meta, 'uid') === '') copyField(oldMeta, meta, 'uid')
  copyField(oldMeta, meta, 'creationTimestamp')
  if (isDeleting(oldMeta)) copyField(oldMeta, meta, 'deletionTimestamp')
  if (meta.get('deletionGracePeriodSeconds') === undefined) copyField(oldMeta, meta, 'deletionGracePeriodSeconds')
  const partial = subresource !== '' && subresource !== 'scale'
  if (resource.custom && partial) keepAllButStatus(tree, old)
  else if (partial && rules.reset[subresource] === undefined) keepPodButPart(tree, old, subresource)
  else resetPaths(tree, old, rules.reset[partial ? subresource : 'update'] ?? [])
  complete(scope, tree)
  const raisedBy = rules.generation?.raisedBy ?? []
  if (!(partial && rules.reset[subresource] !== undefined) && !(resource.custom && partial)) {
    if (raisedBy.some((path) => changed(tree, old, path))) raiseGeneration(metaOf(tree), oldMeta)
  }
  const status = resource.custom && subresource === 'status'
  const whole = subresource === ''
  const judged = whole ? judgeDefinition(engine, scope, tree, old) : { errors: [], warnings: [] }
  const more = whole ? [...draft.missing, ...judged.errors] : []
  const unenforced = whole ? unenforcedWarnings(resource, tree, old) : []
  const found = await validateUpdate(scope, tree, old, { status, more })
  return [...warnings, ...found, ...judged.warnings, ...unenforced]
}

/** Of a custom resource, /status changes the status and nothing else, not even metadata. */
function keepAllButStatus(tree: JsonObject, old: JsonObject): void {
  const status = tree.get('status')
  const managed = metaOf(tree).get('managedFields')
  tree.clear()
  for (const [key, value] of old) if (key !== 'status') tree.set(key, cloneJson(value))
  if (status !== undefined) tree.set('status', status)
  keepManaged(metaOf(tree), managed)
}

function changed(tree: JsonObject, old: JsonObject, path: string): boolean {
  if (path !== everything) return !same(field(tree, ...path.split('.')), field(old, ...path.split('.')))
  const keys = new Set([...tree.keys(), ...old.keys()])
  keys.delete('metadata')
  return [...keys].some((key) => !(tree.has(key) && old.has(key) && equalJson(tree.get(key)!, old.get(key)!)))
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === undefined || b === undefined) return isNothing(a) && isNothing(b)
  return equalJson(a, b)
}

/** To Go, an empty map is as good as none. */
function isNothing(value: Json | undefined): boolean {
  return value === undefined || (isObject(value) && value.size === 0)
}

type Outcome = {
  readonly current: StoredObject
  /** The tree of `current`. */
  readonly before: JsonObject
  readonly tree: JsonObject
  readonly dryRun: boolean
}

async function store(
  engine: Engine,
  scope: RequestScope,
  { current, before, tree, dryRun }: Outcome,
): Promise<StoredObject> {
  const { resource, definition, objects } = scope
  const ends = isFinished(scope, tree, before)
  const form = storedForm(resource, definition, tree)
  // Nothing changed: nothing is written, no watcher hears of it.
  if (!ends && form.isSame(current, before)) return current
  if (dryRun || ends) {
    const item = form.unstored(current)
    if (ends && !dryRun) {
      await objects.remove(current.key)
      engine.wakeSweeper(false)
    }
    return item
  }
  const item = await objects.put(current.key, (version) => form.print(version))
  engine.known.remember(lockKey(resource, current.key), item.version, form.managedFields)
  return item
}

/** The last finalizer of a deleted object is gone, and no grace period runs. */
function isFinished({ resource }: RequestScope, tree: JsonObject, before: JsonObject): boolean {
  const oldMeta = metaOf(before)
  if (finalizersOf(metaOf(tree)).length > 0 || !isDeleting(oldMeta)) return false
  if ((wholeOf(oldMeta, 'deletionGracePeriodSeconds') ?? 0) !== 0) return false
  const held = field(tree, 'spec', 'finalizers')
  return !isResource(resource, namespaces) || !Array.isArray(held) || held.length === 0
}
