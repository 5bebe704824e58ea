/** What a hub does not tell of a version of the past: asked of the API server, through the hub. */
import type { Clock } from '../../base/clock.ts'
import type { Item } from '../../cache/item.ts'
import { type Collection, Expired, Refused, TooLarge } from '../follow/follow.ts'
import { type ListingLimits, readListing } from '../follow/listing.ts'
import { Source } from '../follow/source.ts'
import type { Upstream } from '../upstream.ts'

type Parts = {
  readonly upstream: Upstream
  readonly collection: Collection
  readonly exactly: number
  readonly limits: ListingLimits
  readonly clock: Clock
  readonly signal: AbortSignal
}
type Listed = { readonly version: number; readonly listKind: string; readonly items: readonly Item[] }

/** A first reading. Undefined where that version is gone, or the hub lists nothing for this edge: then the present has to do. */
export async function listExactly(parts: Parts): Promise<Listed | undefined> {
  const { upstream, clock, signal, limits, collection, exactly } = parts
  const { custom, known, scope, kind } = collection
  const source = new Source({ upstream, scope, clock, kind: custom ? '' : kind })
  const reading = { source, custom, known, plan: collection.plan(), standing: () => undefined, limits, exactly }
  const listing = await readListing({ ...reading, clock, signal }).catch(() => undefined)
  if (listing === undefined || signal.aborted) return undefined
  const { version, listKind, objects, watch } = listing
  watch?.close()
  return { version, listKind, items: [...objects.values()].filter((found) => found !== 'same') }
}

/**
 * Whether the API server resumes nothing from this version, as after a restore that lets versions go on far ahead: then none of those
 * before will come again (`follow/direct`). True also where that cannot be told, as where the node of this edge may not list: nothing but an
 * answer of that version proves that it means something else now, and without a proof no client is made to list again.
 */
export async function isForgotten(parts: Omit<Parts, 'limits'>): Promise<boolean> {
  const { upstream, clock, signal, collection, exactly } = parts
  try {
    await new Source({ upstream, scope: collection.scope, clock }).page({ objects: 1, exactly }, signal)
    return false
  } catch (error) {
    if (error instanceof TooLarge) return false
    if (error instanceof Expired || error instanceof Refused) return true
    throw error
  }
}
