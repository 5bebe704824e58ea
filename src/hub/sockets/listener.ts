/**
 * Where edges reach a hub: WebSocket over TLS 1.3 with client certificates, on any number of addresses. Every process with the
 * same state resumes the sessions of the others. What a link says is its driver's affair.
 */
import { X509Certificate } from 'node:crypto'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type LinkLimits, linkPath, webSocketOptions } from '../../link/socket/limits.ts'
import { LinkSocket } from '../../link/socket/linksocket.ts'
import type { KeyPair } from '../../pki/certificate.ts'
import type { HubState } from '../state/state.ts'
import { Arrivals } from './arrivals.ts'
import { type EdgePeer, edgePeerOf } from './edgepeer.ts'
import { type HubSocketLimits, standardHubLimits } from './limits.ts'
import { refuse } from './refusal.ts'

/** By `getBuiltinModule`, as `base/http` says why. */
const { createServer } = process.getBuiltinModule('node:https')

type Parts = {
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  readonly state: HubState
  readonly serving: KeyPair
  readonly clock: Clock
  readonly log: Log
  /** A sentence for who shows a certificate that was taken back. */
  readonly revoked?: (peer: EdgePeer) => string | undefined
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
  readonly #authority: X509Certificate
  readonly #arrivals: Arrivals
  readonly #links = new Set<LinkSocket<EdgePeer>>()
  readonly #webSockets = new WebSocketServer({ ...webSocketOptions, noServer: true, clientTracking: false })
  /** Listens nowhere itself: it is given what may shake hands now. */
  readonly #tls
  readonly #listeners: Server[] = []
  #serving: KeyPair
  #ticketKey: Buffer
  #movedWithinMs: number | undefined
  /** Since it was made. */
  readonly counts = { full: 0, resumed: 0, refused: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...standardHubLimits, ...parts.limits }
    this.#authority = new X509Certificate(parts.state.ca.cert)
    this.#serving = parts.serving
    this.#ticketKey = parts.state.tickets.key
    this.#tls = createServer({
      ...this.#context(),
      requestCert: true,
      // Whom it does not know gets a sentence, and not a connection that is cut.
      rejectUnauthorized: false,
      handshakeTimeout: this.#limits.arrivalMsMax,
      maxHeaderSize: this.#limits.headerBytesMax,
      ALPNProtocols: ['http/1.1'],
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
    this.#tls.on('request', (_request, response) => {
      response
        .writeHead(426, { connection: 'close', upgrade: 'websocket' })
        .end('this is a hub: edges speak the link here\n')
    })
    this.#tls.on('upgrade', (request, socket, head) => {
      const tls = socket as TLSSocket
      const refusal =
        request.url === linkPath ? this.#refusalOf(tls) : { status: 404, sentence: 'edges ask for the link' }
      if ('status' in refusal) {
        this.counts.refused++
        parts.log.debug('hub.refused', { from: tls.remoteAddress, status: refusal.status, why: refusal.sentence })
        refuse(tls, refusal, this.#limits.lastWordsMsMax, parts.clock)
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

  /** Tickets of the key before are worth nothing from now on: their edges shake hands in full, at the rate for that. */
  setTicketKey(key: Buffer): void {
    this.#ticketKey = key
    this.#tls.setTicketKeys(key)
  }

  setServing(serving: KeyPair): void {
    this.#serving = serving
    this.#tls.setSecureContext(this.#context())
  }

  /** Edges that come from now on are sent elsewhere; what there is stays. */
  drain(withinMs: number): void {
    this.#movedWithinMs = withinMs
  }

  async close(why: string): Promise<void> {
    const closed = this.#listeners.map((server) => new Promise((resolve) => void server.close(resolve)))
    this.#arrivals.end()
    for (const link of this.#links) link.close('away', why)
    await Promise.all(closed)
  }

  #context() {
    const { state } = this.#parts
    return {
      ...this.#serving,
      ca: state.ca.cert,
      minVersion: 'TLSv1.3' as const,
      ticketKeys: this.#ticketKey,
      sessionIdContext: state.sessionIdContext,
      sessionTimeout: sessionSeconds,
    }
  }

  #refusalOf(socket: TLSSocket): { peer: EdgePeer } | { status: number; sentence: string; retryAfterMs?: number } {
    const { clock, revoked } = this.#parts
    const peer = edgePeerOf(socket, this.#authority, clock.now())
    if ('sentence' in peer) return { status: 401, sentence: peer.sentence }
    const why = revoked?.(peer)
    if (why !== undefined) return { status: 403, sentence: why }
    const retryAfterMs = this.#laterMs()
    return retryAfterMs === undefined
      ? { peer }
      : { status: 503, sentence: 'this hub takes no more edges now', retryAfterMs }
  }

  /** Undefined: there is room. */
  #laterMs(): number | undefined {
    const ms = this.#movedWithinMs ?? (this.#links.size >= this.#limits.linksMax ? this.#limits.crowdedMs : undefined)
    return ms === undefined ? undefined : ms * (1 + Math.random())
  }

  #accept(webSocket: WebSocket, socket: TLSSocket, peer: EdgePeer): void {
    const { clock, linkLimits = {}, accepted } = this.#parts
    const { firstFrameMsMax } = this.#limits
    this.#arrivals.arrived(socket as Socket)
    const link = new LinkSocket(webSocket, peer, { clock, limits: linkLimits })
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
