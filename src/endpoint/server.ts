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
import type { AddressInfo } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { createServer as createTls, type TLSSocket } from 'node:tls'
import type { Log } from '../base/log.ts'
import { failure, tooManyRequests } from '../kube/status.ts'
import type { Caller } from '../write/write.ts'
import type { Body, Request, Response } from './endpoint.ts'
import * as limits from './limits.ts'
import type { Traffic } from './measures.ts'
import { BatchPool, Packer, statusResponse } from './respond.ts'

type Parts = {
  handle(request: Request): Promise<Response>
  address: { readonly host: string; readonly port: number }
  tls: { readonly cert: string; readonly key: string; readonly clientCa: string }
  traffic: Traffic
  log: Log
}

export class Server {
  readonly #parts: Parts
  readonly #traffic: Traffic
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<TLSSocket>()
  readonly #http1
  readonly #tls
  readonly #batches = new BatchPool()
  #bodiesBytes = 0
  #lists = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#traffic = parts.traffic
    this.#http1 = createHttp1({
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.handshakeMsMax,
      requestTimeout: limits.bodyMsMax,
      keepAliveTimeout: limits.idleMsMax,
    })
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
    this.#tls.on('secureConnection', (socket: TLSSocket) => this.#connected(socket))
    this.#tls.on('tlsClientError', (error) => parts.log.debug('tls.refused', { why: error.message }))
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
    const ended = new Promise<void>((resolve) => this.#tls.close(() => resolve()))
    for (const session of this.#sessions) session.close()
    this.#http1.closeIdleConnections()
    const cut = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, limits.closingMsMax)
    const idle = setInterval(() => this.#http1.closeIdleConnections(), 50)
    await ended
    clearTimeout(cut)
    clearInterval(idle)
  }

  #connected(socket: TLSSocket): void {
    this.#sockets.add(socket)
    this.#traffic.connections = this.#sockets.size
    socket.setNoDelay(true)
    socket.setKeepAlive(true, limits.pingEveryMs)
    socket.on('error', (error) => this.#parts.log.debug('connection.fault', { why: error.message }))
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#traffic.connections = this.#sockets.size
    })
    if (socket.alpnProtocol === 'h2') this.#http2Session(socket)
    else this.#http1.emit('connection', socket)
  }

  #http2Session(socket: TLSSocket): void {
    const caller = callerOf(socket)
    const { burst, perSecond } = caller === undefined ? limits.anonymousResets : limits.resets
    const session = performServerHandshake(socket, {
      maxSessionMemory: limits.sessionMemoryMb,
      streamResetBurst: burst,
      streamResetRate: perSecond,
      maxSendHeaderBlockLength: limits.headerBytesMax,
      settings: {
        maxConcurrentStreams: limits.streamsPerConnectionMax,
        maxHeaderListSize: limits.headerBytesMax,
        initialWindowSize: 256 * 1024,
      },
    }) as ServerHttp2Session
    this.#sessions.add(session)
    const ping = setInterval(() => this.#ping(session), limits.pingEveryMs)
    session.on('error', (error) => this.#parts.log.debug('session.fault', { why: error.message }))
    session.on('close', () => {
      clearInterval(ping)
      this.#sessions.delete(session)
    })
    session.on('stream', (stream: ServerHttp2Stream, headers) => {
      stream.on('error', (error) => this.#parts.log.debug('stream.fault', { why: error.message }))
      const request: Request = {
        method: headers[':method'] as string,
        url: headers[':path'] as string,
        headers: headers as Request['headers'],
        body: () => this.#readBody(stream, headers['content-length']),
        caller,
      }
      void this.#serve(request, stream, (response) => {
        const headers = response.headers as OutgoingHttpHeaders
        headers[':status'] = response.status
        stream.respond(headers)
      })
    })
  }

  #ping(session: ServerHttp2Session): void {
    if (session.destroyed || session.closed) return
    const late = setTimeout(() => session.destroy(), limits.pingMsMax)
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
      caller: callerOf(incoming.socket as TLSSocket),
    }
    outgoing.on('error', (error) => this.#parts.log.debug('stream.fault', { why: error.message }))
    await this.#serve(request, outgoing, (response) => {
      outgoing.writeHead(response.status, response.headers as never)
      outgoing.flushHeaders()
    })
    // What a refused upload still sends is not worth reading: the connection ends with the answer.
    if (!incoming.complete) incoming.destroy()
  }

  async #serve(request: Request, out: Writable, respond: (response: Response) => void): Promise<void> {
    let response = await this.#parts.handle(request)
    if (Array.isArray(response.body) && this.#lists >= limits.listsMax) {
      this.#traffic.refused++
      response = statusResponse(tooManyRequests('too many lists are being sent', 1).status)
      response.headers['retry-after'] = '1'
    }
    if (out.destroyed) return cancel(response.body)
    try {
      respond(response)
      if (request.method === 'HEAD') {
        cancel(response.body)
        out.end()
      } else if (Buffer.isBuffer(response.body)) {
        this.#traffic.bytesOut += response.body.length
        out.end(response.body)
      } else if (Symbol.asyncIterator in response.body) {
        await this.#send(response.body, out)
      } else {
        await this.#sendPieces(response.body, out)
      }
    } catch (error) {
      this.#parts.log.debug('stream.fault', { why: (error as Error).message })
      cancel(response.body)
      out.destroy()
    }
  }

  /** Pulls the body as fast as the reader reads. */
  async #send(body: AsyncIterable<Buffer>, out: Writable): Promise<void> {
    const chunks = body[Symbol.asyncIterator]()
    // A watcher waits inside next(): the end of its stream has to wake it.
    const left = () => void chunks.return?.()
    out.once('close', left)
    try {
      for (;;) {
        const { value, done } = await chunks.next()
        if (done === true || out.destroyed) break
        this.#traffic.bytesOut += value.length
        if (!out.write(value) && !(await this.#drained(out))) break
      }
    } finally {
      out.removeListener('close', left)
      left()
    }
    if (!out.destroyed) out.end()
  }

  /** A whole list in batches: two buffers take turns, each filled again once the stream has let go of it. */
  async #sendPieces(pieces: readonly Buffer[], out: Writable): Promise<void> {
    const packer = new Packer(pieces)
    const turns = [this.#batches.take(), this.#batches.take()]
    let pending: Promise<boolean> = Promise.resolve(true)
    this.#lists++
    try {
      while (!packer.done) {
        const written = this.#written(out, packer.fill(turns[0] as Buffer))
        turns.reverse()
        // A buffer of a stream that was cut may still be on its way out: it is not used again.
        if (!(await pending)) return
        pending = written
      }
      if (!(await pending)) return
      for (const buffer of turns) this.#batches.give(buffer)
      out.end()
    } finally {
      this.#lists--
    }
  }

  /** Resolves when the stream has taken the bytes; false when its reader is gone or takes nothing for too long. */
  #written(out: Writable, bytes: Buffer): Promise<boolean> {
    this.#traffic.bytesOut += bytes.length
    return new Promise((resolve) => {
      const stalled = setTimeout(() => this.#cut(out), limits.stalledMsMax)
      out.write(bytes, (error) => {
        clearTimeout(stalled)
        resolve(error === undefined || error === null)
      })
    })
  }

  /** False when the reader is gone, or took nothing for too long and was cut. */
  #drained(out: Writable): Promise<boolean> {
    if (!out.writableNeedDrain) return Promise.resolve(!out.destroyed)
    return new Promise((resolve) => {
      const settle = (alive: boolean) => {
        clearTimeout(stalled)
        out.removeListener('drain', drain)
        out.removeListener('close', close)
        resolve(alive)
      }
      const drain = () => settle(true)
      const close = () => settle(false)
      const stalled = setTimeout(() => {
        this.#cut(out)
        settle(false)
      }, limits.stalledMsMax)
      out.once('drain', drain)
      out.once('close', close)
    })
  }

  #cut(out: Writable): void {
    this.#traffic.stalled++
    if ('rstCode' in out) (out as ServerHttp2Stream).close(constants.NGHTTP2_CANCEL)
    out.destroy()
  }

  async #readBody(stream: Readable, declared: string | undefined): Promise<Buffer> {
    const tooLarge = () =>
      failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limits.bodyBytesMax}`)
    if (Number(declared ?? 0) > limits.bodyBytesMax) throw tooLarge()
    const chunks: Buffer[] = []
    let size = 0
    const late = setTimeout(() => stream.destroy(new Error('the body took too long')), limits.bodyMsMax)
    try {
      for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
        size += (chunk as Buffer).length
        this.#bodiesBytes += (chunk as Buffer).length
        if (size > limits.bodyBytesMax) throw tooLarge()
        if (this.#bodiesBytes > limits.bodiesBytesMax) throw this.#flooded()
        chunks.push(chunk as Buffer)
      }
    } finally {
      clearTimeout(late)
      this.#bodiesBytes -= size
    }
    this.#traffic.bytesIn += size
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)
  }

  #flooded(): Error {
    this.#traffic.refused++
    return tooManyRequests('too many request bodies are being received', 1)
  }
}

function cancel(body: Body): void {
  if (!Buffer.isBuffer(body) && Symbol.asyncIterator in body) void body[Symbol.asyncIterator]().return?.()
}

/** A certificate of our CA names its owner: common name and organizations, as kube-apiserver reads them. */
function callerOf(socket: TLSSocket): Caller | undefined {
  if (!socket.authorized) return undefined
  const { subject } = socket.getPeerCertificate()
  if (subject === undefined) return undefined
  const organizations = subject.O === undefined ? [] : [subject.O].flat()
  return { name: String(subject.CN ?? ''), uid: '', groups: [...organizations, 'system:authenticated'] }
}
