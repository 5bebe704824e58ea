/** The way over HTTP/1.1, for servers and load balancers that offer nothing newer: one request per connection at a time. */
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Clock } from '../base/clock.ts'
import { Agent, request } from '../base/http.ts'
import { bodyBroke, Flow, pour } from './flow.ts'
import { answerHeaders, declaredBytes } from './headers.ts'
import type { UpstreamLimits } from './limits.ts'
import { reasonOf } from './reason.ts'
import type { Secured } from './secure.ts'
import { BrokenOff, type Sending } from './session.ts'
import { Unreachable, type UpstreamResponse } from './upstream.ts'

type Parts = {
  readonly url: URL
  /** Rejects with what the request should reject with. */
  readonly dial: () => Promise<Secured>
  readonly clock: Clock
  readonly limits: UpstreamLimits
}

export class PlainSessions {
  readonly #parts: Parts
  readonly #agent: DiallingAgent

  constructor(parts: Parts) {
    this.#parts = parts
    this.#agent = new DiallingAgent(parts.dial, parts.limits)
  }

  ask(sending: Sending): Promise<UpstreamResponse> {
    const { url, clock, limits } = this.#parts
    const { method, path, headers, body, patience } = sending
    return new Promise((resolve, reject) => {
      let given: string | undefined
      let asked: ClientRequest
      // A body of unknown length is sent in chunks; for a GET or DELETE Node wants to be told.
      const chunked = body !== undefined && headers['content-length'] === undefined ? chunkedHeader : {}
      try {
        const where = { host: url.hostname, port: url.port || 443, agent: this.#agent }
        asked = request({ ...where, method, path, headers: { ...headers, ...chunked, host: url.host } })
      } catch (error) {
        throw new BrokenOff(`cannot be sent: ${reasonOf(error)}`, 'nobody')
      }
      const cancelHead = clock.setTimer(limits.plainHeadMsMax, () => {
        given = `no answer within ${limits.plainHeadMsMax} ms`
        asked.destroy()
      })
      const leave = () => {
        given = patience.error(true).message
        asked.destroy()
      }
      patience.signal.addEventListener('abort', leave, { once: true })
      asked.once('close', () => {
        cancelHead()
        patience.signal.removeEventListener('abort', leave)
        patience.done()
      })
      asked.on('error', (error) => {
        if (given !== undefined) reject(new Unreachable(given, true))
        else if (error instanceof Unreachable) reject(error)
        else reject(new BrokenOff(reasonOf(error), asked.reusedSocket ? 'reads' : 'nobody'))
      })
      asked.once('response', (response) => {
        cancelHead()
        patience.answered()
        resolve(this.#answered(asked, response, () => given))
      })
      if (body === undefined) asked.end()
      else {
        pour(body, asked, declaredBytes(headers)).catch((error: unknown) => {
          given ??= bodyBroke(error)
          asked.destroy()
        })
      }
    })
  }

  destroy(): void {
    this.#agent.destroy()
  }

  #answered(asked: ClientRequest, response: IncomingMessage, given: () => string | undefined): UpstreamResponse {
    const { clock } = this.#parts
    let heardAt = clock.steady()
    return {
      status: response.statusCode ?? 0,
      headers: answerHeaders(response.rawHeaders),
      body: new Flow({
        stream: response,
        failure: () => (response.complete ? undefined : new Unreachable(given() ?? 'connection closed', true)),
        cancel: () => void asked.destroy(),
        heard: () => {
          heardAt = clock.steady()
        },
      }),
      heardAt: () => heardAt,
    }
  }
}

const chunkedHeader = { 'transfer-encoding': 'chunked' }

/** Keeps connections for the next request; below it speaks to sockets that are already secure. */
class DiallingAgent extends Agent {
  readonly #dial: () => Promise<Secured>

  constructor(dial: () => Promise<Secured>, limits: UpstreamLimits) {
    super({ keepAlive: true, maxSockets: limits.plainSocketsMax, maxFreeSockets: 16, timeout: limits.idleMsMax })
    this.#dial = dial
  }

  override createConnection(_options: unknown, done?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#dial().then(
      ({ socket }) => done?.(null, socket),
      (error: Error) => done?.(error, undefined as unknown as Duplex),
    )
  }
}
