/** Which interest feeds which: one that a strictly wider one covers needs no watch of its own. */
import { type Filter, makeFilter } from '../cache/filter.ts'
import type { FieldPlan } from '../kube/object.ts'
import { covers } from './interest.ts'
import type { Mirrored } from './mirror.ts'
import type { MirroredInterest } from './mirrored.ts'

type Find = (group: string, version: string, resource: string) => Mirrored | undefined

/** Of one and those of its resource: what it covers is fed from it, and it from what covers it. */
export function feedAround(begun: MirroredInterest, sharing: Iterable<MirroredInterest>, find: Find): void {
  for (const mirrored of sharing) {
    feed(mirrored, begun, find)
    feed(begun, mirrored, find)
  }
}

function feed(narrow: MirroredInterest, wide: MirroredInterest, find: Find): void {
  if (!canFeed(narrow, wide, find)) return
  narrow.whenAt(wide.cache?.history.floor ?? 0, () => {
    if (canFeed(narrow, wide, find)) narrow.feedFrom(wide, (plan) => filterOf(narrow, plan, find))
  })
}

function canFeed(narrow: MirroredInterest, wide: MirroredInterest, find: Find): boolean {
  if (narrow === wide || narrow.fed || narrow.cache === undefined || wide.cache === undefined) return false
  // Strictly wider: two that cover each other would feed each other and hear of nothing.
  if (!covers(wide.interest, narrow.interest) || covers(narrow.interest, wide.interest)) return false
  // The cluster may have been put back: each has to find out by itself, and to begin anew.
  if (narrow.isDoubted || wide.isDoubted) return false
  // It hears of nothing, and the narrower one may.
  if (wide.isForbidden) return false
  try {
    filterOf(narrow, wide.cache.plan, find)
  } catch {
    return false
  }
  return true
}

/** What an interest wants, of objects that were read by this plan; throws while its fields are not known. */
function filterOf({ interest, record }: MirroredInterest, plan: FieldPlan, find: Find): Filter {
  const { group, version, resource, namespace, labels, fields } = interest
  const paths = find(group, version, resource)?.fields.paths ?? {}
  return makeFilter({ namespaced: record.namespaced, namespace, labels, fields, paths, plan })
}
