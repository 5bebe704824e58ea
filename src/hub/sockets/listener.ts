/**
 * Where edges reach a hub: WebSocket over TLS 1.3 with client certificates, on any number of addresses. Every process with the
 * same state resumes the sessions of the others. What a link says is its driver's affair.
 */
import type { X509Certificate } from 'node:crypto'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../../base/clock.ts'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { type LinkLimits, linkPath, webSocketOptions } from '../../link/socket/limits.ts'
import { LinkSocket } from '../../link/socket/linksocket.ts'
import type { KeyPair } from '../../pki/certificate.ts'
import { authoritiesOf } from '../state/authorities.ts'
import type { HubState } from '../state/state.ts'
import { Arrivals } from './arrivals.ts'
import { type EdgePeer, type EdgeTrust, edgePeerOf } from './edgepeer.ts'
import { type HubSocketLimits, standardHubLimits } from './limits.ts'
import { answerPlain, type PlainAnswer, type PlainAsker, type PlainRequest } from './plain.ts'
import { refuse } from './refusal.ts'
import { replicaFaultOf, replicaPath } from './replicapeer.ts'

/** By `getBuiltinModule`, as `base/http` says why. */
const { createServer } = process.getBuiltinModule('node:https')

type Parts = {
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  readonly state: HubState
  /** Those by which the cluster knows clients: what edges that joined show is signed by one of them. */
  readonly clusterAuthorities?: readonly X509Certificate[]
  readonly serving: KeyPair
  readonly clock: Clock
  readonly log: Log
  /** Why no edge can be judged yet; undefined: each can. */
  readonly notYet?: () => string | undefined
  /** Why it is not known yet by which authorities the cluster knows clients: what none here has signed one of those may have. */
  readonly clusterUnread?: () => string | undefined
  /** A sentence for an edge that shows a certificate which was taken back. */
  readonly revoked?: (peer: EdgePeer) => string | undefined
  /** Answers requests that are none for a link: of machines that would join. */
  readonly plain?: (asked: PlainRequest) => Promise<PlainAnswer>
  /** An edge that proved its name was refused all the same. */
  readonly refused?: (peer: EdgePeer, why: string) => void
  /** A certificate that was signed for an edge was refused: it has expired, or is not one of a client. */
  readonly unusable?: (edge: { readonly name: string; readonly from: string }, why: string) => void
  /** Another replica of this hub has dialled. */
  readonly replica?: (line: WebSocket) => void
  /** It begins the link at once. */
  readonly accepted: (link: LinkSocket<EdgePeer>) => void
  readonly limits?: Partial<HubSocketLimits>
  readonly linkLimits?: Partial<LinkLimits>
}

/** As long as a ticket lives at most, in seconds: no longer than its key (`hub/state`). */
const sessionSeconds = 7 * 24 * 3600

export class HubListener {
  readonly #parts: Parts
  readonly #limits: HubSocketLimits
  #state: HubState
  #trust: EdgeTrust
  readonly #arrivals: Arrivals
  readonly #links = new Set<LinkSocket<EdgePeer>>()
  readonly #webSockets = new WebSocketServer({ ...webSocketOptions, noServer: true, clientTracking: false })
  /** Listens nowhere itself: it is given what may shake hands now. */
  readonly #tls
  readonly #listeners: Server[] = []
  #serving: KeyPair
  #isEnding = false
  /** Since it was made. */
  readonly counts = { full: 0, resumed: 0, refused: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...standardHubLimits, ...parts.limits }
    this.#state = parts.state
    this.#trust = { hub: certificatesOf(parts.state), cluster: parts.clusterAuthorities ?? [] }
    this.#serving = parts.serving
    this.#tls = createServer({
      ...this.#context(),
      requestCert: true,
      // An edge that it does not know gets a sentence, and not a connection that is cut.
      rejectUnauthorized: false,
      handshakeTimeout: this.#limits.arrivalMsMax,
      maxHeaderSize: this.#limits.headerBytesMax,
      // A list of protocols is copied for each connection, into a buffer that as long as this lives keeps 64 KiB from being freed.
      ALPNCallback: ({ protocols }) => protocols.find((protocol) => protocol === 'http/1.1'),
    })
    this.#arrivals = new Arrivals({
      clock: parts.clock,
      limits: this.#limits,
      begin: (socket) => void this.#tls.emit('connection', socket),
    })
    this.#tls.on('secureConnection', (socket: TLSSocket) => {
      const resumed = socket.isSessionReused()
      this.counts[resumed ? 'resumed' : 'full']++
      this.#arrivals.secured(socket, resumed)
    })
    this.#tls.on('tlsClientError', (_error, socket) => socket.destroy())
    this.#tls.on('clientError', (_error, socket) => void socket.destroy())
    this.#tls.on('request', (request, response) => {
      const { plain: answer } = parts
      if (answer !== undefined && request.url !== linkPath) {
        const asker = () => this.#askerOf(request.socket as TLSSocket)
        answerPlain(request, response, { asker, answer }).catch((error: unknown) => {
          // Most often the client has gone.
          if (!request.socket.destroyed) parts.log.error('hub.plain', { why: reasonOf(error) })
          request.socket.destroy()
        })
        return
      }
      response
        .writeHead(426, { connection: 'close', upgrade: 'websocket' })
        .end('this is a hub: edges speak the link here\n')
    })
    this.#tls.on('upgrade', (request, socket, head) => {
      const tls = socket as TLSSocket
      const { replica } = parts
      if (request.url === replicaPath && replica !== undefined) {
        const why = replicaFaultOf(tls, this.#trust.hub, parts.clock.now())
        if (why === undefined) {
          this.#arrivals.arrived(tls as Socket)
          this.#webSockets.handleUpgrade(request, socket, head, replica)
        } else this.#refuse(tls, { status: 401, sentence: why })
        return
      }
      const refusal =
        request.url === linkPath ? this.#refusalOf(tls) : { status: 404, sentence: 'edges ask for the link' }
      if ('status' in refusal) {
        this.#refuse(tls, refusal)
        return
      }
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#accept(webSocket, tls, refusal.peer))
    })
  }

  get links(): number {
    return this.#links.size
  }

  /** Not links yet, how many of them wait for their handshake, and how many were told to come back so far. */
  get arriving(): { readonly all: number; readonly waiting: number; readonly turnedAway: number } {
    const { size, waiting, turnedAway } = this.#arrivals
    return { all: size, waiting, turnedAway }
  }

  /** Resolves with the addresses, free ports filled in. */
  async listen(): Promise<{ readonly host: string; readonly port: number }[]> {
    for (const { host, port } of this.#parts.addresses) {
      const server = createTcp({ noDelay: true, keepAlive: true }, (socket) => this.#arrivals.add(socket))
      this.#listeners.push(server)
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, resolve)
      })
    }
    return this.#listeners.map((server, at) => {
      const { port } = server.address() as AddressInfo
      return { host: this.#parts.addresses[at]?.host ?? '', port }
    })
  }

  /**
   * Tickets of a key before are worth nothing from now on: their edges shake hands in full, at the rate for that. A certificate of
   * an authority that is not there any more is refused from now on; links that there are stay.
   */
  setState(state: HubState, serving: KeyPair): void {
    const isOtherKey = !state.tickets.key.equals(this.#state.tickets.key)
    this.#state = state
    this.#trust = { ...this.#trust, hub: certificatesOf(state) }
    if (isOtherKey) this.#tls.setTicketKeys(state.tickets.key)
    this.setServing(serving)
  }

  setServing(serving: KeyPair): void {
    this.#serving = serving
    this.#tls.setSecureContext(this.#context())
  }

  setClusterAuthorities(cluster: readonly X509Certificate[]): void {
    this.#trust = { ...this.#trust, cluster }
    this.#tls.setSecureContext(this.#context())
  }

  /** Edges that come from now on are sent elsewhere; what there is stays. */
  drain(): void {
    this.#isEnding = true
  }

  async close(why: string): Promise<void> {
    const closed = this.#listeners.map((server) => new Promise((resolve) => void server.close(resolve)))
    this.#arrivals.end()
    for (const link of this.#links) link.close('away', why)
    await Promise.all(closed)
  }

  #context() {
    const { tickets, sessionIdContext } = this.#state
    return {
      ...this.#serving,
      ca: [...this.#trust.hub, ...this.#trust.cluster].map(String),
      // An authority that the cluster lists counts, also where another one signed it.
      allowPartialTrustChain: true,
      minVersion: 'TLSv1.3' as const,
      ticketKeys: tickets.key,
      sessionIdContext,
      sessionTimeout: sessionSeconds,
    }
  }

  #refusalOf(socket: TLSSocket): { peer: EdgePeer } | { status: number; sentence: string; retryAfterMs?: number } {
    const { clock, revoked, notYet, clusterUnread, refused, unusable } = this.#parts
    const peer = edgePeerOf(socket, this.#trust, clock.now())
    if ('sentence' in peer) {
      const unread = peer.isForeign === true ? clusterUnread?.() : undefined
      if (unread !== undefined) return this.#unjudged(unread)
      if (peer.name !== undefined) unusable?.({ name: peer.name, from: socket.remoteAddress ?? '' }, peer.sentence)
      return { status: 401, sentence: peer.sentence }
    }
    const unjudged = notYet?.()
    if (unjudged !== undefined) return this.#unjudged(unjudged)
    const why = revoked?.(peer)
    if (why !== undefined) {
      refused?.(peer, why)
      return { status: 403, sentence: why }
    }
    const retryAfterMs = this.#laterMs()
    return retryAfterMs === undefined
      ? { peer }
      : { status: 503, sentence: 'this hub takes no more edges now', retryAfterMs }
  }

  #unjudged(sentence: string) {
    return { status: 503, sentence, retryAfterMs: this.#limits.unjudgedMs * (1 + Math.random()) }
  }

  #refuse(socket: TLSSocket, refusal: Parameters<typeof refuse>[1]): void {
    const { log, clock } = this.#parts
    this.counts.refused++
    log.debug('hub.refused', { from: socket.remoteAddress, status: refusal.status, why: refusal.sentence })
    refuse(socket, refusal, this.#limits.lastWordsMsMax, clock)
  }

  /** By the certificate that was shown, if any. */
  #askerOf(socket: TLSSocket): PlainAsker {
    const { clock, revoked, notYet } = this.#parts
    const nobody = { node: undefined, endedNode: undefined }
    const peer = edgePeerOf(socket, this.#trust, clock.now())
    const isEnded = 'sentence' in peer
    const whose = isEnded ? peer.ended : peer
    if (whose === undefined || notYet?.() !== undefined || revoked?.(whose) !== undefined) return nobody
    return { ...nobody, [isEnded ? 'endedNode' : 'node']: whose.name }
  }

  /** Undefined: there is room. */
  #laterMs(): number | undefined {
    const { linksMax, crowdedMs, endingMs } = this.#limits
    if (!this.#isEnding && this.#links.size < linksMax) return undefined
    return (this.#isEnding ? endingMs : crowdedMs) * (1 + Math.random())
  }

  #accept(webSocket: WebSocket, socket: TLSSocket, peer: EdgePeer): void {
    const { clock, linkLimits = {}, accepted } = this.#parts
    const { firstFrameMsMax } = this.#limits
    this.#arrivals.arrived(socket as Socket)
    const link = new LinkSocket(webSocket, peer, { line: socket, clock, limits: linkLimits })
    this.#links.add(link)
    const cancelTimer = clock.setTimer(firstFrameMsMax, () => {
      if (!link.heard) link.close('refused', `no frame within ${firstFrameMsMax} ms`)
    })
    webSocket.once('close', () => {
      cancelTimer()
      this.#links.delete(link)
    })
    accepted(link)
  }
}

function certificatesOf(state: HubState): readonly X509Certificate[] {
  return authoritiesOf(state).map(({ certificate }) => certificate)
}
