/**
 * A body becomes an object of the expected kind: parsed, its kind and version compared with the URL's, its fields checked
 * and brought into shape. What a strict reader would object to is collected for `fieldValidation`.
 */

import type { Json, JsonObject } from '../kube/json/json.ts'
import { text } from '../kube/json/json.ts'
import { apiVersion } from '../kube/resource.ts'
import { invalidField } from '../kube/schema/errors.ts'
import { quote } from '../kube/schema/values.ts'
import { badRequest, type FieldError, invalid, type StatusError } from '../kube/status.ts'
import { bodyShown, parseBody } from './body.ts'
import { isBuiltinKind, type KindName } from './components.ts'
import type { RequestScope } from './engine.ts'
import { metaOf, nameOf } from './meta.ts'
import { metaTypeFault } from './metavalidate.ts'
import type { FieldValidation } from './options.ts'
import { isMuch, pause } from './pause.ts'
import { unregistered } from './protobufbody.ts'
import { type ShapeFindings, shapeKind, shapeObject, shapeVersion } from './shape.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest } from './write.ts'

export type Decoded = {
  readonly tree: JsonObject
  readonly warnings: string[]
  /** Required fields that are not there: a 422 once everything else is known. */
  readonly missing: readonly FieldError[]
}

/** Throws 400 in the words of the real decoder. */
export async function decodeObject(
  scope: RequestScope,
  request: WriteRequest,
  fieldValidation: FieldValidation,
): Promise<Decoded> {
  return decode(request, scope.resource, fieldValidation, {
    own: (tree) => shapeObject(scope, tree),
    other: (tree) => shapeOther(scope, tree),
  })
}

/** The same for a built-in kind that is not the stored one: a Scale, a Binding, a review. */
export async function decodeKind(
  request: WriteRequest,
  kind: KindName,
  fieldValidation: FieldValidation,
): Promise<Decoded> {
  const expected = { ...kind, custom: false }
  return decode(request, expected, fieldValidation, {
    own: (tree) => shapeKind(kind, tree),
    other: (tree) => shapeOtherKind(kind, tree),
  })
}

/** `own` for an object of the expected kind, `other` for one that names another: it is read as what it says it is first. */
export type Shapes = {
  readonly own: (tree: JsonObject) => ShapeFindings
  readonly other: (tree: JsonObject) => ShapeFindings
}

const nothingFound: ShapeFindings = { unknown: [], missing: [] }

/** An object that is not of the kind the URL speaks of, as its own kind or version would have it. */
export function shapeOther(scope: RequestScope, tree: JsonObject): ShapeFindings {
  const { resource } = scope
  if (!resource.custom) return shapeOtherKind(resource, tree)
  const { group, version } = versionOf({ apiVersion: text(tree, 'apiVersion') })
  if (group !== resource.group || version === resource.version || text(tree, 'kind') !== resource.kind)
    return nothingFound
  return shapeVersion(scope, version, tree)
}

export function shapeOtherKind(expected: KindName, tree: JsonObject): ShapeFindings {
  const kind = text(tree, 'kind')
  const { group, version } = versionOf({ apiVersion: text(tree, 'apiVersion') })
  if (!areTogether(kind, group, expected.group)) return nothingFound
  // The real server does not ask such an object for what it lacks, or has too much.
  const { fault } = shapeKind({ group, version, kind }, tree)
  return fault === undefined ? nothingFound : { ...nothingFound, fault }
}

/** `custom`: of a definition's kind rather than a Go type. */
export type ExpectedKind = KindName & { readonly custom: boolean }

async function decode(
  request: WriteRequest,
  expected: ExpectedKind,
  fieldValidation: FieldValidation,
  shapes: Shapes,
): Promise<Decoded> {
  const { tree, duplicates } = await decodeTree(request, expected, fieldValidation)
  if (isMuch(request)) await pause(request)
  if (expected.custom) requireReadableMeta(tree, expected)
  const mismatch = kindMismatch(tree, expected)
  const named = { version: versionOf({ apiVersion: text(tree, 'apiVersion') }).version, kind: expected.kind }
  const { fault, unknown, missing } = mismatch === undefined ? shapes.own(tree) : shapes.other(tree)
  if (fault !== undefined) throw unfit(text(tree, 'kind'), named, fault)
  const twice = duplicates.map((path) => `duplicate field ${quote(path)}`)
  const strange = unknown.map((path) => `unknown field ${quote(path)}`)
  // The real server does not look for unknown fields in protobuf.
  const found = expected.custom ? [...twice, ...strange] : [...strange, ...twice]
  const findings = request.format === 'protobuf' ? [] : found
  if (findings.length > 0 && fieldValidation === 'Strict') {
    if (mismatch === undefined || unknown.length > 0) {
      throw unfit(expected.kind, named, `strict decoding error: ${findings.join(', ')}`)
    }
  }
  const warnings = fieldValidation === 'Warn' ? findings : []
  if (mismatch === undefined) return { tree, warnings, missing }
  return carrying(unknown.length > 0 ? warnings : [], async () => {
    // The kind of a custom resource is looked at with the rest of it, after its name.
    if (expected.custom && request.name !== '' && mismatch.error.code === 422) {
      ensureNamespace(request, metaOf(tree))
      ensureName(request, tree)
    }
    throw mismatch.error
  })
}

/** The body as a tree that names its kind: the expected one where it named none. */
async function decodeTree(
  request: WriteRequest,
  expected: ExpectedKind,
  fieldValidation: FieldValidation,
): Promise<{ tree: JsonObject; duplicates: string[] }> {
  const parsed = await parseBody(request, {
    apiVersion: apiVersion(expected),
    kind: expected.kind,
  })
  const unrecognized = (why: string) =>
    badRequest(
      `the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${bodyShown(request.body)})`,
    )
  if ('fault' in parsed) {
    const { fault, type } = parsed
    throw type === undefined
      ? unrecognized(fault)
      : unfit(type.kind, { ...versionOf(type), kind: expected.kind }, fault)
  }
  const { tree, duplicates } = parsed
  // Objects are dated here, and a message can hold times that JSON cannot.
  if (request.format === 'protobuf') metaOf(tree).delete('creationTimestamp')
  const groupFault = groupVersionFault(text(tree, 'apiVersion'))
  if (groupFault !== undefined) throw unrecognized(groupFault)
  for (const [key, value, label] of [
    ['kind', expected.kind, 'Kind'],
    ['apiVersion', apiVersion(expected), 'apiVersion'],
  ] as const) {
    if (text(tree, key) !== '') continue
    // A custom resource must name its kind; without a version it is one of no version at all.
    if (expected.custom && key === 'apiVersion') continue
    if (expected.custom) {
      const why = `Object '${label}' is missing in '${request.body?.toString('utf8') ?? ''}'`
      // A reader that is not strict has its own words for it.
      throw fieldValidation === 'Ignore' ? unfit(expected.kind, expected, why) : unrecognized(why)
    }
    tree.set(key, value)
  }
  return { tree, duplicates }
}

/** The metadata of a custom resource is read with its kind, before either is compared with the URL's. */
function requireReadableMeta(tree: JsonObject, { kind }: ExpectedKind): void {
  const fault = metaTypeFault(tree.get('metadata'))
  const version = text(tree, 'apiVersion').replace(/^.*\//, '')
  if (fault !== undefined) throw unfit(text(tree, 'kind'), { version, kind }, fault)
}

/** The object is not of the kind the URL speaks of: `why` in the decoder's words, and the refusal of a whole body. */
export type Mismatch = { readonly why: string; readonly error: StatusError }

export function kindMismatch(tree: JsonObject, expected: ExpectedKind): Mismatch | undefined {
  const kind = text(tree, 'kind')
  const version = text(tree, 'apiVersion')
  const wanted = apiVersion(expected)
  if (kind === expected.kind && version === wanted) return undefined
  if (expected.custom) {
    if (version !== wanted) return versionMismatch(version, wanted)
    const error = invalid(expected.group, kind, nameOf(tree), [invalidField('kind', kind, `must be ${expected.kind}`)])
    return { why: error.message, error }
  }
  const groupFault = groupVersionFault(version)
  if (groupFault !== undefined) return { why: groupFault, error: badRequest(groupFault) }
  const { group, version: plain } = versionOf({ apiVersion: version })
  if (!isBuiltinKind({ group, version: plain, kind }) || !areTogether(kind, group, expected.group)) {
    const why = unregistered({ apiVersion: version, kind })
    return { why, error: unfit(kind, { version: plain, kind: expected.kind }, why) }
  }
  if (kind === expected.kind && group === expected.group) return versionMismatch(version, wanted)
  const internal = expected.group === '' ? 'core' : expected.group.split('.')[0]
  const why = `converting (${plain}.${kind}) to (${internal}.${expected.kind}): unknown conversion`
  return { why, error: unfit(kind, { version: plain, kind: expected.kind }, why) }
}

/** Groups of which the real server is another one behind the same address, and knows no other kinds. */
const apart: ReadonlySet<string> = new Set(['apiextensions.k8s.io', 'apiregistration.k8s.io'])
const everywhere =
  /^(Status|WatchEvent|API(Versions|Group|GroupList|ResourceList)|(Create|Delete|Get|List|Patch|Update)Options)$/

function areTogether(kind: string, group: string, other: string): boolean {
  return group === other || (!apart.has(group) && !apart.has(other)) || everywhere.test(kind)
}

function versionOf({ apiVersion: spelled }: { readonly apiVersion: string }): { group: string; version: string } {
  const slash = spelled.indexOf('/')
  return { group: slash < 0 ? '' : spelled.slice(0, slash), version: spelled.slice(slash + 1) }
}

/** More than one slash is no group and version at all. */
function groupVersionFault(version: string): string | undefined {
  return version.split('/').length > 2 ? `unexpected GroupVersion string: ${version}` : undefined
}

function versionMismatch(found: string, wanted: string): Mismatch {
  const why = `the API version in the data (${found}) does not match the expected API version (${wanted})`
  return { why, error: badRequest(why) }
}

function unfit(kind: string, expected: { readonly version: string; readonly kind: string }, why: string) {
  return badRequest(`${kind} in version ${quote(expected.version)} cannot be handled as a ${expected.kind}: ${why}`)
}

/** The namespace of the object, which must be the URL's or may be left out. */
export function ensureNamespace(request: WriteRequest, meta: JsonObject): void {
  if (!request.resource.namespaced) {
    meta.delete('namespace')
    return
  }
  const own: Json = text(meta, 'namespace')
  if (own !== '' && own !== request.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  if (request.namespace !== '') meta.set('namespace', request.namespace)
}

/** The name of the object, which must be the URL's. */
export function ensureName(request: WriteRequest, tree: JsonObject): void {
  const name = nameOf(tree)
  if (name === '') {
    throw badRequest(`the name of the object (${request.name} based on URL) was undeterminable: name must be provided`)
  }
  if (name !== request.name) {
    throw badRequest(`the name of the object (${name}) does not match the name on the URL (${request.name})`)
  }
}
