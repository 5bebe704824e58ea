/**
 * Definitions of custom resources around writes: judged and given their status at once (a real server's controllers do
 * it in steps), marked when they are deleted, and looked at again when the names of another one become free.
 */

import { equalJson, field, isObject, type Json, type JsonObject, parseJson, text } from '../kube/json/json.ts'
import { isResource } from '../kube/resource.ts'
import { definitionWarnings } from '../kube/schema/advice.ts'
import type { CheckResult } from '../kube/schema/check.ts'
import { validateDefinition } from '../kube/schema/definition.ts'
import { definitionStatus } from '../kube/schema/naming.ts'
import { definitions, type Engine, lockKey, type RequestScope } from './engine.ts'
import { storedForm } from './form.ts'
import { finalizersOf, isDeleting, metaOf, setFinalizers, timestamp } from './meta.ts'
import { recordOwn } from './ownership.ts'
import type { StoredObject } from './write.ts'

/** Holds a deleted definition until its objects are gone. */
export const cleanupFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

/** What is wrong with a definition; a sound one gets its status. Other kinds have nothing to fear. */
export function judgeDefinition(
  engine: Engine,
  scope: RequestScope,
  tree: JsonObject,
  old: JsonObject | undefined,
): CheckResult {
  if (!isResource(scope.resource, definitions)) return { errors: [], warnings: [] }
  const errors = validateDefinition(tree, old)
  if (errors.length > 0) return { errors, warnings: [] }
  const status = statusOf(engine, tree)
  const before = field(old, 'status') ?? statusAtFirst(status)
  tree.set('status', status)
  recordOwn(engine, scope, { manager: own, subresource: 'status' }, new Map(tree).set('status', before), tree)
  return { errors, warnings: definitionWarnings(tree, old) }
}

/** Under this name the real server's controllers write. */
const own = 'kube-apiserver'

/** The status of a definition that no controller has looked at yet. */
function statusAtFirst(status: JsonObject): JsonObject {
  return new Map<string, Json>([
    ['conditions', null],
    ['acceptedNames', new Map()],
    ['storedVersions', status.get('storedVersions') ?? null],
  ])
}

function statusOf(engine: Engine, tree: JsonObject): JsonObject {
  const trees = ofGroup(engine, text(tree, 'spec', 'group')).map(({ bytes }) => parseJson(bytes) as JsonObject)
  return definitionStatus(tree, trees, timestamp(engine.clock.now()))
}

/** A definition is called by its plural and its group: those of other groups, perhaps a thousand, are not read. */
function ofGroup(engine: Engine, group: string): StoredObject[] {
  return engine
    .objectsOf(definitions)
    .select(undefined)
    .filter(({ key }) => key.endsWith(`.${group}`))
}

/** A deleted definition waits for its objects, and says so. */
export function markDefinition(tree: JsonObject, now: number): void {
  const meta = metaOf(tree)
  const held = finalizersOf(meta)
  if (!held.includes(cleanupFinalizer)) setFinalizers(meta, [...held, cleanupFinalizer])
  const status = tree.get('status')
  const before = field(status, 'conditions')
  const others = (Array.isArray(before) ? before : []).filter((one) => text(one, 'type') !== 'Terminating')
  const terminating: JsonObject = new Map<string, Json>([
    ['type', 'Terminating'],
    ['status', 'True'],
    ['lastTransitionTime', timestamp(now)],
    ['reason', 'InstanceDeletionPending'],
    ['message', 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon'],
  ])
  tree.set('status', new Map([...(isObject(status) ? status : []), ['conditions', [...others, terminating]]]))
}

/** One definition is gone: another of its group may now have the names it wanted. */
export async function settleNames(engine: Engine, group: string): Promise<void> {
  const served = engine.catalog.find(definitions.group, definitions.version, definitions.resource)?.resource
  if (served === undefined) return
  const objects = engine.objectsOf(definitions)
  for (const { key } of ofGroup(engine, group)) {
    await engine.lock.hold(lockKey(served, key), async () => {
      const current = objects.get(key)
      if (current === undefined) return
      const tree = parseJson(current.bytes) as JsonObject
      if (text(tree, 'spec', 'group') !== group || isDeleting(metaOf(tree))) return
      const status = statusOf(engine, tree)
      if (equalJson(status, tree.get('status') ?? null)) return
      tree.set('status', status)
      const form = storedForm(served, undefined, tree)
      await objects.put(key, (version) => form.print(version))
    })
  }
}
