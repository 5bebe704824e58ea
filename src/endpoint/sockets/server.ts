/**
 * The only place that listens: TLS with client certificates, HTTP/2 and HTTP/1.1 on each port, and an end in order. The
 * limits that keep one client's trouble its own are in `exchanges` (requests) and `connections`.
 */
import type { ServerHttp2Session } from 'node:http2'
import { type AddressInfo, createServer as createListener, type Server as Listener, type Socket } from 'node:net'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import type { Log } from '../../base/log.ts'
import { isLoopback } from '../../base/loopback.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Request, Response } from '../endpoint.ts'
import { certified, type Whose } from '../shares.ts'
import { Connections, type Visit, type VisitingConnection } from './connections.ts'
import { Exchanges } from './exchanges.ts'
import { Http1 } from './http1.ts'
import { serveHttp2 } from './http2.ts'
import { type SocketLimits, standardLimits } from './limits.ts'
import { ClientAuthorities, stranger } from './peer.ts'
import type { Upgraded } from './upgrade.ts'

type ListenAddress = { readonly host: string; readonly port: number }
/** PEM texts. */
type ServingPair = { readonly cert: string; readonly key: string }

type Parts = {
  handle(request: Request): Promise<Response>
  /**
   * Asked for what a client wants to upgrade its HTTP/1.1 connection for, watches apart; without it such requests are
   * ordinary ones.
   */
  upgrade?: (request: Request) => Promise<Upgraded | Response>
  /** Without it only the holders of certificates are known. */
  whose?: Whose
  /** Whose answers are compressed if they accept it: clients on other machines (without it), or all. */
  compress?: 'remote' | 'all'
  /** At least one. */
  addresses: readonly ListenAddress[]
  /** `clientCa` is our own authority's certificate, `callersCa` those of others (PEM) whose certificates are callers. */
  tls: ServingPair & { readonly clientCa: string; readonly callersCa?: string }
  traffic: Traffic
  log: Log
  /** Other limits than the standard ones: what the system allows, or tests that cannot wait as long. */
  limits?: Partial<SocketLimits>
}

export class Server {
  readonly #parts: Parts
  readonly #limits: SocketLimits
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #connections: Connections
  /** Every connection by its other end, those that have not shaken hands included. */
  readonly #raw = new Map<string, { readonly socket: Socket; readonly visit: Visit }>()
  /** Those that have, and whose they are: reading a certificate costs more than the rest of a GET. */
  readonly #links = new Map<TLSSocket, VisitingConnection>()
  readonly #exchanges: Exchanges
  readonly #http1: Http1
  /** Listens nowhere itself: what each listener accepts is handed to it, so that one context and one set of limits count. */
  readonly #tls
  readonly #listeners: Listener[] = []
  #serving: ServingPair
  #authorities: ClientAuthorities
  #drained: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    const { handle, upgrade, whose, traffic, log } = parts
    const limits: SocketLimits = { ...standardLimits, ...parts.limits }
    this.#limits = limits
    this.#serving = parts.tls
    this.#connections = new Connections(limits.connectionsMax)
    this.#exchanges = new Exchanges({ handle, whose, connections: this.#connections, limits, traffic, log })
    this.#authorities = new ClientAuthorities(parts.tls.clientCa, parts.tls.callersCa)
    const linkOf = (socket: TLSSocket) => this.#linkOf(socket)
    this.#http1 = new Http1({ handle, upgrade, linkOf, exchanges: this.#exchanges, limits, traffic })
    this.#tls = createTls({
      ...secureContext(this.#serving, this.#authorities),
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: limits.handshakeMsMax,
    })
    this.#tls.on('connection', (socket: Socket) => this.#arrived(socket))
    this.#tls.on('secureConnection', (socket: TLSSocket) => this.#connected(socket))
    this.#tls.on('tlsClientError', (error, socket) => {
      log.debug('tls.refused', { why: error.message })
      // A handshake that took too long is only reported: the socket would stay open.
      socket.destroy()
    })
  }

  /** Begins to listen; resolves with the addresses, the ports as they are. Where one cannot be had, none is. */
  async listen(): Promise<ListenAddress[]> {
    try {
      const listening: ListenAddress[] = []
      for (const address of this.#parts.addresses) listening.push(await this.#listen(address))
      return listening
    } catch (error) {
      for (const listener of this.#listeners) listener.close()
      throw error
    }
  }

  async #listen({ host, port }: ListenAddress): Promise<ListenAddress> {
    const listener = createListener((socket) => this.#tls.emit('connection', socket))
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject)
      listener.listen({ host, port }, resolve)
    })
    listener.removeAllListeners('error')
    listener.on('error', (error) => this.#parts.log.error('server.fault', { why: error.message }))
    this.#listeners.push(listener)
    return { host, port: (listener.address() as AddressInfo).port }
  }

  /** Another serving certificate, for new connections at once; those that are open stay. */
  setServing({ cert, key }: ServingPair): void {
    this.#tls.setSecureContext(secureContext({ cert, key }, this.#authorities))
    this.#serving = { cert, key }
  }

  /**
   * Other authorities whose certificates are callers, besides our own: for new connections at once; those that none stands
   * behind any longer are cut. Throws, and changes nothing, if the text holds none.
   */
  setCallersCa(callersCa: string | undefined): void {
    const authorities = new ClientAuthorities(this.#parts.tls.clientCa, callersCa, this.#authorities)
    this.#tls.setSecureContext(secureContext(this.#serving, authorities))
    this.#authorities = authorities
    for (const [socket, { peer }] of this.#links) {
      if (peer.certificate !== undefined && !authorities.vouchesFor(socket)) socket.destroy()
    }
  }

  /**
   * The first half of an end: no new connection and no new request; resolves when what was under way has got its answer, or
   * has had its time. Whatever answers are made of has to work until then.
   */
  drain(): Promise<void> {
    this.#drained ??= this.#drain()
    return this.#drained
  }

  async #drain(): Promise<void> {
    const drained = this.#exchanges.drain()
    for (const listener of this.#listeners) listener.close()
    for (const session of this.#sessions) session.close()
    const idle = setInterval(() => this.#http1.closeIdle(), closeIdleEveryMs)
    this.#http1.closeIdle()
    await drained
    clearInterval(idle)
  }

  /** The second half: what is still on its way out gets a moment, then every connection is cut. */
  async close(): Promise<void> {
    await this.drain()
    const begunAt = performance.now()
    while (this.#raw.size > 0 && performance.now() - begunAt < this.#limits.lastBytesMsMax) {
      this.#http1.closeIdle()
      await new Promise((resolve) => setTimeout(resolve, closeIdleEveryMs))
    }
    for (const { socket } of this.#raw.values()) socket.destroy()
  }

  #arrived(socket: Socket): void {
    const end = endOf(socket)
    const visit = this.#connections.admit(() => {
      this.#parts.traffic.refused++
      socket.destroy()
    })
    this.#raw.set(end, { socket, visit })
    socket.once('close', () => {
      this.#raw.delete(end)
      this.#connections.remove(visit)
    })
  }

  #connected(socket: TLSSocket): void {
    const visit = this.#raw.get(endOf(socket))?.visit
    // It went while it shook hands.
    if (visit === undefined) return void socket.destroy()
    const { traffic, log } = this.#parts
    const connection = this.#authorities.connectionOf(socket)
    const { peer } = connection
    const link: VisitingConnection = { peer: this.#isNear(socket) ? { ...peer, uncompressed: true } : peer, visit }
    this.#links.set(socket, link)
    traffic.connections = this.#links.size
    this.#connections.greeted(visit, certified(peer))
    socket.setNoDelay(true)
    socket.setKeepAlive(true, this.#limits.pingEveryMs)
    socket.on('error', (error) => log.debug('connection.fault', { why: error.message }))
    socket.on('close', () => {
      this.#links.delete(socket)
      traffic.connections = this.#links.size
    })
    if (socket.alpnProtocol === 'h2') this.#http2(socket, link)
    else this.#http1.accept(socket)
  }

  /** Whether what goes to it never leaves this machine: a unix socket has no address. */
  #isNear({ remoteAddress }: TLSSocket): boolean {
    return this.#parts.compress !== 'all' && (remoteAddress === undefined || isLoopback(remoteAddress))
  }

  #http2(socket: TLSSocket, link: VisitingConnection): void {
    const { traffic, log } = this.#parts
    const session = serveHttp2(socket, link, { exchanges: this.#exchanges, limits: this.#limits, traffic, log })
    this.#sessions.add(session)
    session.on('close', () => this.#sessions.delete(session))
  }

  /** That of a connection which is gone: a stranger's. */
  #linkOf(socket: TLSSocket): VisitingConnection {
    return this.#links.get(socket) ?? { ...stranger, visit: this.#connections.gone }
  }
}

/** How often connections that have become idle are looked for while it ends. */
const closeIdleEveryMs = 20

/** A connection by its two ends: one client may reach two of our addresses from the same port. */
function endOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}

function secureContext({ cert, key }: ServingPair, { pems }: ClientAuthorities) {
  return { cert, key, ca: [...pems], minVersion: 'TLSv1.2' as const }
}
