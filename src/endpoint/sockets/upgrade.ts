/**
 * Connections that stop being HTTP (exec, attach, port-forward over SPDY or WebSocket): the API server's answer to the
 * upgrade goes out as it came, then bytes go both ways, no faster than either side takes them, until both have ended.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { STATUS_CODES } from '../../base/http.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Response } from '../endpoint.ts'
import type { Holder } from '../holder.ts'
import { placesOf, Shares } from '../shares.ts'
import type { SocketLimits } from './limits.ts'

/** The other end's answer to an upgrade, and the connection behind it. */
export type Upgraded = {
  /** Anything but 101: no upgrade, and `socket` holds the answer's body. */
  readonly status: number
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
  readonly socket: Duplex
  /** What came behind the head. */
  readonly head: Buffer
}

export class Upgrades {
  readonly #limits: SocketLimits
  readonly #traffic: Traffic
  readonly #shares: Shares

  constructor(parts: { limits: SocketLimits; traffic: Traffic }) {
    this.#limits = parts.limits
    this.#traffic = parts.traffic
    this.#shares = new Shares(parts.limits.upgradesMax)
  }

  /** A place for one more, to be given back; undefined when its holder has too many. */
  take(holder: Holder, url: string): (() => void) | undefined {
    const places = placesOf(url, this.#limits.upgradeBytes)
    return this.#shares.take(holder, places) ? () => this.#shares.give(holder, places) : undefined
  }

  /** Answers the client and joins the two; `behind` is what it sent behind its head. Resolves when both are closed. */
  async join(client: Socket, behind: Buffer, { status, rawHeaders, socket: other, head }: Upgraded): Promise<void> {
    const closed = Promise.all([untilClosed(client), untilClosed(other)])
    // Its close, which always follows, ends the client's side too.
    other.on('error', () => {})
    this.#endTogether(client, other)
    this.#endTogether(other, client)
    if (client.destroyed) other.destroy()
    else {
      client.on('data', (chunk: Buffer) => {
        this.#traffic.bytesIn += chunk.length
      })
      other.on('data', (chunk: Buffer) => {
        this.#traffic.bytesOut += chunk.length
      })
      // A side that has no more to say may still want to hear the rest.
      client.allowHalfOpen = true
      client.setTimeout(0)
      client.write(headOf(status, rawHeaders), 'latin1')
      if (head.length > 0) client.write(head)
      if (behind.length > 0) other.write(behind)
      client.pipe(other)
      other.pipe(client)
    }
    await closed
  }

  #endTogether(one: Duplex, other: Duplex): void {
    one.once('close', () => {
      if (other.destroyed) return
      if (!one.readableEnded || !one.writableFinished) {
        other.destroy()
        return
      }
      // It ended in order on both its ways: what is still on its way to the other side may arrive, in time.
      const late = setTimeout(() => other.destroy(), this.#limits.stalledMsMax)
      other.once('close', () => clearTimeout(late))
    })
  }
}

/** Whether a request is to be asked for as an upgrade. */
export function wantsUpgrade({ headers }: IncomingMessage): boolean {
  // Plain HTTP/2, which we speak already where a client wants it: such a request is served as the ordinary one it also is.
  if (/^\s*h2c?\s*$/i.test(headers.upgrade ?? '')) return false
  // One with a body is served as if nothing else had been offered, as any server may: no client sends such.
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/** An answer that is no upgrade, as the ordinary answer it is. */
export function answerOf({ status, rawHeaders, socket, head }: Upgraded): Response {
  const headers: Record<string, string | string[]> = {}
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const value = rawHeaders[at + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  return { status, headers, body: bodyOf(socket, head), passedThrough: true }
}

async function* bodyOf(socket: Duplex, head: Buffer): AsyncGenerator<Buffer, void, void> {
  if (head.length > 0) yield head
  for await (const chunk of socket) yield chunk as Buffer
}

/** What says how long a connection lasts, or how a body is framed: here the end of the connection says both. */
const framing: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding', 'trailer', 'upgrade'])

/** The head of an answer after which the connection ends. */
export function closingHead({ status, headers }: Response): string {
  const mirrored = Object.entries(headers).filter(([name]) => !framing.has(name))
  return headOf(status, [
    ...mirrored.flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one])),
    'connection',
    'close',
  ])
}

function headOf(status: number, rawHeaders: readonly string[]): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) head += `${rawHeaders[at]}: ${rawHeaders[at + 1]}\r\n`
  return `${head}\r\n`
}

function untilClosed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) resolve()
    else stream.once('close', resolve)
  })
}
