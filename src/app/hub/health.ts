/**
 * Where a hub tells how it fares, over plain HTTP, on loopback unless told otherwise: /livez and /readyz for the kubelet
 * that restarts it and the Service that sends edges to it, /metrics, and what `ake status --health` prints. Nothing here is
 * a secret, and nothing can be changed.
 */
import type { OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { reasonOf, UsageError } from '../../base/fault.ts'
import { createServer } from '../../base/http.ts'
import { pageNotFound } from '../../endpoint/answer/respond.ts'
import type { NonResourcePaths, Request, Response } from '../../endpoint/endpoint.ts'
import { type ApiRequest, parseRequest } from '../../kube/request.ts'
import { methodNotAllowed, StatusError } from '../../kube/status.ts'
import type { HostPort } from '../optionkinds.ts'

/** A kubelet, a Prometheus and a few people. */
const connectionsMax = 64
/** Each asks in one packet: one that does not holds a connection for no longer. */
const askMsMax = 5_000
const headerBytesMax = 8 * 1024

export class HubHealth {
  readonly #paths: readonly NonResourcePaths[]
  readonly #server

  constructor(paths: readonly NonResourcePaths[]) {
    this.#paths = paths
    const limits = { maxHeaderSize: headerBytesMax, requestTimeout: askMsMax, headersTimeout: askMsMax }
    this.#server = createServer(limits, (request, reply) => {
      const { method = 'GET', url = '/' } = request
      const { status, headers, body } = this.answer(method, url)
      reply.writeHead(status, headers as OutgoingHttpHeaders)
      reply.end(method === 'HEAD' ? undefined : (body as Buffer))
    })
    this.#server.maxConnections = connectionsMax
  }

  answer(method: string, url: string): Response {
    try {
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed()
      const api = parseRequest('GET', url)
      return this.#own(api, url) ?? pageNotFound()
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      const { status } = error
      const body = Buffer.from(`${status.message ?? ''}\n`)
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'content-length': String(body.length) }
      return { status: status.code ?? 500, headers, body }
    }
  }

  #own(api: ApiRequest, url: string): Response | undefined {
    const request = {
      method: 'GET',
      url,
      headers: {},
      hasBody: false,
      peer: {},
      body: none,
      stream: nothing,
    } as Request
    for (const paths of this.#paths) {
      const answer = paths.answer(api, request)
      if (answer !== undefined && !(answer instanceof Promise)) return answer
    }
    return undefined
  }

  /** Resolves with where it listens. */
  async listen({ host, port }: HostPort): Promise<HostPort> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => {
        const why = `cannot listen on ${host}:${port} (${reasonOf(error)})`
        reject(new UsageError(`${why}: choose another address with --health-listen`))
      })
      this.#server.listen(port, host, resolve)
    })
    return { host, port: (this.#server.address() as AddressInfo).port }
  }

  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    await new Promise((resolve) => {
      this.#server.close(resolve)
      this.#server.closeAllConnections()
    })
  }
}

const none = () => Promise.resolve(Buffer.alloc(0))
async function* nothing(): AsyncGenerator<Buffer> {}
