/**
 * A real API server that does as a script says: a proxy in front of it which ends TLS, so that single answers can be delayed,
 * replaced or rewritten while everything else is the API server's own. Callers are known to it by tokens, which pass
 * through; a certificate would end here. It counts what it is asked.
 */
import { readFileSync } from 'node:fs'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Oracle } from '../oracle.ts'

export type Asked = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** Without `Bearer`; empty for the anonymous. */
  readonly token: string
  readonly body: string
}

export type Action =
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers?: Record<string, string>
      readonly body?: string
    }
  /** Then as the API server says. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The API server's answer, whole, as this makes it. */
  | { readonly kind: 'rewrite'; readonly made: (body: string) => string }
  /** These lines, a moment apart, then the end. */
  | { readonly kind: 'frames'; readonly frames: readonly string[] }

/** The first rule that says something counts. */
export type Rule = (asked: Asked) => Action | undefined

export type Scripted = {
  readonly url: string
  /** Answers how to take the rule away again. */
  script(rule: Rule): () => void
  /** How often something like this was asked for, from the beginning on. */
  count(matches: (asked: Asked) => boolean): number
  close(): Promise<void>
}

const frameEveryMs = 20
/** Of what belongs to one connection, nothing is handed on. */
const hop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'host', 'http2-settings', 'te'])

export async function startScripted(oracle: Pick<Oracle, 'url' | 'ca' | 'dir'>): Promise<Scripted> {
  const agent = new Agent({ keepAlive: true, ca: oracle.ca })
  const rules = new Set<Rule>()
  const seen: Asked[] = []
  const read = (name: string) => readFileSync(join(oracle.dir, name))
  const tls = { cert: read('apiserver.crt'), key: read('apiserver.key'), allowHTTP1: true }
  const server = createSecureServer(tls, (incoming, outgoing) => {
    incoming.on('error', () => {})
    outgoing.on('error', () => {})
    void answer(incoming, outgoing).catch(() => outgoing.stream?.close())
  })
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {}).once('close', () => sessions.delete(session))
  })
  const { hostname, port } = new URL(oracle.url)

  const answer = async (incoming: Http2ServerRequest, outgoing: Http2ServerResponse) => {
    const body = await bytesOf(incoming)
    const { pathname, searchParams } = new URL(incoming.url, oracle.url)
    const token = (incoming.headers.authorization ?? '').replace(/^Bearer /, '')
    const asked = { method: incoming.method, path: pathname, query: searchParams, token, body: body.toString() }
    seen.push(asked)
    const action = [...rules].map((rule) => rule(asked)).find((one) => one !== undefined)
    if (action?.kind === 'answer') {
      outgoing.writeHead(action.status, { 'content-type': 'application/json', ...action.headers })
      outgoing.end(action.body ?? '{}')
      return
    }
    if (action?.kind === 'frames') {
      outgoing.writeHead(200, { 'content-type': 'application/json' })
      for (const frame of action.frames) {
        outgoing.write(`${frame}\n`)
        await pause(frameEveryMs)
      }
      outgoing.end()
      return
    }
    if (action?.kind === 'delay') await pause(action.ms)
    const headers = handedOn(incoming.headers, action?.kind === 'rewrite' ? { 'accept-encoding': 'identity' } : {})
    const passed = request({ hostname, port, agent, method: incoming.method, path: incoming.url, headers }, (reply) => {
      const back = handedOn(reply.headers)
      if (action?.kind === 'rewrite') {
        void bytesOf(reply).then((whole) => {
          delete back['content-length']
          outgoing.writeHead(reply.statusCode ?? 502, back)
          outgoing.end(action.made(whole.toString()))
        })
        return
      }
      outgoing.writeHead(reply.statusCode ?? 502, back)
      reply.on('error', () => outgoing.stream?.close())
      reply.pipe(outgoing)
    })
    passed.on('error', () => outgoing.stream?.close())
    outgoing.on('close', () => passed.destroy())
    passed.end(body)
  }

  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script: (rule) => {
      rules.add(rule)
      return () => rules.delete(rule)
    },
    count: (matches) => seen.filter(matches).length,
    close: async () => {
      const closed = new Promise<void>((done) => server.close(() => done()))
      for (const session of sessions) session.destroy()
      agent.destroy()
      await closed
    },
  }
}

async function bytesOf(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

type Headers = Record<string, string | string[]>

function handedOn(headers: NodeJS.Dict<string | string[]>, more: Headers = {}): Headers {
  const kept = Object.entries(headers).filter(([name]) => !name.startsWith(':') && !hop.has(name))
  return { ...(Object.fromEntries(kept) as Headers), ...more }
}
