/**
 * WATCH over a WebSocket, as kube-apiserver offers it to browsers: the very same watch, asked for without the upgrade, whose
 * events go out as one message each: as text, or as binary where they are in protobuf. Whatever is wrong with the watch is
 * an ordinary answer; only a watch that was granted looks at the handshake.
 */
import type { Socket } from 'node:net'
import { STATUS_CODES } from '../../../base/http.ts'
import { parseRequest } from '../../../kube/request.ts'
import { unauthorized } from '../../../kube/status.ts'
import { cancel } from '../../answer/pieces.ts'
import { statusResponse } from '../../answer/respond.ts'
import type { Traffic } from '../../documents/measures.ts'
import type { Request, Response } from '../../endpoint.ts'
import { browserTokenOf, isBrowserToken } from '../../identify.ts'
import type { SocketLimits } from '../limits.ts'
import type { Sender } from '../sender.ts'
import { EventMessages } from './events.ts'
import { acceptOf, ClientFrames, closeFrame, frameOf, opcodes } from './frames.ts'

type Parts = { readonly sender: Sender; readonly limits: SocketLimits; readonly traffic: Traffic }

type Asked = {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: { readonly upgrade?: string | undefined }
}

/** Whether a request is served as such; the others that want to be upgraded are `upgrade`'s, or ordinary ones. */
export function isWebSocketWatch({ method, url, headers }: Asked): boolean {
  if (method !== 'GET' || headers.upgrade?.trim().toLowerCase() !== 'websocket') return false
  try {
    const api = parseRequest(method, url ?? '/')
    return api.isResource && api.verb === 'watch'
  } catch {
    return false
  }
}

export class WebSocketWatches {
  readonly #sender: Sender
  readonly #limits: SocketLimits
  readonly #traffic: Traffic

  constructor({ sender, limits, traffic }: Parts) {
    this.#sender = sender
    this.#limits = limits
    this.#traffic = traffic
  }

  /**
   * Resolves with the answer of a watch that was not granted, else with nothing once the connection is closed. `behind` is
   * what the client sent behind its head.
   */
  async serve(
    request: Request,
    { socket, behind }: { socket: Socket; behind: Buffer },
    handle: (request: Request) => Promise<Response>,
  ): Promise<Response | undefined> {
    const offered = protocolsOf(request)
    if (isTokenAlone(request, offered)) return statusResponse(unauthorized().status)
    const response = await handle(plainWatch(request))
    if (response.status !== 200) return response
    const closed = new Promise<void>((resolve) => {
      if (socket.closed) resolve()
      else socket.once('close', resolve)
    })
    const greeting = greetingOf(request, offered)
    // A client that was told everything is not waited for: the other side need not end by itself.
    socket.once('finish', () => socket.destroySoon())
    socket.setTimeout(0)
    if (greeting.status !== 101 || socket.destroyed) {
      cancel(response.body)
      socket.end(greeting.text, 'latin1')
      socket.resume()
    } else {
      const messages = new EventMessages(response)
      socket.write(greeting.text, 'latin1')
      this.#listen(socket, behind, () => {
        void messages.return()
      })
      await this.#sender.send({ ...response, body: messages }, socket)
    }
    await closed
    return undefined
  }

  /** Pings are answered, a close ends the stream, and nothing is read faster than its answers are taken. */
  #listen(socket: Socket, behind: Buffer, leave: () => void): void {
    const frames = new ClientFrames()
    const end = (last?: Buffer) => {
      leave()
      if (last !== undefined) socket.write(last)
      socket.end()
      const late = setTimeout(() => socket.destroy(), this.#limits.lingerMsMax)
      socket.once('close', () => clearTimeout(late))
    }
    const hear = (chunk: Buffer) => {
      this.#traffic.bytesIn += chunk.length
      for (const heard of frames.push(chunk)) {
        if (!socket.writable) return
        if (heard.kind === 'close') end(closeFrame(heard.code))
        else if (!socket.write(frameOf(opcodes.pong, heard.payload)) && !socket.isPaused()) {
          socket.pause()
          socket.once('drain', () => socket.resume())
        }
      }
    }
    if (behind.length > 0) hear(behind)
    socket.on('data', hear)
    socket.once('end', () => end())
  }
}

/** The watch itself: what speaks of the upgrade stays here, and a browser's token stands where every other client has it. */
function plainWatch(request: Request): Request {
  const headers: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(request.headers)) {
    if (!ofTheSocket.test(name)) headers[name] = value
  }
  const token = browserTokenOf(request.headers['sec-websocket-protocol'])
  if (token !== undefined && headers.authorization === undefined) headers.authorization = `Bearer ${token}`
  return { ...request, headers }
}

/** Events leave in messages of their own: compressed as a whole they could not. */
const ofTheSocket = /^(upgrade|connection|sec-websocket-.*|accept-encoding)$/

/** A token needs another protocol beside it, which is then agreed on: this one is never said back. */
function isTokenAlone({ peer, headers }: Request, offered: readonly string[]): boolean {
  if (peer.certificate !== undefined || headers.authorization !== undefined) return false
  return offered.length > 0 && offered.every(isBrowserToken)
}

function protocolsOf({ headers }: Request): string[] {
  const named = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim())
  return named.filter((one) => one !== '')
}

/** The head of the answer to the handshake; a refusal is as bare as the real one's, and after it the connection ends. */
function greetingOf({ headers }: Request, offered: readonly string[]): { status: number; text: string } {
  const key = headers['sec-websocket-key'] ?? ''
  if (key === '') return bare(400, [], 'mismatch challenge/response')
  if (headers['sec-websocket-version'] !== '13') {
    return bare(400, ['Sec-WebSocket-Version: 13'], 'missing or bad WebSocket Version')
  }
  // A page says where it is from; a program that does not is told to use an ordinary watch.
  if (!/^(\/|[a-z][a-z0-9+.-]*:)/i.test(headers.origin ?? '')) return bare(403)
  const [protocol, ...others] = offered.filter((one) => !isBrowserToken(one))
  // Nothing says which of several to speak: all of them mean the same.
  if (others.length > 0) return bare(400)
  return bare(101, [
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptOf(key)}`,
    ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
  ])
}

function bare(status: number, lines: readonly string[] = [], body = ''): { status: number; text: string } {
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines].map((line) => `${line}\r\n`).join('')
  return { status, text: `${head}\r\n${body}` }
}
