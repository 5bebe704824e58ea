/**
 * The only file that touches sockets: TLS with client certificates, HTTP/2 and HTTP/1.1 on one port, bodies in and out
 * with back-pressure, and the limits that keep one client's trouble its own.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  constants,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex, Readable, Writable } from 'node:stream'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import { createServer as createHttp1 } from '../base/http.ts'
import type { Log } from '../base/log.ts'
import { tooManyRequests } from '../kube/status.ts'
import { Bodies } from './bodies.ts'
import type { Request, Response } from './endpoint.ts'
import { type Limits, standardLimits } from './limits.ts'
import type { Traffic } from './measures.ts'
import { ClientAuthorities, type Connection, stranger } from './peer.ts'
import { statusResponse } from './respond.ts'
import { cancel, Sender } from './sender.ts'
import { answerOf, closingHead, type Upgraded, Upgrades, wantsUpgrade } from './upgrade.ts'
import { isWebSocketWatch, WebSocketWatches } from './websocketwatch.ts'

type Parts = {
  handle(request: Request): Promise<Response>
  /**
   * Asked for what a client wants to upgrade its HTTP/1.1 connection for, watches apart; without it such requests are
   * ordinary ones.
   */
  upgrade?: (request: Request) => Promise<Upgraded | Response>
  address: { readonly host: string; readonly port: number }
  /** `clientCa` is our own authority's certificate, `callersCa` those of others (PEM) whose certificates are callers. */
  tls: { readonly cert: string; readonly key: string; readonly clientCa: string; readonly callersCa?: string }
  traffic: Traffic
  log: Log
  /** Other limits than the standard ones: for tests that cannot wait as long or send as much. */
  limits?: Partial<Limits>
}

export class Server {
  readonly #parts: Parts
  readonly #traffic: Traffic
  readonly #limits: Limits
  readonly #sessions = new Set<ServerHttp2Session>()
  /** Every connection, those that have not shaken hands included. */
  readonly #raw = new Set<Socket>()
  /** Every open connection and whose it is: reading a certificate costs more than the rest of a GET. */
  readonly #sockets = new Map<TLSSocket, Connection>()
  readonly #http1
  readonly #tls
  readonly #sender: Sender
  readonly #bodies: Bodies
  readonly #upgrades: Upgrades
  readonly #watches: WebSocketWatches
  #authorities: ClientAuthorities
  #closing = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#traffic = parts.traffic
    const limits: Limits = { ...standardLimits, ...parts.limits }
    this.#limits = limits
    this.#sender = new Sender({ limits, traffic: parts.traffic })
    this.#bodies = new Bodies({ limits, traffic: parts.traffic })
    this.#upgrades = new Upgrades({ limits, traffic: parts.traffic })
    this.#watches = new WebSocketWatches({ sender: this.#sender, limits, traffic: parts.traffic })
    this.#authorities = new ClientAuthorities(parts.tls.clientCa, parts.tls.callersCa)
    this.#http1 = createHttp1({
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.handshakeMsMax,
      // Bodies are timed where they are read: one that is passed on may take as long as it keeps coming.
      requestTimeout: 0,
      keepAliveTimeout: limits.idleMsMax,
      connectionsCheckingInterval: limits.handshakeMsMax / 4,
      shouldUpgradeCallback: (request) =>
        wantsUpgrade(request) && (parts.upgrade !== undefined || isWebSocketWatch(request)),
    })
    // Limited by their bytes: beyond a number of them Node would leave the rest out in silence.
    this.#http1.maxHeadersCount = 0
    this.#http1.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuseHttp1(error.code, socket))
    // It never listens itself, and only that event makes it keep track of its connections: without it neither are late
    // headers timed out nor idle connections closed.
    this.#http1.emit('listening')
    this.#http1.on('request', (request, response) => void this.#http1Request(request, response))
    this.#http1.on('upgrade', (request, socket, head) => void this.#http1Upgrade(request, socket as TLSSocket, head))
    this.#tls = createTls({
      ...this.#secureContext(this.#authorities),
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      handshakeTimeout: limits.handshakeMsMax,
    })
    this.#tls.maxConnections = limits.connectionsMax
    this.#tls.on('connection', (socket: Socket) => {
      this.#raw.add(socket)
      socket.once('close', () => this.#raw.delete(socket))
    })
    this.#tls.on('secureConnection', (socket: TLSSocket) => this.#connected(socket))
    this.#tls.on('tlsClientError', (error, socket) => {
      parts.log.debug('tls.refused', { why: error.message })
      // A handshake that took too long is only reported: the socket would stay open.
      socket.destroy()
    })
  }

  /** Begins to listen; resolves with the port. */
  async listen(): Promise<number> {
    const { host, port } = this.#parts.address
    await new Promise<void>((resolve, reject) => {
      this.#tls.once('error', reject)
      this.#tls.listen({ host, port }, resolve)
    })
    this.#tls.removeAllListeners('error')
    this.#tls.on('error', (error) => this.#parts.log.error('server.fault', { why: error.message }))
    return (this.#tls.address() as AddressInfo).port
  }

  /**
   * Other authorities whose certificates are callers, besides our own: for new connections at once; those that none stands
   * behind any longer are cut. Throws, and changes nothing, if the text holds none.
   */
  setCallersCa(callersCa: string | undefined): void {
    const authorities = new ClientAuthorities(this.#parts.tls.clientCa, callersCa)
    this.#tls.setSecureContext(this.#secureContext(authorities))
    this.#authorities = authorities
    for (const [socket, { peer }] of this.#sockets) {
      if (peer.certificate !== undefined && !authorities.vouchesFor(socket)) socket.destroy()
    }
  }

  #secureContext({ pems }: ClientAuthorities) {
    const { cert, key } = this.#parts.tls
    return { cert, key, ca: [...pems], minVersion: 'TLSv1.2' as const }
  }

  /** Takes no new connection and lets what is under way end; whatever is left after a while is cut. */
  async close(): Promise<void> {
    this.#closing = true
    const ended = new Promise<void>((resolve) => this.#tls.close(() => resolve()))
    for (const session of this.#sessions) session.close()
    this.#http1.closeIdleConnections()
    const cut = setTimeout(() => {
      for (const socket of this.#raw) socket.destroy()
    }, this.#limits.closingMsMax)
    const idle = setInterval(() => this.#http1.closeIdleConnections(), 50)
    await ended
    clearTimeout(cut)
    clearInterval(idle)
  }

  #connected(socket: TLSSocket): void {
    this.#sockets.set(socket, this.#authorities.connectionOf(socket))
    this.#traffic.connections = this.#sockets.size
    socket.setNoDelay(true)
    socket.setKeepAlive(true, this.#limits.pingEveryMs)
    socket.on('error', (error) => this.#parts.log.debug('connection.fault', { why: error.message }))
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#traffic.connections = this.#sockets.size
    })
    if (socket.alpnProtocol === 'h2') this.#http2Session(socket)
    else this.#http1.emit('connection', socket)
  }

  #http2Session(socket: TLSSocket): void {
    const { caller, peer } = this.#sockets.get(socket) ?? stranger
    const isKnown = peer.certificate !== undefined
    const { burst, perSecond } = isKnown ? this.#limits.resets : this.#limits.anonymousResets
    const { anonymousRefusedStreamsMax, refusedStreamsMax } = this.#limits
    const session = performServerHandshake(socket, {
      maxSessionMemory: this.#limits.sessionMemoryMb,
      streamResetBurst: burst,
      streamResetRate: perSecond,
      maxSessionRejectedStreams: isKnown ? refusedStreamsMax : anonymousRefusedStreamsMax,
      maxSendHeaderBlockLength: this.#limits.headerBytesMax,
      // Their bytes are limited, not their number: whoever impersonates somebody of many groups names each in its own.
      maxHeaderListPairs: this.#limits.headerBytesMax / headerBytesMin,
      // An answer that is passed on may repeat what Node would have once only.
      strictSingleValueFields: false,
      settings: {
        maxConcurrentStreams: this.#limits.streamsPerConnectionMax,
        maxHeaderListSize: this.#limits.headerBytesMax,
        initialWindowSize: 256 * 1024,
      },
    }) as ServerHttp2Session
    this.#sessions.add(session)
    const ping = setInterval(() => this.#ping(session), this.#limits.pingEveryMs)
    session.on('error', (error) => this.#parts.log.debug('session.fault', { why: error.message }))
    session.on('close', () => {
      clearInterval(ping)
      this.#sessions.delete(session)
    })
    // It shook hands while the others were told to go: nobody else would tell it.
    if (this.#closing) session.close()
    session.on('stream', (stream: ServerHttp2Stream, headers, _flags, rawHeaders) => {
      stream.on('error', this.#streamFault)
      // The limit in our settings binds the library only once the client has acknowledged them.
      if (session.pendingSettingsAck && lengthOf(rawHeaders) > this.#limits.headerBytesMax) {
        this.#traffic.refused++
        stream.respond({ ':status': 431 }, { endStream: true })
        return
      }
      const request: Request = {
        method: headers[':method'] as string,
        // CONNECT has no path; it is refused like any other method nobody serves.
        url: headers[':path'] ?? '/',
        headers: headers as Request['headers'],
        rawHeaders,
        hasBody: !stream.endAfterHeaders && headers['content-length'] !== '0',
        body: () => this.#bodies.read(stream, headers['content-length']),
        stream: () => this.#bodies.pass(stream),
        gone: () => goneWith(stream),
        caller,
        peer,
      }
      // An answer before the body's end: the client need not send the rest.
      if (!stream.endAfterHeaders) {
        stream.once('finish', () => {
          if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
        })
      }
      void this.#serve(request, stream, (response) => {
        const headers = response.headers as OutgoingHttpHeaders
        headers[':status'] = response.status
        stream.respond(headers)
      })
    })
  }

  /** One for all: a closure for each stream would keep its request's headers as long as it lives. */
  readonly #streamFault = (error: Error): void => this.#parts.log.debug('stream.fault', { why: error.message })

  #ping(session: ServerHttp2Session): void {
    if (session.destroyed || session.closed) return
    const late = setTimeout(() => session.destroy(), this.#limits.pingMsMax)
    try {
      session.ping((error) => {
        clearTimeout(late)
        if (error !== null) session.destroy()
      })
    } catch {
      clearTimeout(late)
    }
  }

  #http1Asked(incoming: IncomingMessage, outgoing: Writable): Request {
    const { headers } = incoming
    const { caller, peer } = this.#sockets.get(incoming.socket as TLSSocket) ?? stranger
    return {
      method: incoming.method ?? 'GET',
      url: incoming.url ?? '/',
      headers: headers as Request['headers'],
      rawHeaders: incoming.rawHeaders,
      hasBody: headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0,
      body: () => this.#bodies.read(incoming, headers['content-length']),
      stream: () => this.#bodies.pass(incoming),
      gone: () => goneWith(outgoing),
      caller,
      peer,
    }
  }

  async #http1Request(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const request = this.#http1Asked(incoming, outgoing)
    outgoing.on('error', this.#streamFault)
    await this.#serve(request, outgoing, (response) => {
      if (this.#closing) outgoing.shouldKeepAlive = false
      outgoing.writeHead(response.status, response.headers as never)
      // A watch's client waits for the headers; whoever gets a body gets them in the same packet.
      if (Symbol.asyncIterator in response.body) outgoing.flushHeaders()
    })
    // What a refused upload still sends is thrown away for a moment, since a client that is still sending does not look
    // for its answer, and one that finds its connection reset never does. Then the connection ends.
    if (incoming.complete || incoming.destroyed) return
    this.#linger(incoming)
    incoming.resume()
  }

  async #upgraded(request: Request, socket: TLSSocket, behind: Buffer): Promise<Upgraded | Response | undefined> {
    const { handle, upgrade } = this.#parts
    if (this.#closing) return shuttingDown()
    if (isWebSocketWatch(request)) return await this.#watches.serve(request, { socket, behind }, handle)
    return await upgrade?.(request)
  }

  async #http1Upgrade(incoming: IncomingMessage, socket: TLSSocket, behind: Buffer): Promise<void> {
    const request = this.#http1Asked(incoming, socket)
    const giveBack = this.#upgrades.take()
    try {
      const answer =
        giveBack === undefined
          ? this.#refusal('too many connections are upgraded')
          : await this.#upgraded(request, socket, behind)
      if (answer === undefined) return
      if ('socket' in answer && answer.status === 101) {
        await this.#upgrades.join(socket, behind, answer)
        return
      }
      // No upgrade: an ordinary answer, and the connection ends, for nobody reads requests from it any more.
      const response = 'socket' in answer ? answerOf(answer) : answer
      socket.once('finish', () => this.#linger(socket))
      socket.resume()
      await this.#serve(request, socket, (head) => socket.write(closingHead(head), 'latin1'), response)
    } catch (error) {
      this.#streamFault(error as Error)
      socket.destroy()
    } finally {
      giveBack?.()
    }
  }

  /** What is no request: told so, and read a moment longer for the same reason as above. */
  #refuseHttp1(code: string | undefined, socket: Duplex): void {
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
    const lingering = setTimeout(() => sending.destroy(), this.#limits.lingerMsMax)
    sending.once('close', () => clearTimeout(lingering))
  }

  async #serve(request: Request, out: Writable, respond: (head: Response) => void, answer?: Response): Promise<void> {
    let response = answer
    try {
      response ??= this.#closing ? shuttingDown() : await this.#parts.handle(request)
      if (this.#sender.refuses(response)) response = this.#refusal('too many lists are being sent')
      if (out.destroyed) return cancel(response.body)
      respond(response)
      if (request.method === 'HEAD') {
        cancel(response.body)
        out.end()
      } else {
        await this.#sender.send(response, out)
      }
    } catch (error) {
      // Whatever one request does, nobody else may notice.
      this.#parts.log.debug('stream.fault', { why: (error as Error).message })
      if (response !== undefined) cancel(response.body)
      out.destroy()
    }
  }

  #refusal(why: string): Response {
    this.#traffic.refused++
    return comeBack(why)
  }
}

/** What HTTP/2 counts for a header besides its name and value. */
const headerBytesMin = 32

/** Made only for who asks: most answers are there at once. */
function goneWith(answer: Writable): AbortSignal {
  const left = new AbortController()
  if (answer.destroyed) left.abort()
  else answer.once('close', () => left.abort())
  return left.signal
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

/** Node's names for what HTTP/1.1 has a number for. */
const malformed: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])

/** kube-apiserver's answer while it ends: clients come back after a second, by then to the next process. */
function shuttingDown(): Response {
  return comeBack('the server is shutting down, please try again later')
}

function comeBack(why: string): Response {
  const response = statusResponse(tooManyRequests(why, 1).status)
  response.headers['retry-after'] = '1'
  return response
}
