/**
 * Through a hub: one link for everything. To the hub the edge is its node, so what it asks for itself it may have as far as that may;
 * everything else goes up in its caller's name.
 */
import { systemClock } from '../base/clock.ts'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { Scope } from '../kube/scope.ts'
import { type Interest, interestOf } from '../mirror/interest.ts'
import { authoritiesOf } from '../upstream/authorities.ts'
import { dialTcp } from '../upstream/dial.ts'
import { EdgeLink } from '../upstream/linked/edgelink.ts'
import { followLinked } from '../upstream/linked/followlinked.ts'
import { FollowedHubCredential } from '../upstream/linked/hubcredential.ts'
import { Hubs } from '../upstream/linked/hubs.ts'
import { InterestProofs } from '../upstream/linked/interestproofs.ts'
import { LinkedUpstream } from '../upstream/linked/linkedupstream.ts'
import type { Gate } from '../upstream/upstream.ts'
import type { CloudLine } from './cloudline.ts'
import { confirmRefusal, reviewRead } from './confirm.ts'
import { LinkEpochs } from './linkepochs.ts'
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

export async function openLinkedLine({ hub, credential: path }: HubWay, parts: Parts): Promise<CloudLine> {
  const { log, gate, cluster } = parts
  const credential = await FollowedHubCredential.open({ path, clock, log })
  const addresses = hub.map((address) => new URL(address))
  let nowMs = () => clock.now()
  let epochs: LinkEpochs | undefined
  const hubs = openHubs({
    ...{ addresses, credential, clock, log, dial: dialTcp(), environment: process.env },
    now: () => nowMs(),
  })
  const link = new EdgeLink({
    ...{ hubs, edge: credential.node, release: akeVersion, clock, log },
    // A copy of no known epoch is compared by its contents, whatever the hub has heard of its cluster.
    known: () =>
      epochs?.newest === undefined ? { cluster: '', epoch: 0 } : { cluster: cluster(), epoch: epochs.newest },
    admit: (seen) => gate.admit({ ...seen, ...arrivalAt(credential, addresses), get: () => identity(seen.cluster) }),
  })
  const upstream = new LinkedUpstream({
    link,
    addresses,
    credential,
    userAgent: `ake/${akeVersion} (edge)`,
    clock,
    log,
  })
  return {
    upstream,
    node: credential.node,
    comparedBytesPerDay,
    async follow({ store, limits, proven }) {
      const opened = await LinkEpochs.open({ store, log })
      opened.keep(new Set((await store.records('interest')).map(({ key }) => key)))
      epochs = opened
      const proofs = new InterestProofs({ link, clock, proven })
      const nameOf = (scope: Scope) => interestOf(scope).name
      return { follow: followLinked({ link, upstream, epochs: opened, proofs, nameOf, limits, clock }), proofs }
    },
    trustTime(trusted) {
      nowMs = trusted
    },
    // By its name alone the edge may have what its node may; all that the hub may where that trusts its edges.
    mayRead: (interest: Interest) => reviewRead(interest, { upstream, by: 'administrator' }),
    // Refused is what no caller has proved a right to at present. That may be in a moment: the data stay, as without the cloud.
    confirms: (catalog) => {
      const confirm = confirmRefusal({ upstream, catalog })
      return async (interest, code) => code === 404 && (await confirm(interest, code))
    },
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
