/** The cap on owners by update: programs that change their name would make an object grow without end. */

import { bytewise } from '../../../kube/json/goformat.ts'
import { type Managed, ownerKey, setTime } from './managed.ts'

const updatersMax = 10 // the real server's
const bucketName = 'ancient-changes'

/** The oldest owners by update share one entry per version, so that there are no more than the cap. */
export function capped(managed: Managed): Managed {
  const updaters = [...managed.owners].filter(([, { applied }]) => !applied).map(([key]) => key)
  if (updaters.length <= updatersMax) return managed
  const owners = new Map(managed.owners)
  const times = new Map(managed.times)
  updaters.sort((a, b) => bytewise(timeOf(managed, a), timeOf(managed, b)) || bytewise(a, b))
  const firsts = new Map<string, string>()
  let left = updaters.length
  for (const key of updaters) {
    if (left <= updatersMax) break
    const owned = owners.get(key)
    if (owned === undefined) continue
    const { apiVersion } = owned
    const first = firsts.get(apiVersion)
    if (first === undefined) {
      firsts.set(apiVersion, key)
      continue
    }
    const bucket = ownerKey({ manager: bucketName, operation: 'Update', apiVersion, subresource: '' })
    const held = owners.get(bucket) ?? owners.get(first)
    if (!owners.has(bucket)) owners.delete(first)
    owners.set(bucket, held === undefined ? owned : { ...owned, set: owned.set.union(held.set) })
    // Where the bucket itself comes after an owner of the same second, its fields have no owner from now on.
    owners.delete(key)
    setTime(times, bucket, times.get(key))
    left--
  }
  return { owners, times }
}

function timeOf({ times }: Managed, key: string): string {
  return times.get(key) ?? ''
}
