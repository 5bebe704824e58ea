/**
 * The marks that writes leave: who owns what after an update, and what an apply makes of an object and its owners. This
 * is what kube-apiserver wraps around its merge library: parts of metadata that only the server writes are never owned,
 * times move only with a change, and whatever was there before the first apply has an owner too.
 */

import type { JsonObject } from '../../../kube/json/json.ts'
import { applyConfiguration, updateOwners } from '../apply.ts'
import { FieldSet } from '../fieldset.ts'
import type { Owned, Versions } from '../owner.ts'
import { pathOf } from '../pathelement.ts'
import { capped } from './cap.ts'
import { type Managed, ownerKey, setTime, unmanaged } from './managed.ts'

export type ManagedWrite = {
  /** In the version of the request, without managedFields; next to nothing for an object that is not there yet. */
  readonly live: JsonObject
  readonly managed: Managed
  readonly manager: string
  readonly apiVersion: string
  readonly subresource: string
  readonly versions: Versions
  /** As managedFields print it. */
  readonly now: string
  /** `live` was looked at when it was written. */
  readonly admitted?: boolean
  /** Of a built-in kind, which is decoded before its owners are looked at. */
  readonly decoded?: boolean
}

const serverFields = FieldSet.of(
  pathOf('apiVersion'),
  pathOf('kind'),
  pathOf('metadata'),
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'clusterName',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map((name) => pathOf('metadata', name)),
)

/** No owner is known by this text: what the write at hand changes is first its own. */
const atHand = 'current-operation'

/** The owners after an update. */
export function recordUpdate({ next, ...writing }: ManagedWrite & { readonly next: JsonObject }): Managed {
  const { live, managed, versions, apiVersion, now, admitted = false, decoded = false } = writing
  const owners = new Map<string, Owned>(
    updateOwners({ live, next, owners: managed.owners, owner: atHand, apiVersion, versions, admitted, decoded }),
  )
  const times = new Map(managed.times)
  const changed = owners.get(atHand)?.set.difference(serverFields)
  owners.delete(atHand)
  if (changed !== undefined && !changed.isEmpty) {
    const key = keyFor(writing, 'Update')
    owners.set(key, {
      set: joined(owners.get(key)?.set, changed, managed.owners.get(key)?.set),
      apiVersion,
      applied: false,
    })
    setTime(times, key, now)
  }
  return capped({ owners, times })
}

/** What an owner has left and what it has changed: as often as not just what it had, and then the very same set. */
function joined(left: FieldSet | undefined, changed: FieldSet, had: FieldSet | undefined): FieldSet {
  const set = left === undefined ? changed : left.union(changed)
  return had?.equals(set) === true ? had : set
}

const before = 'before-first-apply'

export type Applying = ManagedWrite & {
  readonly config: JsonObject
  readonly force: boolean
  /** The kind's object before there is anything in it. */
  readonly nothing: JsonObject
}

export type Application = {
  /** Undefined: the object is what it was. */
  readonly tree: JsonObject | undefined
  readonly managed: Managed
}

/** Throws TypeFault and ApplyConflict, as applyConfiguration does. */
export function recordApply({ nothing, config, force, ...writing }: Applying): Application {
  const { live, versions, apiVersion, now } = writing
  const { owners: held, times: known } =
    writing.managed.owners.size > 0
      ? writing.managed
      : recordUpdate({ ...writing, managed: unmanaged, live: nothing, next: live, manager: before })
  const key = keyFor(writing, 'Apply')
  const applied = applyConfiguration({ live, owners: held, owner: key, apiVersion, versions, config, force })
  const owners = new Map(applied.owners)
  const times = new Map(known)
  if (applied.tree !== undefined) setTime(times, key, now)
  const own = owners.get(key)
  if (own !== undefined) {
    const set = own.set.difference(serverFields)
    if (set.isEmpty) owners.delete(key)
    else owners.set(key, { ...own, set })
  }
  return { tree: applied.tree, managed: { owners, times } }
}

function keyFor({ manager, apiVersion, subresource }: ManagedWrite, operation: 'Apply' | 'Update'): string {
  return ownerKey({ manager: manager === '' ? 'unknown' : manager, operation, apiVersion, subresource })
}
