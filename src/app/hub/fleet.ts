/** What a hub goes by, and tells, of its edges as a fleet: revocations, their Nodes, Events of both, and other replicas. */
import type { WebSocket } from 'ws'
import type { Clock } from '../../base/clock.ts'
import type { Log, LogFields } from '../../base/log.ts'
import type { Warnings } from '../../base/warnings.ts'
import type { ClusterAuthorities } from '../../hub/access/clusterauthorities.ts'
import { type FleetEventReason, FleetEvents } from '../../hub/fleet/fleetevents.ts'
import { FleetNodes } from '../../hub/fleet/fleetnodes.ts'
import { retirementOf } from '../../hub/identity/identities.ts'
import type { HubPeers } from '../../hub/peers/peers.ts'
import type { Policies } from '../../hub/policy/policies.ts'
import { revocationOf, unjudgeable } from '../../hub/policy/revocation.ts'
import { ReplicaAddresses } from '../../hub/replicas/replicaaddresses.ts'
import { ReplicaSockets } from '../../hub/replicas/replicasockets.ts'
import type { EdgePeer } from '../../hub/sockets/edgepeer.ts'
import type { HubSources } from '../../hub/sources/sources.ts'
import type { HubState } from '../../hub/state/state.ts'
import type { Upstream } from '../../upstream/upstream.ts'

type Parts = {
  readonly hub: string
  readonly upstream: Pick<Upstream, 'ask'>
  readonly sources: Pick<HubSources, 'open'>
  readonly policies: Pick<Policies, 'isKnown' | 'why' | 'revokedSince' | 'observe'>
  readonly state: () => HubState
  readonly clusterAuthorities: Pick<ClusterAuthorities, 'retirementOf' | 'unread'>
  /** Of the replicas; undefined: this hub goes by itself. */
  readonly service: { readonly namespace: string; readonly name: string } | undefined
  readonly clock: Clock
  readonly log: Log
  readonly warnings: Pick<Warnings, 'warn'>
}

type FleetPeers = Pick<HubPeers, 'end' | 'judgeCertificates' | 'replace'>

/** As long as the API server keeps Events by itself: a Node is new, or the certificate of its edge, for that long. */
const newMs = 3_600_000

export class HubFleet {
  readonly #parts: Parts
  readonly #nodes: FleetNodes
  readonly #addresses: ReplicaAddresses | undefined
  readonly #replicas: ReplicaSockets | undefined
  #peers: FleetPeers | undefined
  /** Edges that came before the Nodes were read, by name. */
  readonly #early = new Map<string, EdgePeer>()
  readonly events: FleetEvents

  constructor(parts: Parts) {
    const { hub, upstream, sources, policies, clock, log } = parts
    this.#parts = parts
    this.events = new FleetEvents({ hub, upstream, clock, log })
    this.#nodes = new FleetNodes({
      ...{ sources, clock, deleted: (name) => this.#deleted(name) },
      read: () => {
        for (const edge of this.#early.values()) this.#came(edge)
        this.#early.clear()
      },
    })
    // No revocation goes by the labels of a Node.
    policies.observe((nodes) => {
      if (nodes === undefined) void this.#peers?.judgeCertificates()
    })
    const { service, state } = parts
    if (service === undefined) return
    const addresses = new ReplicaAddresses({ sources, service, clock })
    this.#addresses = addresses
    this.#replicas = new ReplicaSockets({
      ...{ hub, state, clock, log, addresses: () => addresses.all },
      replaced: (edge, ending) => this.#peers?.replace(edge, ending),
    })
  }

  /** The edges that other replicas hold, as far as they are known. */
  get others(): ReplicaSockets['others'] {
    return this.#replicas?.others ?? []
  }

  /** Whether another replica holds an edge of that name, as far as that is known. */
  isLinkedElsewhere(name: string): boolean {
    return this.#replicas?.holdsElsewhere(name) ?? false
  }

  /** Whose links end where a Node or a certificate does. */
  attach(peers: FleetPeers): void {
    this.#peers = peers
  }

  /** What the sockets and the links of edges ask and tell. */
  readonly hooks = {
    notYet: () => unjudgeable(this.#parts.policies),
    clusterUnread: () => this.#parts.clusterAuthorities.unread,
    /** Why a certificate that was let in counts no more: it was revoked, or the authority that signed it was retired. */
    revoked: (edge: EdgePeer) =>
      revocationOf(edge, this.#parts.policies) ??
      retirementOf(edge, this.#parts.state()) ??
      this.#parts.clusterAuthorities.retirementOf(edge),
    refused: (edge: EdgePeer, why: string) => this.#refused(edge, why),
    unusable: (edge: { readonly name: string; readonly from: string }, why: string) => this.#unusable(edge, why),
    came: (edge: EdgePeer) => {
      this.#came(edge)
      this.#replicas?.came(edge)
    },
    gone: (edge: EdgePeer) => this.#replicas?.gone(edge),
    replica: (line: WebSocket) => {
      if (this.#replicas === undefined) line.terminate()
      else this.#replicas.accept(line)
    },
  }

  async run(signal: AbortSignal): Promise<void> {
    const all = [this.#nodes, this.events, this.#addresses, this.#replicas].filter((one) => one !== undefined)
    await Promise.all(all.map((one) => one.run(signal)))
  }

  #refused(edge: EdgePeer, why: string): void {
    const { name, from, certificate, resumed } = edge
    if (revocationOf(edge, this.#parts.policies) === undefined) {
      this.#unusable(edge, why)
      return
    }
    const { serial, vouchedAtMs } = certificate
    this.#tellRefusal('EdgeRevoked', name, `${why}, from ${from}`)
    const issued = new Date(vouchedAtMs).toISOString()
    this.#warn('edge.revoked', { edge: name, from, serial, issued, resumed, why })
  }

  #unusable({ name, from }: { readonly name: string; readonly from: string }, why: string): void {
    this.#tellRefusal('EdgeRefused', name, `${why} (it came from ${from})`)
    this.#warn('edge.refused', { edge: name, from, why })
  }

  #tellRefusal(reason: FleetEventReason, node: string, message: string): void {
    this.events.tell({ node, uid: this.#nodes.get(node)?.uid, reason, message })
  }

  #warn(event: string, fields: LogFields & { readonly edge: string }): void {
    this.#parts.warnings.warn(event, { who: fields.edge, kind: 'certificate', same: '' }, fields)
  }

  /**
   * Whether it is new its Node tells, and not its certificate, which may have been carried around for days: a new edge has none, or one that was
   * just made. One that never gets a Node is told of again when it comes.
   */
  #came(edge: EdgePeer): void {
    const { name, from, certificate } = edge
    if (!this.#nodes.isKnown) {
      this.#early.set(name, edge)
      return
    }
    const now = this.#parts.clock.now()
    const node = this.#nodes.get(name)
    const isNew = node === undefined || now - node.madeAtMs < newMs
    if (!isNew && now - certificate.issuedAtMs > newMs) return
    const how = node === undefined ? 'and has no Node yet' : isNew ? 'and its Node is new' : 'with a new certificate'
    const ends = new Date(certificate.endsAtMs).toISOString()
    this.events.tell({
      ...{ node: name, uid: node?.uid, once: certificate.fingerprint },
      reason: isNew ? 'EdgeJoined' : 'EdgeRenewed',
      message: `the edge came, ${how}, from ${from}; its certificate ends on ${ends}`,
    })
  }

  #deleted(name: string): void {
    this.#parts.log.info('edge.deleted', { edge: name })
    this.#peers?.end(name, `the Node "${name}" was deleted: its link ends, and what was proved over it`)
  }
}
