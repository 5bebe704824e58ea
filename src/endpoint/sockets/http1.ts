/** HTTP/1.1 on connections that have shaken hands: requests, upgrades, and what is no request at all. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { createServer } from '../../base/http.ts'
import { originForm } from '../../kube/request.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Request, Response } from '../endpoint.ts'
import type { VisitingConnection } from './connections.ts'
import { type Exchange, type Exchanges, shuttingDown } from './exchanges.ts'
import { goneWith } from './gone.ts'
import type { SocketLimits } from './limits.ts'
import { answerOf, closingHead, type Upgraded, Upgrades, wantsUpgrade } from './upgrade.ts'
import { isWebSocketWatch, WebSocketWatches } from './websocket/watch.ts'

type Parts = {
  readonly handle: (request: Request) => Promise<Response>
  readonly upgrade: ((request: Request) => Promise<Upgraded | Response>) | undefined
  readonly linkOf: (socket: TLSSocket) => VisitingConnection
  readonly exchanges: Exchanges
  readonly limits: SocketLimits
  readonly traffic: Traffic
}

export class Http1 {
  readonly #parts: Parts
  readonly #server
  readonly #upgrades: Upgrades
  readonly #watches: WebSocketWatches

  constructor(parts: Parts) {
    this.#parts = parts
    const { limits, traffic, upgrade, exchanges } = parts
    this.#upgrades = new Upgrades({ limits, traffic })
    this.#watches = new WebSocketWatches({ sender: exchanges.sender, limits, traffic })
    this.#server = createServer({
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.handshakeMsMax,
      // Bodies are timed where they are read: one that is passed on may take as long as it keeps coming.
      requestTimeout: 0,
      keepAliveTimeout: limits.idleMsMax,
      connectionsCheckingInterval: limits.handshakeMsMax / 4,
      shouldUpgradeCallback: (request) => wantsUpgrade(request) && (upgrade !== undefined || isWebSocketWatch(request)),
    })
    // Limited by their bytes: beyond a number of them Node would leave the rest out in silence.
    this.#server.maxHeadersCount = 0
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuse(error.code, socket))
    // It never listens itself, and only that event makes it keep track of its connections: without it neither are late
    // headers timed out nor idle connections closed.
    this.#server.emit('listening')
    this.#server.on('request', (request, response) => void this.#request(request, response))
    this.#server.on('upgrade', (request, socket, head) => void this.#upgrade(request, socket as TLSSocket, head))
  }

  accept(socket: TLSSocket): void {
    this.#server.emit('connection', socket)
  }

  closeIdle(): void {
    this.#server.closeIdleConnections()
  }

  #exchange(incoming: IncomingMessage, out: Writable, respond: (head: Response) => void): Exchange {
    const { exchanges, linkOf } = this.#parts
    const { peer, visit } = linkOf(incoming.socket as TLSSocket)
    const { headers } = incoming
    const declared = headers['content-length']
    const request: Request = {
      method: incoming.method ?? 'GET',
      url: originForm(incoming.url ?? '/'),
      headers: headers as Request['headers'],
      rawHeaders: incoming.rawHeaders,
      hasBody: headers['transfer-encoding'] !== undefined || Number(declared ?? 0) > 0,
      body: () =>
        exchanges.bodies.read(incoming, { declared, holder: exchanges.holderOf(visit, request), answer: out }),
      stream: () => exchanges.bodies.pass(incoming, exchanges.holderOf(visit, request)),
      gone: () => goneWith(out),
      holder: () => exchanges.holderOf(visit, request),
      peer,
    }
    return { request, visit, incoming, out, respond }
  }

  async #request(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { exchanges } = this.#parts
    outgoing.on('error', exchanges.fault)
    const exchange = this.#exchange(incoming, outgoing, (response) => {
      if (exchanges.closing) outgoing.shouldKeepAlive = false
      outgoing.writeHead(response.status, response.headers as never)
      // A watch's client waits for the headers; the client of any other gets them in one packet with the body.
      if (Symbol.asyncIterator in response.body) outgoing.flushHeaders()
    })
    await exchanges.serve(exchange)
    // What a refused upload still sends is thrown away for a moment, since a client that is still sending does not look
    // for its answer, and one that finds its connection reset never does. Then the connection ends.
    if (incoming.complete || incoming.destroyed) return
    this.#linger(incoming)
    incoming.resume()
  }

  async #upgrade(incoming: IncomingMessage, socket: TLSSocket, behind: Buffer): Promise<void> {
    const { exchanges } = this.#parts
    const exchange = this.#exchange(incoming, socket, (head) => socket.write(closingHead(head), 'latin1'))
    const { request, visit } = exchange
    exchanges.begin(visit, socket)
    let giveBack: (() => void) | undefined
    try {
      giveBack = this.#upgrades.take(await exchanges.identify(visit, request), request.url)
      const answer =
        giveBack === undefined
          ? exchanges.refusal('too many connections of this caller are upgraded')
          : await this.#upgraded(request, socket, behind)
      if (answer === undefined) return
      if ('socket' in answer && answer.status === 101) {
        await this.#upgrades.join(socket, behind, answer)
        return
      }
      // No upgrade: an ordinary answer, and the connection ends, for no requests are read from it any more.
      socket.once('finish', () => this.#linger(socket))
      socket.resume()
      await exchanges.send(exchange, 'socket' in answer ? answerOf(answer) : answer)
    } catch (error) {
      exchanges.fault(error as Error)
      socket.destroy()
    } finally {
      giveBack?.()
    }
  }

  async #upgraded(request: Request, socket: TLSSocket, behind: Buffer): Promise<Upgraded | Response | undefined> {
    const { exchanges, handle, upgrade } = this.#parts
    if (exchanges.closing) return shuttingDown()
    if (isWebSocketWatch(request)) return await this.#watches.serve(request, { socket, behind }, handle)
    return await upgrade?.(request)
  }

  /** What is no request: told so, and read a moment longer for the same reason as above. */
  #refuse(code: string | undefined, socket: Duplex): void {
    if (socket.writableEnded) return
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const status = malformed.get(code ?? '') ?? '400 Bad Request'
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`)
    this.#linger(socket)
  }

  #linger(sending: Readable): void {
    const lingering = setTimeout(() => sending.destroy(), this.#parts.limits.lingerMsMax)
    sending.once('close', () => clearTimeout(lingering))
  }
}

/** Node's names for what HTTP/1.1 has a number for. */
const malformed: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])
