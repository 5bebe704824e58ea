/** HTTP/2 on a connection that has shaken hands: its session, signs of life, and each stream as a request. */
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { Log } from '../../base/log.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Request, Response } from '../endpoint.ts'
import type { Visit, VisitingConnection } from './connections.ts'
import type { Exchanges } from './exchanges.ts'
import { goneWith } from './gone.ts'
import type { SocketLimits } from './limits.ts'

/** What HTTP/2 counts for a header besides its name and value. */
const headerBytesMin = 32

type Parts = {
  readonly exchanges: Exchanges
  readonly limits: SocketLimits
  readonly traffic: Traffic
  readonly log: Log
}

export function serveHttp2(socket: TLSSocket, link: VisitingConnection, { exchanges, limits, traffic, log }: Parts) {
  const { peer, visit } = link
  const isKnown = peer.certificate !== undefined
  const { burst, perSecond } = isKnown ? limits.resets : limits.anonymousResets
  const session = performServerHandshake(socket, {
    maxSessionMemory: limits.sessionMemoryMb,
    streamResetBurst: burst,
    streamResetRate: perSecond,
    maxSessionRejectedStreams: isKnown ? limits.refusedStreamsMax : limits.anonymousRefusedStreamsMax,
    maxSendHeaderBlockLength: limits.headerBytesMax,
    // Their bytes are limited, not their number: a client that impersonates a user of many groups names each in its own.
    maxHeaderListPairs: limits.headerBytesMax / headerBytesMin,
    // An answer that is passed on may repeat what Node would have once only.
    strictSingleValueFields: false,
    settings: {
      maxConcurrentStreams: limits.streamsPerConnectionMax,
      maxHeaderListSize: limits.headerBytesMax,
      initialWindowSize: limits.unreadBytesMax,
    },
  }) as ServerHttp2Session
  keepAlive(session, visit, limits)
  session.on('error', (error) => log.debug('session.fault', { why: error.message }))
  // It shook hands while the others were told to go: nothing else would tell it.
  if (exchanges.closing) session.close()
  session.on('stream', (stream: ServerHttp2Stream, headers, _flags, rawHeaders) => {
    stream.on('error', exchanges.fault)
    // Nothing was done, so it may be asked again: a burst of these costs other clients more than a refusal does.
    if (visit.holder.standing === 'stranger' && visit.underWay >= limits.strangerStreamsMax) {
      traffic.refused++
      stream.close(constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    // The limit in our settings binds the library only once the client has acknowledged them.
    if (session.pendingSettingsAck && lengthOf(rawHeaders) > limits.headerBytesMax) {
      traffic.refused++
      stream.respond({ ':status': 431 }, { endStream: true })
      return
    }
    const declared = headers['content-length']
    const request: Request = {
      method: headers[':method'] as string,
      // CONNECT has no path; it is refused like any other method that is not served.
      url: headers[':path'] ?? '/',
      headers: headers as Request['headers'],
      rawHeaders,
      hasBody: !stream.endAfterHeaders && declared !== '0',
      body: () =>
        exchanges.bodies.read(stream, { declared, holder: exchanges.holderOf(visit, request), answer: stream }),
      stream: () => exchanges.bodies.pass(stream, exchanges.holderOf(visit, request)),
      gone: () => goneWith(stream),
      holder: () => exchanges.holderOf(visit, request),
      peer,
    }
    // An answer before the body's end: the client need not send the rest.
    if (!stream.endAfterHeaders) {
      stream.once('finish', () => {
        if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR)
      })
    }
    void exchanges.serve({
      request,
      visit,
      incoming: stream,
      out: stream,
      respond: (response) => {
        stream.respond(headOf(response))
        // As kube-apiserver does: a stranger that is refused begins anew, and does not have the protocol's thousand streams.
        const isRefused = response.status === 401 || response.status === 403
        if (isRefused && visit.holder.standing === 'stranger') session.close()
      },
    })
  })
  return session
}

/** Finds half-open connections, and ends those that send nothing but noise or that a stranger has left lying. */
function keepAlive(session: ServerHttp2Session, visit: Visit, limits: SocketLimits): void {
  let noise = 0
  let idleMs = 0
  const hear = () => {
    noise++
    if (noise > limits.noiseMax) session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  session.on('ping', hear).on('remoteSettings', hear)
  const look = setInterval(() => {
    noise = 0
    idleMs = visit.underWay === 0 && visit.holder.standing === 'stranger' ? idleMs + limits.pingEveryMs : 0
    if (idleMs >= limits.idleMsMax) session.close()
    else ping(session, limits.pingMsMax)
  }, limits.pingEveryMs)
  session.on('close', () => clearInterval(look))
}

function ping(session: ServerHttp2Session, withinMs: number): void {
  if (session.destroyed || session.closed) return
  const late = setTimeout(() => session.destroy(), withinMs)
  try {
    session.ping((error) => {
      clearTimeout(late)
      if (error !== null) session.destroy()
    })
  } catch {
    clearTimeout(late)
  }
}

/** Names and values in turn: Node would make that of an object, at several times the cost. */
function headOf({ status, headers }: Response): string[] {
  const head = [':status', String(status)]
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') head.push(name, value)
    else if (value !== undefined) for (const one of value) head.push(name, one)
  }
  return head
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}
