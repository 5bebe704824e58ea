/** A first reading at a version of the past, which a hub does not tell: asked of the API server, through the hub. */
import type { Clock } from '../../base/clock.ts'
import type { Item } from '../../cache/item.ts'
import type { Collection } from '../follow/follow.ts'
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

/** Undefined where that version is gone, or the hub lists nothing for this edge: then the present has to do. */
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
