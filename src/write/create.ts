/** Create: a new object gets its name, uid and time, is completed and validated, and is stored if its key is free. */

import { cloneJson, equalJson, type JsonObject, parseJson, text } from '../kube/json/json.ts'
import { objectKey } from '../kube/resource.ts'
import { alreadyExists, type FieldError, failure, forbidden, pathNotFound, StatusError } from '../kube/status.ts'
import { type Decoded, decodeObject, ensureNamespace } from './decode.ts'
import { judgeDefinition } from './definitions.ts'
import { definitionOf, type Engine, lockKey, type RequestScope, scopeOf } from './engine.ts'
import { storedForm } from './form.ts'
import { complete, completeNew } from './kinds.ts'
import { dropDuplicateOwners, metaOf, nameOf, timestamp, wipeSystemFields } from './meta.ts'
import { generateName } from './names.ts'
import { entering } from './namespaces.ts'
import { readOptions } from './options.ts'
import { ownersAfter, setManaged } from './ownership.ts'
import { isMuch, pause } from './pause.ts'
import { plainFailure } from './refusals.ts'
import { fillStored } from './shape.ts'
import { unenforcedWarnings } from './unenforced.ts'
import { validateNew } from './validate.ts'
import { carrying } from './warnings.ts'
import type { StoredObject, WriteRequest, WriteResult } from './write.ts'

const attemptsMax = 8 // the real server's: enough for a million generated names under one prefix

export async function create(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const { dryRun, fieldValidation, manager } = readOptions('CreateOptions', request)
  const { tree, warnings, missing } = await decodeObject(scope, request, fieldValidation)
  return carrying(warnings, () => admit(engine, scope, request, { tree, warnings, missing, dryRun, manager }))
}

type Asked = Decoded & { readonly dryRun: boolean; readonly manager: string }

async function admit(engine: Engine, scope: RequestScope, request: WriteRequest, asked: Asked): Promise<WriteResult> {
  const { tree, warnings } = asked
  const much = isMuch(request)
  if (much) await pause(request)
  const meta = metaOf(tree)
  wipeSystemFields(meta)
  ensureNamespace(request, meta)
  requireDefinition(engine, request, nameOf(tree))
  warnings.push(...dropDuplicateOwners(meta, equalJson))
  complete(scope, tree)
  engine.guard?.(request, tree, undefined)
  const managed = ownersAfter(engine, scope, { manager: asked.manager, subresource: '' }, undefined, tree)
  if (much) {
    await pause(request)
    requireDefinition(engine, request, nameOf(tree))
  }
  setManaged(meta, managed, scope.resource.custom)
  fillStored(scope, tree)
  const named = () => createNamed(engine, scope, request, asked)
  return entering(engine, request, nameOf(tree), () => (much ? pause(request).then(named) : named()))
}

/** The body may have taken its time: the definition that was there before may be gone, or going. */
export function requireDefinition(engine: Engine, { resource }: WriteRequest, name: string): void {
  const definition = definitionOf(engine, resource)
  if (resource.custom && definition === undefined) throw pathNotFound()
  if (definition?.terminating !== true) return
  throw forbidden(resource, name, 'create not allowed while custom resource definition is terminating')
}

async function createNamed(
  engine: Engine,
  scope: RequestScope,
  request: WriteRequest,
  { tree, warnings, missing, dryRun }: Asked,
): Promise<WriteResult> {
  const meta = metaOf(tree)
  const generated = nameOf(tree) === '' && text(meta, 'generateName') !== ''
  for (let attempt = 1; ; attempt++) {
    const draft = generated ? copied(tree) : tree
    const made = await makeNew(engine, scope, draft, missing)
    if (isMuch(request)) await pause(request)
    const key = objectKey(request.resource.namespaced ? request.namespace : '', nameOf(draft))
    const found = await engine.lock.hold(lockKey(request.resource, key), async () => {
      if (isVersion(text(meta, 'resourceVersion')) && !dryRun) {
        throw plainFailure('resourceVersion should not be set on objects to be created')
      }
      const existing = scope.objects.get(key)
      return existing === undefined ? { item: await storeNew(engine, scope, key, draft, dryRun) } : { existing }
    })
    if (found.item !== undefined) return { code: 201, item: found.item, warnings: [...warnings, ...made] }
    if (!generated) throw taken(scope, nameOf(draft), found.existing)
    if (attempt === attemptsMax) throw noFreeName(scope, nameOf(draft))
  }
}

/** Everything the server decides about a new object; throws 422 if the result is not valid. Answers warnings. */
export async function makeNew(
  engine: Engine,
  scope: RequestScope,
  tree: JsonObject,
  missing: readonly FieldError[],
): Promise<string[]> {
  const meta = metaOf(tree)
  const now = engine.clock.now()
  if (nameOf(tree) === '' && text(meta, 'generateName') !== '') {
    meta.set('name', generateName(text(meta, 'generateName'), engine.random))
  }
  meta.set('uid', engine.newUid())
  meta.set('creationTimestamp', timestamp(now))
  if (scope.rules.generation?.created === true) meta.set('generation', 1)
  completeNew(scope, tree, now)
  const { errors, warnings } = judgeDefinition(engine, scope, tree, undefined)
  const unenforced = unenforcedWarnings(scope.resource, tree, undefined)
  return [...(await validateNew(scope, tree, [...missing, ...errors])), ...warnings, ...unenforced]
}

/** Under the lock of the key, which is known to be free. */
export async function storeNew(
  engine: Engine,
  scope: RequestScope,
  key: string,
  tree: JsonObject,
  dryRun: boolean,
): Promise<StoredObject> {
  const form = storedForm(scope.resource, scope.definition, tree)
  if (dryRun) return form.unstored(undefined)
  const item = await scope.objects.put(key, (assigned) => form.print(assigned))
  engine.known.remember(lockKey(scope.resource, key), item.version, form.managedFields)
  return item
}

/** A copy to be completed; marks are printed and never changed. */
function copied(tree: JsonObject): JsonObject {
  const copy: JsonObject = new Map()
  for (const [key, value] of tree) if (key !== 'metadata') copy.set(key, cloneJson(value))
  const meta: JsonObject = new Map()
  for (const [key, value] of metaOf(tree)) meta.set(key, key === 'managedFields' ? value : cloneJson(value))
  return copy.set('metadata', meta)
}

/** What is no number at all is ignored, as the real server does. */
function isVersion(version: string): boolean {
  return /^0*[1-9][0-9]*$/.test(version)
}

function taken({ resource }: RequestScope, name: string, existing: StoredObject | undefined): StatusError {
  const error = alreadyExists(resource, name)
  const deleting = existing !== undefined && text(parseJson(existing.bytes), 'metadata', 'deletionTimestamp') !== ''
  if (!deleting) return error
  return new StatusError({ ...error.status, message: `object is being deleted: ${error.message}` })
}

function noFreeName({ resource }: RequestScope, name: string): StatusError {
  const { status } = alreadyExists(resource, name)
  const message = `${status.message}, the server was not able to generate a unique name for the object`
  return failure(409, 'AlreadyExists', message, { ...status.details, retryAfterSeconds: 1 })
}
