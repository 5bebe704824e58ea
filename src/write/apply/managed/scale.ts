/**
 * Ownership through /scale: the manager that owns the replicas of an object owns those of its Scale, and what a write of
 * the Scale takes over is taken over in the object.
 */

import { FieldSet } from '../fieldset.ts'
import type { Owned } from '../owner.ts'
import { type Path, pathOf } from '../pathelement.ts'
import { type Managed, ownerKey, ownerName, setTime } from './managed.ts'

export const scaleVersion = 'autoscaling/v1'

/** Where a version keeps its replicas; null: it has no scale. Undefined: there is no such version. */
export type ReplicasPath = (apiVersion: string) => Path | null | undefined

const replicas = pathOf('spec', 'replicas')
const owned: Omit<Owned, 'applied'> = { set: FieldSet.of(replicas), apiVersion: scaleVersion }

/** The owners of the Scale of an object. */
export function toScale(parent: Managed, pathIn: ReplicasPath): Managed {
  const owners = new Map<string, Owned>()
  const times = new Map<string, string>()
  for (const [key, { set, apiVersion, applied }] of parent.owners) {
    const path = pathIn(apiVersion)
    if (path === undefined || path === null || !set.has(path)) continue
    const scaleKey = ownerKey({ ...ownerName(key), apiVersion: scaleVersion })
    owners.set(scaleKey, { ...owned, applied })
    setTime(times, scaleKey, parent.times.get(key))
  }
  return { owners, times }
}

/**
 * The owners of an object in this version, from those of its Scale. As in the real server, a manager that owns the replicas
 * by an update is another owner there than here, so that even a write that changes nothing splits its entry in two.
 */
export function fromScale(parent: Managed, scale: Managed, apiVersion: string, pathIn: ReplicasPath): Managed {
  const owners = new Map<string, Owned>()
  const times = new Map<string, string>()
  const left = new Map(scale.owners)
  for (const [key, held] of parent.owners) {
    const path = pathIn(held.apiVersion)
    if (path === undefined) continue
    const lost = path !== null && held.set.has(path) && !left.delete(key)
    const set = lost ? held.set.difference(FieldSet.of(path)) : held.set
    if (lost && set.isEmpty) continue
    owners.set(key, { ...held, set })
    setTime(times, key, parent.times.get(key))
  }
  const path = pathIn(apiVersion)
  if (path === undefined || path === null) return { owners, times }
  for (const [key, { set, applied }] of left) {
    if (!set.has(replicas)) continue
    owners.set(key, { set: FieldSet.of(path), apiVersion, applied })
    // The real server gives them no time of their own.
    setTime(times, key, parent.times.get(key))
  }
  return { owners, times }
}
