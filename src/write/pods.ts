/** The subresources of pods that bind them to a node and evict them. */

import { cloneJson, field, isObject, type Json, type JsonObject, printJson, text } from '../kube/json/json.ts'
import { quote } from '../kube/schema/values.ts'
import { badRequest, conflict, type Status } from '../kube/status.ts'
import { decodeKind } from './decode.ts'
import { deleteKey } from './delete.ts'
import { type Engine, scopeOf } from './engine.ts'
import { metaOf, timestamp } from './meta.ts'
import { plainDelete, readDeleteOptions, readOptions } from './options.ts'
import { plainFailure } from './refusals.ts'
import { replace } from './update.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest, WriteResult } from './write.ts'

const bindingKind = { group: '', version: 'v1', kind: 'Binding' }
const evictionKind = { group: 'policy', version: 'v1', kind: 'Eviction' }

/** POST pods/x/binding (and the old POST bindings): the pod gets its node, once. */
export async function bindPod(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const { dryRun, fieldValidation } = readOptions('CreateOptions', request)
  const { tree, warnings } = await decodeKind(request, bindingKind, fieldValidation)
  return carrying(warnings, async () => {
    await bind(engine, request, tree, dryRun)
    return done(warnings)
  })
}

async function bind(engine: Engine, request: WriteRequest, binding: JsonObject, dryRun: boolean): Promise<void> {
  const name = text(binding, 'metadata', 'name')
  if (request.name !== '' && name !== request.name) {
    throw badRequest('name in URL does not match name in Binding object')
  }
  const node = text(binding, 'target', 'name')
  const kind = text(binding, 'target', 'kind')
  const found: string[] = []
  if (kind !== '' && kind !== 'Node') {
    found.push(`target.kind: Unsupported value: ${quote(kind)}: supported values: "Node", "<empty>"`)
  }
  if (node === '') found.push('target.name: Required value')
  if (found.length > 0) throw plainFailure(found.length === 1 ? (found[0] as string) : `[${found.join(', ')}]`)
  const pods = engine.catalog.find('', 'v1', 'pods')?.resource ?? request.resource
  const scope = scopeOf(engine, pods)
  const now = timestamp(engine.clock.now())
  const next = (old: JsonObject | undefined) => ({
    tree: bound(cloneJson(old ?? new Map<string, Json>()), binding, node, now),
    warnings: [],
    missing: [],
  })
  const target: WriteRequest = { ...request, resource: pods, name, subresource: '' }
  const uid = text(binding, 'metadata', 'uid')
  await replace(engine, scope, target, { next, uid, mayCreate: false, own: true, dryRun })
}

function bound(pod: JsonObject, binding: JsonObject, node: string, now: string): JsonObject {
  const name = text(pod, 'metadata', 'name')
  const refuse = (why: string) => conflict({ group: '', resource: 'pods/binding' }, name, why)
  if (text(pod, 'metadata', 'deletionTimestamp') !== '') {
    throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`)
  }
  const assigned = text(pod, 'spec', 'nodeName')
  if (assigned !== '') throw refuse(`pod ${name} is already assigned to node "${assigned}"`)
  const gates = field(pod, 'spec', 'schedulingGates')
  if (Array.isArray(gates) && gates.length > 0) throw refuse(`pod ${name} has non-empty .spec.schedulingGates`)
  objectAt(pod, 'spec').set('nodeName', node)
  const meta = metaOf(pod)
  for (const map of ['annotations', 'labels']) {
    const added = field(binding, 'metadata', map)
    if (isObject(added)) for (const [key, value] of added) objectAt(meta, map).set(key, value)
  }
  const version = text(binding, 'metadata', 'resourceVersion')
  if (version !== '') meta.set('resourceVersion', version)
  setCondition(pod, 'PodScheduled', now, [])
  return pod
}

function setCondition(pod: JsonObject, type: string, now: string, why: readonly (readonly [string, Json])[]): void {
  const status = objectAt(pod, 'status')
  const conditions = status.get('conditions')
  const others = (Array.isArray(conditions) ? conditions : []).filter((one) => text(one, 'type') !== type)
  const condition: JsonObject = new Map<string, Json>([
    ['type', type],
    ['status', 'True'],
    ['lastProbeTime', null],
    ['lastTransitionTime', now],
    ...why,
  ])
  status.set('conditions', [...others, condition])
}

function disrupted(pod: JsonObject, now: string): JsonObject {
  const why = [['reason', 'EvictionByEvictionAPI'] as const, ['message', 'Eviction API: evicting'] as const]
  setCondition(pod, 'DisruptionTarget', now, why)
  return pod
}

/** POST pods/x/eviction: a delete; the budgets that could forbid it have no controller here. */
export async function evictPod(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const { dryRun, fieldValidation } = readOptions('CreateOptions', request)
  const { tree, warnings } = await decodeKind(request, evictionKind, fieldValidation)
  return carrying(warnings, async () => {
    await evict(engine, request, tree, dryRun)
    return done(warnings)
  })
}

async function evict(engine: Engine, request: WriteRequest, tree: JsonObject, dryRun: boolean): Promise<void> {
  const name = text(tree, 'metadata', 'name')
  if (name !== request.name) {
    throw badRequest('name in URL does not match name in Eviction object')
  }
  const asked = tree.get('deleteOptions')
  const query = () => undefined
  const options = isObject(asked)
    ? await readDeleteOptions({ ...request, query, format: 'json', body: Buffer.from(printJson(asked)) })
    : plainDelete
  const scope = scopeOf(engine, request.resource)
  const stamp = timestamp(engine.clock.now())
  const next = (old: JsonObject | undefined) => ({
    tree: disrupted(cloneJson(old ?? new Map<string, Json>()), stamp),
    warnings: [],
    missing: [],
  })
  const marked: WriteRequest = { ...request, subresource: '' }
  await replace(engine, scope, marked, { next, uid: '', mayCreate: false, own: true, dryRun })
  await deleteKey(engine, scope, `${request.namespace}/${request.name}`, {
    ...options,
    dryRun: dryRun || options.dryRun,
  })
}

function objectAt(tree: JsonObject, key: string): JsonObject {
  const held = tree.get(key)
  if (isObject(held)) return held
  const made: JsonObject = new Map()
  tree.set(key, made)
  return made
}

function done(warnings: readonly string[]): WriteResult {
  const status: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }
  return { code: 201, status, warnings }
}
