/**
 * Through a hub: one link for everything. To the hub the edge is its node, so what it asks for itself it may have as far as that may;
 * everything else goes up in its caller's name.
 */
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { Scope } from '../kube/scope.ts'
import type { LinkTerms } from '../link/session/session.ts'
import { type Interest, interestOf } from '../mirror/interest.ts'
import { authoritiesOf } from '../upstream/authorities.ts'
import { dialTcp } from '../upstream/dial.ts'
import { ClusterCaFile, clusterCaBeside } from '../upstream/linked/clustercafile.ts'
import { EdgeLink } from '../upstream/linked/edgelink.ts'
import { followLinked } from '../upstream/linked/followlinked.ts'
import { FollowedHubCredential } from '../upstream/linked/hubcredential.ts'
import { Hubs } from '../upstream/linked/hubs.ts'
import { InterestProofs } from '../upstream/linked/interestproofs.ts'
import { LinkedRules } from '../upstream/linked/linkedrules.ts'
import { LinkedUpstream } from '../upstream/linked/linkedupstream.ts'
import { CredentialRenewal } from '../upstream/linked/renewal.ts'
import type { Gate } from '../upstream/upstream.ts'
import type { CloudLine } from './cloudline.ts'
import { confirmRefusal, reviewRead } from './confirm.ts'
import { EdgeTerms } from './edgeterms.ts'
import { LinkEpochs } from './linkepochs.ts'
import { nodeCertificates } from './nodecertificates.ts'
import { akeVersion } from './version.ts'
import type { HubWay } from './way.ts'

const clock = systemClock

/**
 * A comparison by digests that finds nothing takes some 350 bytes, whatever the interest holds: an idle edge has its turn with one
 * every three minutes, which is 0.2 MB of the 1 MB that an idle day may take.
 */
const comparedBytesPerDay = 500_000

type Parts = {
  readonly gate: Gate
  /** The uid of the cluster that the copy is of; '' where that is not known. */
  readonly cluster: () => string
  readonly log: Log
}

export async function openLinkedLine({ hub, credential: path, serving }: HubWay, parts: Parts): Promise<CloudLine> {
  const { log, gate, cluster } = parts
  const credential = await FollowedHubCredential.open({ path, clock, log })
  const addresses = hub.map((address) => new URL(address))
  let nowMs = () => clock.now()
  let epochs: LinkEpochs | undefined
  let told: (terms: LinkTerms) => void = () => undefined
  const hubs = openHubs({
    ...{ addresses, credential, clock, log, dial: dialTcp(), environment: process.env },
    now: () => nowMs(),
  })
  const link = new EdgeLink({
    ...{ hubs, edge: credential.node, release: akeVersion, clock, log },
    terms: (terms) => told(terms),
    // A copy of no known epoch is compared by its contents, whatever the hub has heard of its cluster.
    known: () =>
      epochs?.newest === undefined ? { cluster: '', epoch: 0 } : { cluster: cluster(), epoch: epochs.newest },
    admit: (seen) => gate.admit({ ...seen, ...arrivalAt(credential, addresses), get: () => identity(seen.cluster) }),
  })
  const clusterCa = new ClusterCaFile({ path: clusterCaBeside(path), link, log })
  const signed = await nodeCertificates({
    clusterCa,
    ...{ credential, serving, clock, now: () => nowMs(), log, isLinked: () => link.current !== undefined },
    ask: (asked) => upstream.ask(asked),
  })
  const upstream: LinkedUpstream = new LinkedUpstream({
    link,
    addresses,
    credential,
    renewal: [new CredentialRenewal({ link, credential, clock, now: () => nowMs(), log }), clusterCa, ...signed],
    userAgent: `ake/${akeVersion} (edge)`,
    clock,
    log,
  })
  // Another one for each cluster that is believed in.
  let proofs = new InterestProofs({ link, clock, proven: () => undefined })
  return {
    upstream,
    node: credential.node,
    comparedBytesPerDay,
    // Edges come back to a hub spread over time; what one of them wants is one frame then.
    spreadMs: 0,
    // As the caller in whose name the hub asks for it.
    subject: { name: credential.user, groups: ['system:nodes', 'system:authenticated'] },
    async follow({ store, limits, proven, policed }) {
      const opened = await LinkEpochs.open({ store, log })
      opened.keep(new Set((await store.records('interest')).map(({ key }) => key)))
      epochs = opened
      proofs = new InterestProofs({ link, clock, proven })
      const nameOf = (scope: Scope) => interestOf(scope).name
      const terms = await EdgeTerms.open({ store, log })
      const proving = proofs
      told = (now) => {
        terms.told(now)
        proving.reconsider()
        policed()
      }
      const { current } = link
      if (current?.terms !== undefined) terms.told(current.terms)
      return { follow: followLinked({ link, upstream, epochs: opened, proofs, nameOf, limits, clock }), proofs, terms }
    },
    reconsider: () => link.reconsider(),
    trustTime(trusted) {
      nowMs = trusted
    },
    // By its name alone the edge may have what its node may; all that the hub may where that trusts its edges.
    mayRead: (interest: Interest) => reviewRead(interest, { upstream, by: 'administrator' }),
    // Refused is what no caller has proved a right to at present. That may be in a moment: the data stay, as without the cloud, unless
    // the API server says of each caller who asked for it that it may not, or none is known and the hub says for certain that it does not give it to this edge.
    confirms: (catalog) => {
      const confirm = confirmRefusal({ upstream, catalog })
      return async (interest, code, callers) => {
        if (code === 404) return await confirm(interest, code)
        if (code !== 403 || upstream.reachability.state !== 'reachable') return false
        return await proofs.isWithdrawn(interest.name, callers)
      }
    },
    callers: (rules) => new LinkedRules({ link, clock, rules }),
  }
}

/** Throws `UsageError`. */
function openHubs(parts: ConstructorParameters<typeof Hubs>[0]): Hubs {
  try {
    return new Hubs(parts)
  } catch (error) {
    throw new UsageError(reasonOf(error))
  }
}

/** The hub says of which cluster it is before anything else is asked. */
function arrivalAt({ current }: FollowedHubCredential, addresses: readonly URL[]) {
  return {
    server: '',
    isOwn: true,
    addresses: addresses.map(({ href }) => href),
    authorities: authoritiesOf({ ca: current.ca, insecure: false }),
  }
}

/** As the API server would say it. */
function identity(uid: string): Promise<{ readonly status: number; readonly body: Buffer }> {
  const namespace = { kind: 'Namespace', metadata: { name: 'kube-system', uid } }
  return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify(namespace)) })
}
