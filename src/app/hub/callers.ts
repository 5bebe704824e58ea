/**
 * Who stands behind the credentials that edges show their hub, and what they may do: as an edge judges its own callers, by the hub's
 * mirror where that tells (roles, accounts, pods and nodes of the whole cluster), by reviews where it does not. What is
 * remembered of a credential is a digest, in the memory of this process.
 */
import type { X509Certificate } from 'node:crypto'
import type { Records } from '../../access/access.ts'
import { openAccess } from '../../access/open.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Warnings } from '../../base/warnings.ts'
import { CallerProofs } from '../../hub/access/callerproofs.ts'
import { FollowedObjects } from '../../hub/access/followed.ts'
import { RulesTelling } from '../../hub/access/rulestelling.ts'
import type { SpeaksFor } from '../../hub/callers/callers.ts'
import { CallerCertificates } from '../../hub/callers/certificates.ts'
import { ReviewedSubjects } from '../../hub/callers/reviewedsubjects.ts'
import { SpokenCallers } from '../../hub/callers/spoken.ts'
import type { HubSources } from '../../hub/sources/sources.ts'
import type { Interests } from '../../mirror/interests.ts'
import type { Identity, Upstream } from '../../upstream/upstream.ts'
import { MirroredObjects } from '../boundobjects.ts'
import { reviewRead } from '../confirm.ts'
import { Roles, type RolesParts } from '../roles.ts'

/** Tokens of the callers of 10,000 edges, rotated ones included: about 1 KB each, and one that is forgotten is verified again. */
const credentialsMax = 100_000

type Parts = Pick<RolesParts, 'catalog'> & {
  readonly upstream: Upstream
  readonly interests: Interests
  readonly sources: Pick<HubSources, 'open'>
  /** Of the hub's store in memory. */
  readonly records: Records
  readonly clock: Clock
  readonly log: Log
  readonly warnings: Pick<Warnings, 'warn'>
  /** For callers with certificates; without it none counts. */
  readonly speaking?: SpeakingParts
  /** What the API server takes tokens for, besides what it is seen to. */
  readonly audiences?: readonly string[]
}

type SpeakingParts = {
  /** By which authorities the cluster knows clients. */
  readonly authorities: () => readonly X509Certificate[]
  readonly speaksFor: SpeaksFor
  readonly isConstrained: () => boolean
  readonly allowsLegacy: boolean
}

/** What tokens are bound to, besides the pods that the rights of nodes follow from. */
const bound = ['serviceaccounts', 'nodes'] as const

export async function openHubCallers({ catalog, upstream, interests, sources, clock, ...parts }: Parts) {
  const { warnings, speaking } = parts
  const objects = new MirroredObjects({ interests, reachability: upstream.reachability, clock })
  const asking = await openAccess({ ...parts, upstream, clock, objects, credentialsMax })
  const { access, accounts, changes, evaluation, recheckCaller } = asking
  if (accounts !== undefined) objects.observe(accounts)
  const roles = new Roles({
    ...{ interests, catalog, upstream, changes, evaluation, clock },
    mayRead: (interest) => reviewRead(interest, { upstream, by: 'edge' }),
  })
  // They are looked for in the mirror: here it is only said that they are wanted.
  const nothing = () => undefined
  const heard = { put: nothing, remove: nothing, clear: nothing, told: nothing }
  const followed = bound.map(
    (resource) => new FollowedObjects({ sources, clock, of: { group: '', version: 'v1', resource }, ...heard }),
  )
  const certificates = new CallerCertificates({ authorities: speaking?.authorities ?? (() => []), clock })
  const spoken = speaking && new SpokenCallers({ ...speaking, certificates, access, warnings })
  const reviewed = new ReviewedSubjects()
  const rules = new RulesTelling({ roles: evaluation, recheckCaller, certificates, reviewed, clock })
  const proofs = new CallerProofs({ access, recheckCaller, spoken, clock })
  return {
    ...{ proofs, spoken, rules, reviewed },
    /** Who is behind a token, as far as that is known without asking the API server. */
    known: (identity: Extract<Identity, { kind: 'token' }>) => access.held(identity),
    figures: (): string[] => [
      ...proofs.figures(),
      ...rules.figures(),
      ...evaluation.figures(),
      ...(accounts?.figures() ?? []),
    ],
    async run(signal: AbortSignal): Promise<void> {
      for (const one of followed) one.start()
      await Promise.all([roles.run(signal), asking.run(signal), rules.run(signal)])
      for (const one of followed) one.stop()
    },
  }
}
