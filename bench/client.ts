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
  /** Over HTTP/2 only. */
  readonly headers?: Record<string, string>
}
export type Answer = {
  readonly status: number
  readonly bytes: number
  readonly text?: string
  /** What the answer warns of. */
  readonly warning?: string
}

export type Connection = {
  /** Reads the whole answer; keeps its text only if asked to. */
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
    const common = { ':path': path, ':method': method, accept: 'application/json' }
    const headers: Record<string, string> = { ...common, ...asked.headers }
    if (body !== undefined) headers['content-type'] = 'application/json'
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
      const text = keep ? { text: Buffer.concat(kept).toString() } : {}
      done({ status, bytes, ...text, ...warned })
    })
    stream.on('error', fail)
    if (body !== undefined) stream.end(body)
  })
}

async function overHttp1({ url, tls }: Address): Promise<Connection> {
  const agent = new Agent({ ...tlsOptions(tls), keepAlive: true, maxSockets: 1, ALPNProtocols: ['http/1.1'] })
  return { ask: (asked, keep) => askHttp1(url, agent, asked, keep), close: () => agent.destroy() }
}

function askHttp1(url: string, agent: Agent, { path, method = 'GET', body }: Ask, keep = false): Promise<Answer> {
  return new Promise((done, fail) => {
    const headers: Record<string, string> = { accept: 'application/json' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    const sent = request(new URL(path, url), { agent, method, headers }, (answer) => {
      const status = answer.statusCode ?? 0
      let bytes = 0
      const kept: Buffer[] = []
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (keep) kept.push(chunk)
      })
      answer.on('end', () => done(keep ? { status, bytes, text: Buffer.concat(kept).toString() } : { status, bytes }))
      answer.on('error', fail)
    })
    sent.on('error', fail)
    sent.end(body)
  })
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
