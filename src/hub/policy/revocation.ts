/**
 * Whether the certificate of an edge was taken back: policies name a node and a time, and what was issued to it before that counts no more,
 * nor what a hub renewed of that.
 * It is asked for each link, and of each link again when policies change. Before policies were first read no edge is let in:
 * a hub that started a moment ago must not be the way around a revocation.
 */
import type { EdgePeer } from '../sockets/edgepeer.ts'
import type { Policies } from './policies.ts'

/** kube-controller-manager dates what it signs back by five minutes, for clients whose clocks are behind. */
const signedBackMs = 5 * 60_000

/** A time that stands for all of it: nothing that a hub or the cluster ever issues to the name counts. */
export const forGood = '9999-12-31T23:59:59.000Z'

/** A sentence for the edge that shows it. */
export function revocationOf(
  { name, certificate }: Pick<EdgePeer, 'name' | 'certificate'>,
  policies: Pick<Policies, 'revokedSince'>,
): string | undefined {
  const revoked = policies.revokedSince(name)
  if (revoked === undefined || certificate.vouchedAtMs >= revoked.sinceMs) return undefined
  // A time that could not be read counts as for ever, too.
  if (revoked.sinceMs >= Date.parse(forGood))
    return `the name "${name}" was revoked for good (${revoked.by}): no certificate of it counts until that is taken back`
  const since = new Date(revoked.sinceMs).toISOString()
  const taken = `what was issued to "${name}" before ${since} was revoked (${revoked.by})`
  // The end of the sentence is for the operator of a box that is to come back.
  if (certificate.signer === 'hub') return `${taken}: issue a new credential with "ake hub issue"`
  return `${taken}: join again with --replace after ${joinableFrom(revoked.sinceMs)}, since the cluster dates back what it signs by minutes`
}

/**
 * A sentence for a machine that would join by that name, and get a certificate of the cluster that counts at no hub. `signedAtMs` is what the
 * certificate says, where there is one already; one that is signed now says a time that is past.
 */
export function joinRevocationOf(
  { name, signedAtMs, now }: { readonly name: string; readonly signedAtMs?: number; readonly now: number },
  policies: Pick<Policies, 'revokedSince'>,
): string | undefined {
  const revoked = policies.revokedSince(name)
  if (revoked === undefined || (signedAtMs ?? now - signedBackMs) >= revoked.sinceMs) return undefined
  if (revoked.sinceMs >= Date.parse(forGood))
    return `the name "${name}" was revoked for good (${revoked.by}): no certificate of it counts at a hub. Choose another name with --name, or have that taken back first ("ake hub revoke ${name} --undo")`
  const since = new Date(revoked.sinceMs).toISOString()
  const taken = `what is issued to "${name}" before ${since} is revoked (${revoked.by})`
  const from = joinableFrom(revoked.sinceMs)
  return Date.parse(from) <= now
    ? `${taken}, and so is this certificate: run the same command again, which requests another one`
    : `${taken}, and the cluster dates back what it signs by minutes: run the same command again after ${from}`
}

/** What the cluster signs from then on says a time that is not before the revocation. */
function joinableFrom(sinceMs: number): string {
  return new Date(sinceMs + signedBackMs).toISOString()
}

/** Why no edge can be judged yet. What was read once counts from then on, whatever becomes of the API server. */
export function unjudgeable({ isKnown, why }: Pick<Policies, 'isKnown' | 'why'>): string | undefined {
  return isKnown ? undefined : `the hub cannot tell yet which certificates were revoked: ${why}`
}
