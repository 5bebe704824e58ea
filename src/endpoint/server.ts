/**
 * The only file that touches sockets: TLS with client certificates, HTTP/2 and HTTP/1.1 on one port, bodies in and out
 * with back-pressure, and the limits that keep one client's trouble its own.
 */
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from 'node:http'
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
import type { Log } from '../base/log.ts'
import { badRequest, failure, StatusError, tooManyRequests } from '../kube/status.ts'
import type { Caller } from '../write/write.ts'
import type { Request, Response } from './endpoint.ts'
import { type Limits, standardLimits } from './limits.ts'
import type { Traffic } from './measures.ts'
import { statusResponse } from './respond.ts'
import { cancel, Sender } from './sender.ts'

type Parts = {
  handle(request: Request): Promise<Response>
  address: { readonly host: string; readonly port: number }
  tls: { readonly cert: string; readonly key: string; readonly clientCa: string }
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
  readonly #sockets = new Map<TLSSocket, Caller | undefined>()
  readonly #http1
  readonly #tls
  readonly #sender: Sender
  #bodiesBytes = 0
  #closing = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#traffic = parts.traffic
    const limits: Limits = { ...standardLimits, ...parts.limits }
    this.#limits = limits
    this.#sender = new Sender({ limits, traffic: parts.traffic })
    this.#http1 = createHttp1({
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.handshakeMsMax,
      requestTimeout: limits.bodyMsMax,
      keepAliveTimeout: limits.idleMsMax,
      connectionsCheckingInterval: limits.handshakeMsMax / 4,
    })
    this.#http1.on('clientError', (error: NodeJS.ErrnoException, socket) => this.#refuseHttp1(error.code, socket))
    // It never listens itself, and only that event makes it keep track of its connections: without it neither are late
    // headers timed out nor idle connections closed.
    this.#http1.emit('listening')
    this.#http1.on('request', (request, response) => void this.#http1Request(request, response))
    const { cert, key, clientCa } = parts.tls
    this.#tls = createTls({
      cert,
      key,
      ca: clientCa,
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ['h2', 'http/1.1'],
      minVersion: 'TLSv1.2',
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
    this.#sockets.set(socket, callerOf(socket))
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
    const caller = this.#sockets.get(socket)
    const { burst, perSecond } = caller === undefined ? this.#limits.anonymousResets : this.#limits.resets
    const { anonymousRefusedStreamsMax, refusedStreamsMax } = this.#limits
    const session = performServerHandshake(socket, {
      maxSessionMemory: this.#limits.sessionMemoryMb,
      streamResetBurst: burst,
      streamResetRate: perSecond,
      maxSessionRejectedStreams: caller === undefined ? anonymousRefusedStreamsMax : refusedStreamsMax,
      maxSendHeaderBlockLength: this.#limits.headerBytesMax,
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
        body: () => this.#readBody(stream, headers['content-length']),
        caller,
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

  async #http1Request(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const request: Request = {
      method: incoming.method ?? 'GET',
      url: incoming.url ?? '/',
      headers: incoming.headers as Request['headers'],
      body: () => this.#readBody(incoming, incoming.headers['content-length']),
      caller: this.#sockets.get(incoming.socket as TLSSocket),
    }
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
    const lingering = setTimeout(() => incoming.destroy(), this.#limits.lingerMsMax)
    incoming.once('close', () => clearTimeout(lingering))
    incoming.resume()
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
    const lingering = setTimeout(() => socket.destroy(), this.#limits.lingerMsMax)
    socket.once('close', () => clearTimeout(lingering))
  }

  async #serve(request: Request, out: Writable, respond: (response: Response) => void): Promise<void> {
    let response: Response | undefined
    try {
      response = this.#closing ? shuttingDown() : await this.#parts.handle(request)
      if (this.#sender.refuses(response)) {
        this.#traffic.refused++
        response = statusResponse(tooManyRequests('too many lists are being sent', 1).status)
        response.headers['retry-after'] = '1'
      }
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

  async #readBody(stream: Readable, declared: string | undefined): Promise<Buffer> {
    const tooLarge = () =>
      failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${this.#limits.bodyBytesMax}`)
    if (Number(declared ?? 0) > this.#limits.bodyBytesMax) throw tooLarge()
    const chunks: Buffer[] = []
    let size = 0
    const late = setTimeout(() => stream.destroy(new Error('the body took too long')), this.#limits.bodyMsMax)
    const release = () => {
      this.#bodiesBytes -= size
      size = 0
    }
    try {
      for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
        size += (chunk as Buffer).length
        this.#bodiesBytes += (chunk as Buffer).length
        if (size > this.#limits.bodyBytesMax) throw tooLarge()
        if (this.#bodiesBytes > this.#limits.bodiesBytesMax) throw this.#flooded()
        chunks.push(chunk as Buffer)
      }
      // It counts until its request is done with: what waits for a lock or the disk is still in memory.
      if (!stream.closed) stream.once('close', release)
    } catch (error) {
      release()
      if (error instanceof StatusError) throw error
      // The client went away in the middle, or was cut for taking too long: no fault of ours.
      throw badRequest(`the body could not be read: ${(error as Error).message}`)
    } finally {
      clearTimeout(late)
    }
    this.#traffic.bytesIn += size
    if (stream.closed) release()
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
  }

  #flooded(): Error {
    this.#traffic.refused++
    return tooManyRequests('too many request bodies are being received', 1)
  }
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
  const response = statusResponse(tooManyRequests('the server is shutting down, please try again later', 1).status)
  response.headers['retry-after'] = '1'
  return response
}

/** A certificate of our CA names its owner: common name and organizations, as kube-apiserver reads them. */
function callerOf(socket: TLSSocket): Caller | undefined {
  if (!socket.authorized) return undefined
  const { subject } = socket.getPeerCertificate()
  if (subject === undefined) return undefined
  const organizations = subject.O === undefined ? [] : [subject.O].flat()
  return { name: String(subject.CN ?? ''), uid: '', groups: [...organizations, 'system:authenticated'] }
}
