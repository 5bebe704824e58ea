/**
 * Server-side apply: the body states what its manager wants of the object, and the object is made to agree, or created.
 * From there on it is an update like any other.
 */

import { isObject, type Json, JsonError, type JsonObject, parseJson, text } from '../kube/json/json.ts'
import { parseYaml, repeatedKeys } from '../kube/json/yaml/yaml.ts'
import { badRequest, conflict } from '../kube/status.ts'
import { goKind } from './body.ts'
import { ensureName, ensureNamespace } from './decode.ts'
import { type Engine, type RequestScope, scopeOf } from './engine.ts'
import { versionsFor } from './kindversions.ts'
import { type AppliedObject, applyTo, ownersOf } from './merging.ts'
import { metaOf } from './meta.ts'
import { type FieldValidation, readOptions } from './options.ts'
import { setManaged } from './ownership.ts'
import { isMuch, pause } from './pause.ts'
import { plainFailure } from './refusals.ts'
import { inVersion, shapeApplied } from './shape.ts'
import { type Proposal, replace } from './update.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest, WriteResult } from './write.ts'

export async function applyPatchTo(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  const scope = scopeOf(engine, request.resource)
  const { dryRun, fieldValidation, manager, force } = readOptions('PatchOptions', request)
  const read = await readConfig(request, fieldValidation)
  const mark = { manager, subresource: request.subresource }
  const versions = versionsFor(engine, scope, request.subresource)
  const noted: string[] = []
  const next = (old: JsonObject | undefined, much: boolean) => {
    const config = configIn(read)
    const live = old === undefined ? undefined : inVersion(scope, old)
    const applied = applyTo(engine, { kind: scope.resource, versions, mark, force, config }, live, ownersOf(old))
    noted.push(...findingsOf(read, fieldValidation))
    const settle = () => ({ ...settled(scope, request, applied, old), warnings: noted })
    return much ? pause(request).then(settle) : settle()
  }
  const mayCreate = request.subresource === ''
  return carrying(noted, () => replace(engine, scope, request, { next, uid: '', mayCreate, dryRun }))
}

/** What came out of an apply, as if it had been sent. */
function settled(
  scope: RequestScope,
  request: WriteRequest,
  { tree, managed }: AppliedObject,
  old: JsonObject | undefined,
): Pick<Proposal, 'tree' | 'missing'> {
  const { resource } = scope
  const { fault, missing } = shapeApplied(scope, tree, old)
  if (fault !== undefined) throw plainFailure(fault)
  const uid = text(tree, 'metadata', 'uid')
  if (old === undefined && uid !== '') {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`
    throw conflict(resource, request.name, why)
  }
  const meta = metaOf(tree)
  ensureNamespace(request, meta)
  ensureName(request, tree)
  setManaged(meta, managed, resource.custom)
  return { tree, missing }
}

/** A body that was read: what it says, or why it cannot be said. */
export type Config = { readonly tree: JsonObject; readonly repeated: readonly string[] } | { readonly fault: string }

/** JSON and YAML are the same to the real server; most send JSON. */
export async function readConfig(
  request: Pick<WriteRequest, 'body' | 'who'>,
  fieldValidation: FieldValidation,
): Promise<Config> {
  const source = request.body ?? Buffer.alloc(0)
  const between = isMuch(request) ? () => pause(request) : undefined
  let tree: Json
  let twice = false
  try {
    try {
      tree = parseJson(source, { duplicates: () => (twice = true) })
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      tree = source.length === 0 ? null : await parseYaml(source, between)
      twice = true
    }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return { fault: error.message }
  }
  if (tree !== null && !isObject(tree)) {
    const type = `json: cannot unmarshal ${goKind(tree)} into Go value of type map[string]interface {}`
    return { fault: `error unmarshaling JSON: while decoding JSON: ${type}` }
  }
  const repeated = twice && fieldValidation !== 'Ignore' ? await repeatedKeys(source, between) : []
  return { tree: tree ?? new Map(), repeated }
}

export function configIn(read: Config): JsonObject {
  if ('fault' in read) throw badRequest(`error decoding YAML: ${read.fault}`)
  return read.tree
}

/** Keys that stand twice; only now, because the real server first looks at what the body says. */
export function findingsOf(read: Config, fieldValidation: FieldValidation): readonly string[] {
  if ('fault' in read || read.repeated.length === 0 || fieldValidation === 'Ignore') return []
  if (fieldValidation === 'Warn') return read.repeated
  const lines = read.repeated.map((line) => `\n  ${line}`).join('')
  throw badRequest(`error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:${lines}`)
}
