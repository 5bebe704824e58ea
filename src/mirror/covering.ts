/** Which of the interests of one resource answers a read. */
import type { Cache } from '../cache/cache.ts'
import type { Scope } from '../kube/scope.ts'
import { covers } from './interest.ts'
import type { MirroredInterest } from './mirrored.ts'

/**
 * The one that covers the scope: synced ones that can resume at the version first, then the widest. One that is behind the
 * version comes after those that have reached it, and so does one that passed it by a list: what its client has seen
 * meanwhile it may never have known.
 */
export function coveringOf(
  sharing: Iterable<MirroredInterest>,
  scope: Scope,
  version: number,
): MirroredInterest | undefined {
  let best: MirroredInterest | undefined
  let bestRank = -1
  for (const mirrored of sharing) {
    if (mirrored.withdrawnAtMs !== undefined || !covers(mirrored.interest, scope)) continue
    const rank = rankOf(mirrored, version)
    // A wider one that cannot be had does not stand in the way of a narrower one that may.
    if (rank === 0 && !covers(scope, mirrored.interest)) continue
    if (isBetter(mirrored, rank, best, bestRank, version)) {
      best = mirrored
      bestRank = rank
    }
  }
  return best
}

/** Synced, and able to resume. */
const resumes = 9

/** Without a version the one that is furthest: a wider one that has only just come must not show less than was shown before. */
function isBetter(
  mirrored: MirroredInterest,
  rank: number,
  best: MirroredInterest | undefined,
  bestRank: number,
  version: number,
): boolean {
  if (version === 0 && rank >= resumes && bestRank >= resumes) {
    const further = (mirrored.readable?.version ?? 0) - (best?.readable?.version ?? 0)
    if (further !== 0) return further > 0
  }
  return rank > bestRank
}

function rankOf(mirrored: MirroredInterest, version: number): number {
  const { readable: cache, interest } = mirrored
  if (cache === undefined) return mirrored.hopeless ? 0 : 1
  const resumable = version === 0 ? resumes : version < cache.history.floor ? 3 : isKnown(cache, version) ? resumes : 6
  if (!interest.labels.empty || !interest.fields.empty) return resumable
  return resumable + (interest.namespace === '' ? 2 : 1)
}

function isKnown({ version: reached, history }: Cache, version: number): boolean {
  return version <= reached && history.unknownAt(version) === undefined
}

/** Any that holds the object, the newest of it: presence is knowledge. */
export function holdingOf(sharing: Iterable<MirroredInterest>, key: string): MirroredInterest | undefined {
  let newest: MirroredInterest | undefined
  let version = 0
  for (const mirrored of sharing) {
    const cache = mirrored.readable
    const item = cache === undefined || cache.isCorrupt(key) ? undefined : cache.get(key)
    if (item === undefined || item.version <= version) continue
    newest = mirrored
    version = item.version
  }
  return newest
}
