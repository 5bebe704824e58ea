/** The scale subresource: the replicas of an autoscaling/v1 Scale written back into the object it was read out of. */

import { cloneJson, field, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { applyPatch } from '../kube/patch/patch.ts'
import { apiVersion } from '../kube/resource.ts'
import { fillDefaults } from '../kube/schema/defaulting.ts'
import { invalidField } from '../kube/schema/errors.ts'
import { pathsOf, scaleOf } from '../kube/schema/scale.ts'
import { putAt } from '../kube/schema/scalepaths.ts'
import { invalid } from '../kube/status.ts'
import type { Managed } from './apply/managed/managed.ts'
import { fromScale, scaleVersion, toScale } from './apply/managed/scale.ts'
import type { Versions } from './apply/owner.ts'
import { configIn, findingsOf, readConfig } from './applying.ts'
import { mergeSchemaFor } from './components.ts'
import { decodeKind, ensureName, ensureNamespace, shapeOtherKind } from './decode.ts'
import { type Engine, type RequestScope, scopeOf } from './engine.ts'
import { servedTree } from './form.ts'
import { builtinType, replicasPaths } from './kindversions.ts'
import { applyTo, ownersOf } from './merging.ts'
import { metaOf } from './meta.ts'
import { readOptions } from './options.ts'
import { recordIn, setManaged } from './ownership.ts'
import { accept, readPatch } from './patch.ts'
import { methodNotServed, plainFailure } from './refusals.ts'
import { shapeKind } from './shape.ts'
import { type Proposal, replace } from './update.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest, WriteResult } from './write.ts'

const scaleKind = { group: 'autoscaling', version: 'v1', kind: 'Scale' }

export async function updateScale(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const { dryRun, fieldValidation, manager } = readOptions('UpdateOptions', request)
  const { tree, warnings } = await decodeKind(request, scaleKind, fieldValidation)
  return carrying(warnings, () => {
    ensureNamespace(request, metaOf(tree))
    ensureName(request, tree)
    const uid = text(tree, 'metadata', 'uid')
    const marked = recording(engine, manager, () => ({ tree, warnings, missing: [] }))
    return writeScale(engine, scope, request, marked, { uid, dryRun })
  })
}

export async function patchScale(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  if (request.patchKind === 'apply') return applyScale(engine, request)
  const scope = scopeOf(engine, request.resource)
  const read = readPatch(request)
  const { dryRun, fieldValidation, manager } = readOptions('PatchOptions', request)
  const schema = mergeSchemaFor(scaleKind)
  const scaled = (scale: JsonObject) => {
    const apply = () => applyPatch(read.kind, scale, read.tree, schema)
    const patched = apply()
    const own = (tree: JsonObject) => shapeKind(scaleKind, tree)
    const other = (tree: JsonObject) => shapeOtherKind(scaleKind, tree)
    const outcome = { read, patched, apply, fieldValidation, noted: [] }
    const { warnings } = accept({ ...scaleKind, custom: false }, { own, other }, outcome)
    ensureNamespace(request, metaOf(patched))
    ensureName(request, patched)
    return { tree: patched, warnings, missing: [] }
  }
  return writeScale(engine, scope, request, recording(engine, manager, scaled), { uid: '', dryRun })
}

async function applyScale(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const { dryRun, fieldValidation, manager, force } = readOptions('PatchOptions', request)
  const read = await readConfig(request, fieldValidation)
  const mark = { manager, subresource: 'scale' }
  const applied: Marked = (scale, owners) => {
    const config = configIn(read)
    const applying = { kind: scaleKind, versions: scaleVersions, mark, force, config }
    const { tree, managed } = applyTo(engine, applying, scale, owners)
    const warnings = findingsOf(read, fieldValidation)
    const { fault } = shapeKind(scaleKind, tree)
    if (fault !== undefined) throw plainFailure(fault)
    ensureNamespace(request, metaOf(tree))
    ensureName(request, tree)
    return { tree, warnings, missing: [], managed }
  }
  return writeScale(engine, scope, request, applied, { uid: '', dryRun })
}

/** The Scale as it shall be, from the one there is, and who owns what of it. */
type Marked = (current: JsonObject, owners: Managed) => Proposal & { readonly managed: Managed }

const scaleVersions: Versions = {
  typeOf: (version) => (version === scaleVersion ? builtinType(scaleKind) : undefined),
  convert: (tree) => tree,
}

function recording(engine: Engine, manager: string, scaled: (current: JsonObject) => Proposal): Marked {
  return (current, owners) => {
    const draft = scaled(current)
    const mark = { manager, subresource: 'scale' }
    return {
      ...draft,
      managed: recordIn(engine, { kind: scaleKind, versions: scaleVersions, mark }, owners, current, draft.tree),
    }
  }
}

async function writeScale(
  engine: Engine,
  scope: RequestScope,
  request: WriteRequest,
  scaled: Marked,
  { uid, dryRun }: { readonly uid: string; readonly dryRun: boolean },
): Promise<WriteResult> {
  const { resource, definition, objects } = scope
  const kept = { custom: resource.custom, scale: definition?.scale }
  const paths = pathsOf(kept)
  const pathIn = replicasPaths(engine, resource)
  const next = (old: JsonObject | undefined) => {
    const tree = cloneJson(old ?? new Map<string, Json>())
    const stored = objects.get(resource.namespaced ? `${request.namespace}/${request.name}` : request.name)
    const current = stored === undefined ? new Map() : scaleOf(kept, servedTree(resource, stored))
    const owners = ownersOf(old)
    const { tree: scale, warnings, managed } = scaled(current, toScale(owners, pathIn))
    setManaged(metaOf(tree), fromScale(owners, managed, apiVersion(resource), pathIn), resource.custom)
    putAt(tree, paths.specReplicasPath, replicasOf(scale, request, resource.custom))
    if (resource.custom) fillDefaults(tree, definition?.schema)
    const version = text(scale, 'metadata', 'resourceVersion')
    if (version !== '') metaOf(tree).set('resourceVersion', version)
    return { tree, warnings, missing: [] }
  }
  const { item, warnings } = await replace(engine, scope, request, { next, uid, mayCreate: false, dryRun })
  if (item === undefined) throw methodNotServed()
  return { code: 200, review: scaleOf(kept, servedTree(resource, item)), warnings }
}

function replicasOf(scale: JsonObject, request: WriteRequest, custom: boolean): number {
  const value = field(scale, 'spec', 'replicas')
  const replicas = typeof value === 'number' ? value : 0
  // Of custom resources the definition's own checks complain.
  if (replicas < 0 && !custom) {
    const found = [invalidField('spec.replicas', replicas, 'must be greater than or equal to 0')]
    throw invalid('autoscaling', 'Scale', request.name, found)
  }
  return replicas
}
