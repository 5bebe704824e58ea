/** What an apply makes of an object by the marks on it, and the refusals of the real server where it makes nothing. */

import { quoted } from '../kube/json/gotext.ts'
import { field, type JsonObject, text } from '../kube/json/json.ts'
import { apiVersion } from '../kube/resource.ts'
import { badRequest, failure, type StatusError } from '../kube/status.ts'
import { admit } from './apply/admit.ts'
import { ApplyConflict, type Conflict } from './apply/apply.ts'
import { TypeFault } from './apply/faults.ts'
import type { FieldType } from './apply/fieldtype.ts'
import { applyAfterLast } from './apply/managed/last.ts'
import { type Managed, ManagedFault, ownerKey, ownerName, parseManaged } from './apply/managed/managed.ts'
import type { Versions } from './apply/owner.ts'
import { printPath } from './apply/pathelement.ts'
import type { Engine } from './engine.ts'
import { VersionFault } from './kindversions.ts'
import { timestamp } from './meta.ts'
import { liveOf, type MarkedWrite } from './ownership.ts'
import { plainFailure } from './refusals.ts'
import { nothingOf, withoutZeros } from './zeros.ts'

export type AppliedObject = { readonly tree: JsonObject; readonly managed: Managed }

type ApplyRequest = MarkedWrite & { readonly force: boolean; readonly config: JsonObject }

/** The object as an apply makes it, a copy, and its owners; throws as the real server refuses. */
export function applyTo(
  engine: Engine,
  { kind, versions, mark, force, config }: ApplyRequest,
  old: JsonObject | undefined,
  owners: Managed,
): AppliedObject {
  const version = apiVersion(kind)
  const named = kindText(config)
  if (named !== `${kind.group}/${kind.version}, Kind=${kind.kind}`) throw badRequest(`invalid object type: ${named}`)
  if (Array.isArray(field(config, 'metadata', 'managedFields'))) {
    throw badRequest('metadata.managedFields must be nil')
  }
  admitConfig(config, versions.typeOf(version), named)
  const live = liveOf(kind, old)
  const now = timestamp(engine.clock.now())
  try {
    requireConvertible(live, version, owners, versions)
    const writing = { ...mark, live, managed: owners, versions, apiVersion: version, now }
    const { tree, managed } = applyAfterLast({ ...writing, config, force, nothing: nothingOf(kind) })
    return { tree: withoutZeros(tree ?? live), managed }
  } catch (error) {
    if (error instanceof ApplyConflict) throw applyConflict(error.conflicts)
    if (error instanceof VersionFault) throw plainFailure(error.message)
    if (!(error instanceof TypeFault)) throw error
    const last = owners.owners.get(ownerKey({ ...mark, operation: 'Apply', apiVersion: version }))
    const first = last === undefined || last.apiVersion === version
    const step = first ? 'failed to convert new object' : pruning
    throw plainFailure(`${step}: ${error.message}`)
  }
}

const pruning = 'failed to prune fields: failed to convert merged object to last applied version'

/** Every owner's version must have a place for all that is there: what is not declared there is not converted. */
function requireConvertible(live: JsonObject, version: string, { owners }: Managed, versions: Versions): void {
  const others = new Set([...owners.values()].map((owned) => owned.apiVersion))
  others.delete(version)
  for (const other of others) {
    try {
      if (versions.typeOf(other) !== undefined) versions.convert(live, version, other)
    } catch (error) {
      if (error instanceof TypeFault) throw plainFailure(error.message)
      throw error
    }
  }
}

/** The owners that an object names; throws if they cannot be read. */
export function ownersOf(old: JsonObject | undefined): Managed {
  try {
    return parseManaged(field(old, 'metadata', 'managedFields'))
  } catch (error) {
    if (error instanceof ManagedFault) throw plainFailure(`failed to decode managed fields: ${error.message}`)
    throw error
  }
}

function admitConfig(config: JsonObject, type: FieldType | undefined, kind: string): void {
  if (type === undefined) return
  try {
    admit(config, type)
  } catch (error) {
    if (!(error instanceof TypeFault)) throw error
    const name = `${text(config, 'metadata', 'namespace')}/${text(config, 'metadata', 'name')}`
    throw plainFailure(`failed to create typed patch object (${name}; ${kind}): ${error.message}`)
  }
}

/** Group, version and kind as Go prints them; a version that is none leaves nothing of them. */
function kindText(tree: JsonObject): string {
  const parts = text(tree, 'apiVersion').split('/')
  if (parts.length > 2) return '/, Kind='
  const [group, version] = parts.length === 2 ? parts : ['', parts[0]]
  return `${group}/${version}, Kind=${text(tree, 'kind')}`
}

/** 409 with one cause for each field and owner. */
function applyConflict(conflicts: readonly Conflict[]): StatusError {
  const told: Told[] = []
  for (const { owner, path } of conflicts) {
    const last = told.at(-1)
    // They come by owner, and there may be thousands of each.
    const by = last?.owner === owner ? last.by : ownerText(owner)
    told.push({ owner, by, field: printPath(path) })
  }
  const causes = told.map(({ by: whom, field: path }) => {
    return { reason: 'FieldManagerConflict', message: `conflict with ${whom}`, field: path }
  })
  return failure(409, 'Conflict', conflictText(told), { causes })
}

type Told = { readonly owner: string; readonly by: string; readonly field: string }

function conflictText(conflicts: readonly Told[]): string {
  const [only] = conflicts
  if (only !== undefined && conflicts.length === 1) {
    return `Apply failed with 1 conflict: conflict with ${only.by}: ${only.field}`
  }
  const lines: string[] = []
  let before = ''
  for (const { owner, by, field: path } of conflicts) {
    if (owner !== before) lines.push(`conflicts with ${by}:`)
    before = owner
    lines.push(`- ${path}`)
  }
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`
}

function ownerText(owner: string): string {
  const { manager, operation, apiVersion: version, subresource } = ownerName(owner)
  const through = subresource === '' ? '' : ` with subresource ${quoted(subresource)}`
  return `${quoted(manager)}${through}${operation === 'Update' ? ` using ${version}` : ''}`
}
