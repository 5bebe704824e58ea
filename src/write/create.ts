/** Create: a new object gets its name, uid and time, is completed and validated, and is stored if its key is free. */

import { cloneJson, equalJson, type JsonObject, parseJson, text } from '../json/json.ts'
import { objectKey } from '../kube/resource.ts'
import { alreadyExists, type FieldError, failure, forbidden, pathNotFound, StatusError } from '../kube/status.ts'
import { type Decoded, decodeObject, ensureNamespace } from './decode.ts'
import { judgeDefinition } from './definitions.ts'
import { type Engine, lockKey, type Scope, scopeOf } from './engine.ts'
import { storedForm } from './form.ts'
import { completeNew } from './kinds.ts'
import { dropDuplicateOwners, metaOf, nameOf, timestamp, wipeSystemFields } from './meta.ts'
import { generateName } from './names.ts'
import { entering } from './namespaces.ts'
import { readOptions } from './options.ts'
import { plainFailure } from './refusals.ts'
import { validateNew } from './validate.ts'
import { carrying } from './warnings.ts'
import type { Stored, WriteRequest, WriteResult } from './write.ts'

const attemptsMax = 8 // the real server's: enough for a million generated names under one prefix

export async function create(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const { dryRun, fieldValidation } = readOptions('CreateOptions', request)
  const { tree, warnings, missing } = await decodeObject(scope, request, fieldValidation)
  return carrying(warnings, () => admit(engine, scope, request, { tree, warnings, missing, dryRun }))
}

type Asked = Decoded & { readonly dryRun: boolean }

async function admit(engine: Engine, scope: Scope, request: WriteRequest, asked: Asked): Promise<WriteResult> {
  const { tree, warnings } = asked
  const meta = metaOf(tree)
  wipeSystemFields(meta)
  ensureNamespace(request, meta)
  // The body may have taken its time: the definition that was there before may be gone, or going.
  const definition = engine.registry.definitionOf(request.resource)
  if (request.resource.custom && definition === undefined) throw pathNotFound()
  if (definition?.terminating === true) {
    const why = 'create not allowed while custom resource definition is terminating'
    throw forbidden(request.resource, nameOf(tree), why)
  }
  warnings.push(...dropDuplicateOwners(meta, equalJson))
  return entering(engine, request, nameOf(tree), () => createNamed(engine, scope, request, asked))
}

async function createNamed(
  engine: Engine,
  scope: Scope,
  request: WriteRequest,
  { tree, warnings, missing, dryRun }: Asked,
): Promise<WriteResult> {
  const meta = metaOf(tree)
  const generated = nameOf(tree) === '' && text(meta, 'generateName') !== ''
  for (let attempt = 1; ; attempt++) {
    const draft = cloneJson(tree)
    const made = makeNew(engine, scope, draft, missing)
    const key = objectKey(request.resource.namespaced ? request.namespace : '', nameOf(draft))
    const found = await engine.lock.hold(lockKey(request.resource, key), async () => {
      if (isVersion(text(meta, 'resourceVersion')) && !dryRun) {
        throw plainFailure('resourceVersion should not be set on objects to be created')
      }
      const existing = scope.objects.get(key)
      return existing === undefined ? { item: await storeNew(scope, key, draft, dryRun) } : { existing }
    })
    if (found.item !== undefined) return { code: 201, item: found.item, warnings: [...warnings, ...made] }
    if (!generated) throw taken(scope, nameOf(draft), found.existing)
    if (attempt === attemptsMax) throw noFreeName(scope, nameOf(draft))
  }
}

/** Everything the server decides about a new object; throws 422 if the result is not valid. Answers warnings. */
export function makeNew(engine: Engine, scope: Scope, tree: JsonObject, missing: readonly FieldError[]): string[] {
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
  return [...validateNew(scope, tree, [...missing, ...errors]), ...warnings]
}

/** Under the lock of the key, which is known to be free. */
export async function storeNew(scope: Scope, key: string, tree: JsonObject, dryRun: boolean): Promise<Stored> {
  const form = storedForm(scope.resource, scope.definition, tree)
  return dryRun ? form.unstored(undefined) : scope.objects.put(key, (assigned) => form.print(assigned))
}

/** What is no number at all is ignored, as the real server does. */
function isVersion(version: string): boolean {
  return /^0*[1-9][0-9]*$/.test(version)
}

function taken({ resource }: Scope, name: string, existing: Stored | undefined): StatusError {
  const error = alreadyExists(resource, name)
  const deleting = existing !== undefined && text(parseJson(existing.bytes), 'metadata', 'deletionTimestamp') !== ''
  if (!deleting) return error
  return new StatusError({ ...error.status, message: `object is being deleted: ${error.message}` })
}

function noFreeName({ resource }: Scope, name: string): StatusError {
  const { status } = alreadyExists(resource, name)
  const message = `${status.message}, the server was not able to generate a unique name for the object`
  return failure(409, 'AlreadyExists', message, { ...status.details, retryAfterSeconds: 1 })
}
