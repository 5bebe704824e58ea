/** An HTTP client that reads as Go's do: TLS 1.3, one cipher for every server, wide HTTP/2 windows. */

import { type ClientHttp2Session, connect } from 'node:http2'
import { Agent, request } from 'node:https'
import type { Address, Credentials } from './bench.ts'

/** What golang.org/x/net/http2 announces: a reader with Node's 64 KB would make every server wait for it. */
export const streamWindowBytes = 4 * 1024 * 1024
export const connectionWindowBytes = 1024 * 1024 * 1024

/** A client may hold a whole LIST unread without its own memory guard ending the session. */
const sessionMemoryMb = 1_000

/** The same for all, so that nobody wins by a cheaper cipher. */
export function tlsOptions({ ca, cert, key }: Credentials) {
  return { ca, cert, key, minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const
}

export type Ask = {
  readonly path: string
  readonly method?: string
  readonly body?: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}
export type Answer = {
  readonly status: number
  readonly bytes: number
  readonly text?: string
  /** What `text` is made of. */
  readonly body?: Buffer
  /** What the answer warns of. */
  readonly warning?: string
}

export type Connection = {
  /** Reads the whole answer; keeps it only if asked to. */
  ask(asked: Ask, keep?: boolean): Promise<Answer>
  close(): void
}

export async function connectTo(at: Address, protocol: 'h2' | 'h1'): Promise<Connection> {
  return protocol === 'h2' ? overHttp2(at) : overHttp1(at)
}

async function overHttp2({ url, tls, token, headers: own = {} }: Address): Promise<Connection> {
  const { cert, key, ...anybody } = tlsOptions(tls)
  const session = connect(url, {
    ...(token === undefined ? { ...anybody, cert, key } : anybody),
    settings: { initialWindowSize: streamWindowBytes, enablePush: false },
    maxSessionMemory: sessionMemoryMb,
  })
  await new Promise<void>((ready, fail) => {
    session.once('error', fail)
    session.once('connect', () => ready())
  })
  session.setLocalWindowSize(connectionWindowBytes)
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return {
    ask: (asked, keep) =>
      askHttp2(session, { ...asked, headers: { ...own, ...authorization, ...asked.headers } }, keep),
    close: () => session.destroy(),
  }
}

function askHttp2(session: ClientHttp2Session, asked: Ask, keep = false): Promise<Answer> {
  const { path, method = 'GET', body } = asked
  return new Promise((done, fail) => {
    const common = { ':path': path, ':method': method, ...commonHeaders(body) }
    const headers: Record<string, string> = { ...common, ...asked.headers }
    const stream = session.request(headers, { endStream: body === undefined })
    let status = 0
    let bytes = 0
    let warned = {}
    const kept: Buffer[] = []
    stream.on('response', (answer) => {
      status = Number(answer[':status'])
      if (answer.warning !== undefined) warned = { warning: String(answer.warning) }
    })
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (keep) kept.push(chunk)
    })
    stream.on('end', () => {
      done({ status, bytes, ...(keep ? whole(kept) : {}), ...warned })
    })
    stream.on('error', fail)
    if (body !== undefined) stream.end(body)
  })
}

async function overHttp1({ url, tls, headers: own = {} }: Address): Promise<Connection> {
  const agent = new Agent({ ...tlsOptions(tls), keepAlive: true, maxSockets: 1, ALPNProtocols: ['http/1.1'] })
  return {
    ask: (asked, keep) => askHttp1(url, agent, { ...asked, headers: { ...own, ...asked.headers } }, keep),
    close: () => agent.destroy(),
  }
}

function askHttp1(url: string, agent: Agent, asked: Ask, keep = false): Promise<Answer> {
  const { path, method = 'GET', body } = asked
  return new Promise((done, fail) => {
    const headers = { ...commonHeaders(body), ...asked.headers }
    const sent = request(new URL(path, url), { agent, method, headers }, (answer) => {
      const status = answer.statusCode ?? 0
      let bytes = 0
      const kept: Buffer[] = []
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (keep) kept.push(chunk)
      })
      answer.on('end', () => done({ status, bytes, ...(keep ? whole(kept) : {}) }))
      answer.on('error', fail)
    })
    sent.on('error', fail)
    sent.end(body)
  })
}

function commonHeaders(body: Ask['body']): Record<string, string> {
  const json = 'application/json'
  return { accept: json, ...(body === undefined ? {} : { 'content-type': json }) }
}

function whole(kept: readonly Buffer[]): { text: string; body: Buffer } {
  const body = Buffer.concat(kept)
  return { text: body.toString(), body }
}

/** Sends all, `atOnce` at a time on one connection; an answer that is no success is an error that shows it. */
export async function sendAll(at: Address, asked: readonly Ask[], atOnce: number): Promise<void> {
  const connection = await connectTo(at, 'h2')
  let next = 0
  const lane = async () => {
    for (let one = asked[next++]; one !== undefined; one = asked[next++]) {
      const { status, text } = await connection.ask(one, true)
      if (status < 200 || status > 299) throw new Error(`${one.method} ${one.path}: ${status} ${text?.slice(0, 500)}`)
    }
  }
  try {
    await Promise.all(Array.from({ length: atOnce }, lane))
  } finally {
    connection.close()
  }
}
