/**
 * Patch: JSON, merge and strategic; apply has a file of its own. The patch is applied to the stored object under its lock,
 * then it is an update.
 */

import { bytewise, goValue } from '../kube/json/goformat.ts'
import {
  field,
  isObject,
  type Json,
  JsonError,
  type JsonObject,
  parseJson,
  printJson,
  text,
} from '../kube/json/json.ts'
import { applyPatch, type PatchKind } from '../kube/patch/patch.ts'
import { apiVersion } from '../kube/resource.ts'
import { invalidField } from '../kube/schema/errors.ts'
import { quote } from '../kube/schema/values.ts'
import { badRequest, invalid, type StatusError } from '../kube/status.ts'
import { applyPatchTo } from './applying.ts'
import { mergeSchemaFor } from './components.ts'
import {
  type ExpectedKind,
  ensureName,
  ensureNamespace,
  kindMismatch,
  type Mismatch,
  type Shapes,
  shapeOther,
} from './decode.ts'
import { type Engine, scopeOf } from './engine.ts'
import { metaOf } from './meta.ts'
import { type FieldValidation, readOptions } from './options.ts'
import { withoutManaged } from './ownership.ts'
import { pause } from './pause.ts'
import { noStrategicPatch, unusablePatch } from './refusals.ts'
import { shapeObject } from './shape.ts'
import { type Proposal, replace } from './update.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest, WriteResult } from './write.ts'

export type Patch = { readonly kind: PatchKind; readonly tree: Json; readonly duplicates: readonly string[] }

export async function patch(engine: Engine, request: WriteRequest): Promise<WriteResult> {
  if (request.patchKind === 'apply') return applyPatchTo(engine, request)
  const scope = scopeOf(engine, request.resource)
  const read = readPatch(request)
  const { dryRun, fieldValidation, manager } = readOptions('PatchOptions', request)
  const noted: string[] = []
  const unmarked = !touchesMarks(read)
  const next = (old: JsonObject | undefined, much: boolean) => {
    const schema = read.kind === 'strategic' ? mergeSchemaFor(request.resource) : undefined
    const apply = (base: JsonObject = old ?? new Map()) => applyPatch(read.kind, base, read.tree, schema)
    // Marks that the patch says nothing about stay as they are, and need not be looked at.
    const patched = unmarked && old !== undefined ? apply(withoutManaged(old)) : apply()
    const shape = (tree: JsonObject) => shapeObject(scope, tree, old)
    const other = (tree: JsonObject) => shapeOther(scope, tree)
    const outcome = { read, patched, apply, fieldValidation, noted }
    const judge = () => {
      const accepted = accept(request.resource, { own: shape, other }, outcome)
      for (const warning of accepted.warnings) noted.push(warning)
      ensureNamespace(request, metaOf(patched))
      ensureName(request, patched)
      return { tree: patched, ...accepted }
    }
    return much ? pause(request).then(judge) : judge()
  }
  return carrying(noted, () => replace(engine, scope, request, { next, uid: '', mayCreate: false, dryRun, manager }))
}

/** Whether a patch may say something about metadata.managedFields, or about all that is there. */
function touchesMarks({ kind, tree }: Patch): boolean {
  if (kind === 'json') {
    const paths = Array.isArray(tree) ? tree.flatMap((one) => [field(one, 'path'), field(one, 'from')]) : []
    return paths.some((path) => typeof path === 'string' && /^(\/metadata(\/managedFields.*)?)?$/.test(path))
  }
  const meta = field(tree, 'metadata')
  if (!isObject(tree) || (tree.has('metadata') && !isObject(meta))) return true
  const names = [...tree.keys(), ...(isObject(meta) ? meta.keys() : [])]
  return names.some((name) => name === 'managedFields' || name.startsWith('$'))
}

/** The patch itself: what kind of patch is allowed here, and whether it can be read. */
export function readPatch(request: WriteRequest): Patch {
  const { patchKind: kind, resource } = request
  if (kind === undefined || kind === 'apply') throw badRequest('a patch needs a patch type')
  if (kind === 'strategic' && resource.custom) throw noStrategicPatch()
  const duplicates: string[] = []
  try {
    const tree = parseJson(request.body ?? Buffer.alloc(0), { duplicates: (path) => duplicates.push(path) })
    return { kind, tree, duplicates }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw badRequest(kind === 'strategic' ? error.message : `error decoding patch: ${error.message}`)
  }
}

type Outcome = {
  readonly read: Patch
  readonly patched: JsonObject
  /** Makes the same again: checking changes the tree, and a refusal shows what was there before. */
  readonly apply: () => JsonObject
  readonly fieldValidation: FieldValidation
  /** Warnings that go with a refusal too. */
  readonly noted: string[]
}

type Accepted = Pick<Proposal, 'warnings' | 'missing'>

/** Checks what came out of the patch as if it had been sent; the refusal quotes it. */
export function accept(
  expected: ExpectedKind,
  shapes: Shapes,
  { read, patched, apply, fieldValidation, noted }: Outcome,
): Accepted {
  const shown = () => quote(read.kind === 'strategic' ? goValue(read.tree) : printJson(topSorted(apply())))
  if (read.kind === 'strategic') {
    // A strategic patch is merged into a typed object, which has no kind to change.
    patched.set('kind', expected.kind)
    patched.set('apiVersion', apiVersion(expected))
  }
  const mismatch = kindMismatch(patched, expected)
  if (mismatch !== undefined) {
    const { fault, unknown } = shapes.other(patched)
    const findings = unknown.map((path) => `unknown field ${quote(path)}`)
    if (findings.length > 0 && fieldValidation === 'Strict') {
      throw unusablePatch(shown(), `strict decoding error: ${findings.join(', ')}`)
    }
    if (fieldValidation === 'Warn') for (const finding of findings) noted.push(finding)
    throw expected.custom ? otherKind(expected, patched, mismatch) : unusablePatch(shown(), fault ?? mismatch.why)
  }
  const { fault, unknown, missing } = shapes.own(patched)
  if (fault !== undefined) throw unusablePatch(shown(), read.kind === 'strategic' ? converted(fault) : fault)
  const prefix = read.kind === 'json' ? 'json patch ' : ''
  const findings = [
    ...read.duplicates.map((path) => `${prefix}duplicate field ${quote(path)}`),
    ...unknown.map((path) => `unknown field ${quote(path)}`),
  ]
  if (findings.length > 0 && fieldValidation === 'Strict') {
    throw unusablePatch(shown(), `strict decoding error: ${findings.join(', ')}`)
  }
  return { warnings: fieldValidation === 'Warn' ? findings : [], missing }
}

const reflectKinds: Readonly<Record<string, string>> = { number: 'int64', array: 'slice', object: 'map' }

/** A strategic patch is converted rather than decoded, and what does not fit is reported in other words. */
function converted(fault: string): string {
  const found = /^json: cannot unmarshal (\w+)(?: (\S+))? into .* of type (.+)$/.exec(fault)
  if (found === null) return fault
  const [, name = '', literal = '', type = ''] = found
  const kind = /[.eE]/.test(literal) ? 'float64' : (reflectKinds[name] ?? name)
  if (type.startsWith('map[')) return `cannot restore map from ${kind}`
  if (type.startsWith('[]')) return `cannot restore slice from ${kind}`
  if (!/^(string|bool|int32|int64|float64)$/.test(type)) return `cannot restore struct from: ${kind}`
  // Go has a conversion between these, though not one that JSON allows.
  const convertible = name === 'number' && type !== 'bool'
  return convertible ? `cannot convert ${kind} to ${type}` : `unrecognized type: ${type}`
}

/** Of a custom resource, a patched kind or version is a value like any other, and a wrong one. */
function otherKind(resource: ExpectedKind, patched: JsonObject, mismatch: Mismatch): StatusError {
  const version = text(patched, 'apiVersion')
  const wanted = apiVersion(resource)
  if (version === wanted) return mismatch.error
  const cause = invalidField('apiVersion', version, `must be ${wanted}`)
  return invalid(resource.group, text(patched, 'kind'), text(patched, 'metadata', 'name'), [cause])
}

/** The real server prints a patched object with the keys at its top sorted. */
function topSorted(tree: JsonObject): JsonObject {
  return new Map([...tree].sort(([a], [b]) => bytewise(a, b)))
}
