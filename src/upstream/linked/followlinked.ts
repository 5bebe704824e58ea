/**
 * Follows interests over the link to a hub. How one begins is settled between both (`link/session`), and `linkedfollowing.ts`
 * tells it in the steps that every way to follow has.
 *
 * Whether the cluster is still the one that a copy is of is the hub's to know: it has another epoch when it was put back. A copy whose epoch
 * is not known, as one that was made without a hub, is compared by its contents.
 */
import type { Clock } from '../../base/clock.ts'
import type { Scope } from '../../kube/scope.ts'
import type { OpenFollow } from '../follow/follow.ts'
import type { ListingLimits } from '../follow/listing.ts'
import { Unreachable, type Upstream } from '../upstream.ts'
import type { EdgeLink } from './edgelink.ts'
import type { InterestProofs } from './interestproofs.ts'
import { type CopyEpochs, LinkedFollowing } from './linkedfollowing.ts'
import { identitiesOf } from './linkedidentities.ts'
import { LinkedMemory } from './linkedmemory.ts'

type Parts = {
  readonly link: Pick<EdgeLink, 'current' | 'why'>
  /** For what a hub does not tell: a snapshot of a version in the past. */
  readonly upstream: Upstream
  readonly epochs: CopyEpochs
  /** What an interest is called on the link. */
  readonly nameOf: (scope: Scope) => string
  /** What a first reading may bring. */
  readonly limits: ListingLimits
  readonly clock: Clock
  /** What callers prove; without it the edge has what its node may, or its hub trusts it. */
  readonly proofs?: Pick<InterestProofs, 'following'>
}

export function followLinked(parts: Parts): OpenFollow {
  const linked = () => {
    const { current, why } = parts.link
    if (current === undefined) throw new Unreachable(why, false)
    return current
  }
  return (collection) => {
    const name = parts.nameOf(collection.scope)
    const memory = new LinkedMemory()
    return {
      follow: async function* (from, signal) {
        const link = linked()
        const steps = () => new LinkedFollowing({ ...parts, link, collection, name, memory, from, signal }).steps()
        yield* parts.proofs?.following({ link, name, signal }, steps) ?? steps()
      },
      identities: async (of, signal) => await identitiesOf({ link: linked(), name, copy: memory.copy }, of, signal),
    }
  }
}
