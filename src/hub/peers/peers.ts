/**
 * All edges at this hub. A name has one link: of two the newer certificate wins, which is the one that was issued later, and with
 * equal ones the newer link, since the older is most often one that broke and was not noticed yet. What is told to many edges in
 * one turn is sent behind it, so that each gets one frame, and a moment at a time, so that thousands of them do not delay the rest.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { pieceMsMax, turns } from '../../base/turns.ts'
import type { Warnings } from '../../base/warnings.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { HubSessionParts } from '../../link/session/hubparts.ts'
import { SharedChanges } from '../../link/session/sharedchanges.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import type { HubSources } from '../sources/sources.ts'
import { peerLimits } from './limits.ts'
import { hubEnds, LinkedEdge, type PeerSocket, type PeerTraffic } from './linkededge.ts'
import type { EdgeRights, PeerPolicies } from './rights.ts'
import { LookingBudgets } from './selections.ts'
import { Sweep } from './sweep.ts'

type SharedParts = 'hub' | 'release' | 'cluster' | 'digestKey' | 'trustsEdges' | 'signs' | 'limits'
type Parts = Pick<HubSessionParts, SharedParts> & {
  readonly epoch: number
  readonly lost: number
  readonly sources: Pick<HubSources, 'open' | 'versions' | 'heardAt' | 'present'>
  readonly rights: EdgeRights
  /** Without it there are none. */
  readonly policies?: PeerPolicies
  /** A sentence for an edge whose certificate counts no more. */
  readonly revoked?: (edge: EdgePeer) => string | undefined
  /** An edge that proved its name was refused, or its link ended for that. */
  readonly refused?: (edge: EdgePeer, why: string) => void
  /** An edge was let in, and has left. */
  readonly came?: (edge: EdgePeer) => void
  readonly gone?: (edge: EdgePeer) => void
  /** What takes the streams of an edge. */
  readonly acceptFor: (edge: EdgePeer) => (incoming: IncomingStream) => void
  readonly clock: Clock
  readonly log: Log
  /** Of what edges are refused, and of links that end by their fault. */
  readonly warnings: Pick<Warnings, 'warn'>
}

export class HubPeers {
  readonly #parts: Parts
  readonly #changes = new SharedChanges()
  readonly #looking: LookingBudgets
  /** Each with the part of a minute in which it is looked after. */
  readonly #all = new Map<LinkedEdge, number>()
  #nextPart = 0
  /** Those that were let in. */
  readonly #byName = new Map<string, LinkedEdge>()
  readonly #woken = new Set<LinkedEdge>()
  readonly #ends = new Set<() => void>()
  /** When edges were first written to in the present window of time, and how often since. */
  #windowAt = Number.NEGATIVE_INFINITY
  #written = 0
  #epoch: number
  #lost: number
  #isEnding = false
  readonly #policing = new Sweep({ links: () => this.#all.keys(), look: (peer) => peer.policed() })
  readonly #certifying = new Sweep({
    links: () => this.#all.keys(),
    look: (peer) => {
      const refusal = this.#revokedOf(peer)
      if (refusal !== undefined) peer.close(refusal)
    },
  })
  /** Since it was made, also of links that have ended. */
  readonly traffic: PeerTraffic = { sentBytes: 0, receivedBytes: 0, events: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    this.#looking = new LookingBudgets(parts.clock)
    this.#epoch = parts.epoch
    this.#lost = parts.lost
  }

  get size(): number {
    return this.#all.size
  }

  /** Of the edges that were let in. */
  names(): Iterable<string> {
    return this.#byName.keys()
  }

  /** Whether a link of that node is here. */
  has(node: string): boolean {
    return this.#byName.has(node)
  }

  figures(): readonly LinkedEdge['figures'][] {
    return [...this.#byName.values()].map(({ figures }) => figures)
  }

  /** A link that was just made. */
  accept(link: PeerSocket): void {
    const { hub, release, cluster, digestKey, trustsEdges = false, signs, limits } = this.#parts
    const { sources, rights, policies, acceptFor, clock, log, warnings } = this.#parts
    const shared = { ...(limits && { limits }), ...(signs && { signs }) }
    const session = { hub, release, cluster, digestKey, trustsEdges, changes: this.#changes, ...shared }
    const peer = new LinkedEdge({
      ...{ link, sources, rights, clock, log, warnings, accept: acceptFor(link.peer), looking: this.#looking },
      ...(policies === undefined ? {} : { policies }),
      session: { ...session, epoch: this.#epoch, lost: this.#lost },
      admit: (one) => this.#admit(one),
      wake: (one) => this.#wake(one),
      ended: (one) => this.#ended(one),
      all: this.traffic,
    })
    if (peer.isOver) return
    this.#all.set(peer, this.#nextPart)
    this.#nextPart = (this.#nextPart + 1) % peerLimits.marksParts
  }

  /** Documents of the cluster have changed: edges hear it by their signs. */
  signed(): void {
    for (const peer of this.#all.keys()) peer.signed()
  }

  /** The cluster was put back: what edges hold is of a past that no longer exists. */
  lost(epoch: number, version: number): void {
    this.#epoch = epoch
    this.#lost = version
    for (const peer of this.#all.keys()) peer.lost(epoch, version)
  }

  /**
   * Policies have changed: edges of which they say something else are told, and judged again, a moment at a time. Where it was the labels of some Nodes,
   * only the links of these are looked at; one that is being handed over to the next ends within seconds.
   */
  async policed(nodes?: ReadonlySet<string>): Promise<void> {
    if (nodes === undefined || nodes.size > peerLimits.namedMax) return await this.#policing.run()
    for (const node of nodes) this.#byName.get(node)?.policed()
  }

  /** What was taken back may be another now: links that it concerns end. */
  async judgeCertificates(): Promise<void> {
    await this.#certifying.run()
  }

  /** A newer link of its name is at another replica, with a newer certificate where it is handed over to that. */
  replace(edge: EdgePeer, { sentence, isHandOver }: { readonly sentence: string; readonly isHandOver: boolean }): void {
    const peer = this.#byName.get(edge.name)
    if (peer?.edge !== edge) return
    // It counts as gone from here on, as at the replicas.
    this.#byName.delete(edge.name)
    this.#end(peer, replaced(sentence), isHandOver)
  }

  /** Ends the links of this name, also one that is being handed over to another; a new one may come. */
  end(name: string, sentence: string): void {
    for (const peer of [...this.#all.keys()])
      if (peer.edge.name === name) peer.close({ reason: 'other', retryAfterMs: peerLimits.endedRetryMs, sentence })
  }

  /** Tells edges how far their sources are, and looks whether they may still have what they have. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, sources } = this.#parts
    const { marksEveryMs, marksParts } = peerLimits
    for (let part = 0; !signal.aborted; part = (part + 1) % marksParts) {
      await sleep(clock, marksEveryMs / marksParts, signal)
      if (signal.aborted) return
      const versions = sources.versions()
      for (const [peer, of] of this.#all) {
        if (of !== part) continue
        peer.mark(versions)
        void peer.judgeAgain()
      }
    }
  }

  /** Asks all to go elsewhere, a few at a time, so that they do not arrive there at once. Resolves when none is left. */
  async drain(withinMs: number, sentence: string): Promise<void> {
    const { clock } = this.#parts
    const endsAt = clock.steady() + withinMs
    this.#isEnding = true
    const peers = [...this.#all.keys()]
    for (const [at, peer] of peers.entries())
      clock.setTimer((withinMs / 2) * (at / peers.length), () => peer.drain(wholeMs(endsAt - clock.steady()), sentence))
    if (peers.length > 0) await new Promise<void>((resolve) => void this.#ends.add(resolve))
  }

  #admit(peer: LinkedEdge): SessionRefusal | undefined {
    if (this.#isEnding) return hubEnds
    const revoked = this.#revokedOf(peer)
    if (revoked !== undefined) return revoked
    const { name, certificate, from } = peer.edge
    const other = this.#byName.get(name)
    if (other !== undefined && other.edge.certificate.issuedAtMs > certificate.issuedAtMs)
      return replaced(`a link with a newer certificate of "${name}" is here, from ${other.edge.from}`)
    this.#byName.set(name, peer)
    // Labels of its Node may have changed since it came, when it had no name here.
    peer.policed()
    const isNewer = other !== undefined && other.edge.certificate.issuedAtMs < certificate.issuedAtMs
    const what = isNewer ? 'a newer certificate' : 'the same certificate'
    const refusal = replaced(`a newer link with ${what} of "${name}" has come, from ${from}`)
    if (other !== undefined) this.#end(other, refusal, isNewer)
    this.#parts.log.debug('edge.came', { edge: name, from })
    this.#parts.came?.(peer.edge)
    return undefined
  }

  /** An edge that has renewed its certificate ends the link before by itself, once what runs over that has been answered. */
  #end(peer: LinkedEdge, refusal: SessionRefusal, isHandOver: boolean): void {
    if (!isHandOver) peer.close(refusal)
    else
      this.#parts.clock.setTimer(peerLimits.handOverMsMax, () => {
        if (!peer.isOver) peer.close(refusal)
      })
  }

  #revokedOf({ edge }: LinkedEdge): SessionRefusal | undefined {
    const { revoked, refused } = this.#parts
    const sentence = revoked?.(edge)
    if (sentence === undefined) return undefined
    refused?.(edge, sentence)
    return { reason: 'identity', retryAfterMs: peerLimits.replacedRetryMs, sentence }
  }

  #ended(peer: LinkedEdge): void {
    this.#all.delete(peer)
    this.#woken.delete(peer)
    const { name } = peer.edge
    if (this.#byName.get(name) === peer) this.#byName.delete(name)
    this.#parts.gone?.(peer.edge)
    if (!this.#isEnding || this.#all.size > 0) return
    for (const end of this.#ends) end()
    this.#ends.clear()
  }

  /** Behind the turn in which it was told; where many were written to just now, a moment later. */
  #wake(peer: LinkedEdge): void {
    this.#woken.add(peer)
    if (this.#woken.size > 1) return
    const { clock } = this.#parts
    const waitMs = this.#windowAt + peerLimits.batchMs - clock.steady()
    if (this.#written < peerLimits.promptMax || waitMs <= 0) queueMicrotask(() => void this.#flush())
    else clock.setTimer(waitMs, () => void this.#flush())
  }

  async #flush(): Promise<void> {
    const { clock } = this.#parts
    const woken = [...this.#woken]
    this.#woken.clear()
    const isNewWindow = clock.steady() - this.#windowAt >= peerLimits.batchMs
    this.#written = woken.length + (isNewWindow ? 0 : this.#written)
    if (isNewWindow) this.#windowAt = clock.steady()
    let beganAt = performance.now()
    for (const peer of woken) {
      peer.flush()
      if (performance.now() - beganAt < pieceMsMax) continue
      await turns.take()
      beganAt = performance.now()
    }
  }
}

/** As a frame says it: the steady clock has parts of a millisecond. */
function wholeMs(ms: number): number {
  return Math.max(0, Math.ceil(ms))
}

function replaced(sentence: string): SessionRefusal {
  return { reason: 'replaced', retryAfterMs: peerLimits.replacedRetryMs, sentence }
}
