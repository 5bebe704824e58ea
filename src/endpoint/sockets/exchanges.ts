/**
 * Requests and their answers, by whatever protocol they came: whose they are, out of whose share they live, and how they
 * end. Whatever one request does, no other client may notice.
 */
import type { Readable, Writable } from 'node:stream'
import { setImmediate as nextRound } from 'node:timers/promises'
import type { Log } from '../../base/log.ts'
import { turns } from '../../base/turns.ts'
import { tooManyRequests } from '../../kube/status.ts'
import { cancel } from '../answer/pieces.ts'
import { refusal, statusResponse } from '../answer/respond.ts'
import type { Traffic } from '../documents/measures.ts'
import type { Request, Response } from '../endpoint.ts'
import { type Holder, strangers } from '../holder.ts'
import { placesOf, Shares, type Whose } from '../shares.ts'
import { RequestBodies } from './bodies.ts'
import type { Connections, Visit } from './connections.ts'
import type { SocketLimits } from './limits.ts'
import { Sender } from './sender.ts'

export type Exchange = {
  readonly request: Request
  readonly visit: Visit
  /** Where the request's body comes from. */
  readonly incoming: Readable
  /** Where the answer goes. */
  readonly out: Writable
  /** Sends the head of the answer. */
  readonly respond: (head: Response) => void
}

type Parts = {
  readonly handle: (request: Request) => Promise<Response>
  readonly whose: Whose | undefined
  readonly connections: Connections
  readonly limits: SocketLimits
  readonly traffic: Traffic
  readonly log: Log
}

/** How often an end looks whether all is done. */
const lookEveryMs = 20

export class Exchanges {
  readonly bodies: RequestBodies
  readonly sender: Sender
  readonly #parts: Parts
  /** Requests that wait for the beginning of their answer. */
  readonly #requests: Shares
  /** Writes among them: an end waits for their answers. */
  readonly #writes = new Set<Exchange>()
  #closing = false

  constructor(parts: Parts) {
    this.#parts = parts
    const { limits, traffic } = parts
    this.bodies = new RequestBodies({ limits, traffic })
    this.sender = new Sender({ limits, traffic })
    this.#requests = new Shares(limits.requestsMax)
  }

  get closing(): boolean {
    return this.#closing
  }

  /** Its connection is in use until the answer, or the upgraded connection, has ended. */
  begin(visit: Visit, out: Writable): void {
    this.#parts.connections.begin(visit)
    if (out.closed) visit.over()
    else out.on('close', visit.over)
  }

  async serve(exchange: Exchange): Promise<void> {
    const { request, visit, out } = exchange
    this.begin(visit, out)
    if (this.#closing) return await this.send(exchange, shuttingDown())
    // Once its connection is vouched for, each further request costs no look at its credential.
    const holder = visit.holder.standing === 'stranger' ? this.holderOf(visit, request) : visit.holder
    const places = placesOf(request.url, this.#parts.limits.requestBytes)
    if (!this.#requests.take(holder, places)) {
      return await this.send(exchange, this.refusal('too many requests of this caller wait for their answers'))
    }
    const isWrite = request.method !== 'GET' && request.method !== 'HEAD'
    if (isWrite) this.#writes.add(exchange)
    let response: Response | undefined
    try {
      // No body is read before its caller is known: until then it stays with its sender.
      if (request.hasBody && holder.standing === 'stranger') await this.identify(visit, request)
      if (request.url.length > this.#parts.limits.promptUrlCharactersMax) await turns.takeFirst(holder.name)
      if (!this.#isPrompt(visit)) await nextRound()
      if (!out.destroyed) response = await this.#parts.handle(request)
    } catch (error) {
      // Told to its client as what it is: a stream that is only reset makes an informer list again.
      if (!out.destroyed) response = refusal(error, request, this.#parts.log)
    } finally {
      this.#requests.give(holder, places)
      if (isWrite) this.#writes.delete(exchange)
    }
    const late = request.hasBody ? this.bodies.lateness(exchange.incoming) : undefined
    if (late !== undefined) {
      if (response !== undefined) cancel(response.body)
      response = refusal(late, request, this.#parts.log)
    }
    if (response !== undefined) return this.send(exchange, response)
    out.destroy()
  }

  /** Whether few of this connection have begun lately: one read of a socket brings thousands. Counted anew in the next round. */
  #isPrompt(visit: Visit): boolean {
    const { promptStreamsMax } = this.#parts.limits
    visit.begun++
    // Not in every round: a pending immediate costs each request a look at the sockets.
    if (visit.begun === promptStreamsMax) {
      setImmediate(() => {
        visit.begun = 0
      })
    }
    return visit.begun <= promptStreamsMax
  }

  /** Sends an answer, or a refusal in its place. What goes out at once has no promise. */
  send(exchange: Exchange, answer: Response): Promise<void> | undefined {
    const { request, out } = exchange
    let response = answer
    let over = nothingHeld
    try {
      const slot = this.#slot(exchange, response)
      if (typeof slot === 'function') over = slot
      else if (slot !== undefined) {
        cancel(response.body)
        response = slot
      }
      if (out.destroyed) {
        over()
        cancel(response.body)
        return undefined
      }
      exchange.respond(response)
      if (request.method !== 'HEAD') {
        return this.sender.send(response, out, over)?.catch((error) => this.#broken(exchange, response, over, error))
      }
      over()
      cancel(response.body)
      out.end()
    } catch (error) {
      this.#broken(exchange, response, over, error)
    }
    return undefined
  }

  #broken({ out }: Exchange, { body }: Response, over: () => void, error: unknown): void {
    this.fault(error as Error)
    over()
    cancel(body)
    out.destroy()
  }

  /** Under whose name a request takes its shares. */
  holderOf(visit: Visit, request: Request): Holder {
    if (visit.certified) return visit.holder
    return this.#known(visit, this.#parts.whose?.held(request)) ?? strangers
  }

  /** The same, when it is worth asking for. */
  async identify(visit: Visit, request: Request): Promise<Holder> {
    const holder = this.holderOf(visit, request)
    const { whose } = this.#parts
    if (holder.standing !== 'stranger' || whose === undefined) return holder
    return this.#known(visit, await whose.ask(request)) ?? holder
  }

  /** A 429 for a caller that is over a limit. */
  refusal(why: string): Response {
    this.#parts.traffic.refused++
    return comeBack(why)
  }

  readonly fault = (error: Error): void => this.#parts.log.debug('stream.fault', { why: error.message })

  /**
   * Takes no new request. Resolves when all there were have ended, or have had the time that is theirs: a write that came
   * whole gets its answer, everything else has until `closingMsMax`.
   */
  async drain(): Promise<void> {
    this.#closing = true
    this.sender.finish()
    const { closingMsMax, answeringMsMax } = this.#parts.limits
    const begunAt = performance.now()
    for (;;) {
      const ms = performance.now() - begunAt
      if (this.#parts.connections.underWay === 0 || ms >= answeringMsMax) return
      if (ms >= closingMsMax && ![...this.#writes].some(isWhole)) return
      await new Promise((resolve) => setTimeout(resolve, Math.min(lookEveryMs, closingMsMax)))
    }
  }

  #known(visit: Visit, name: string | undefined): Holder | undefined {
    if (name === undefined) return undefined
    const holder: Holder = { standing: 'known', name }
    if (visit.holder.standing === 'stranger') this.#parts.connections.know(visit, holder)
    return holder
  }

  /** How to leave the place that a list or a watch takes, or the refusal of one; undefined for whatever needs none. */
  #slot({ request, visit }: Exchange, response: Response): (() => void) | Response | undefined {
    const shares = this.sender.sharesOf(response)
    if (shares === undefined) {
      // The caller may be known by now: then its connection is worth more.
      if (visit.holder.standing === 'stranger') this.holderOf(visit, request)
      return undefined
    }
    // It would not hear of the end that all others were told of.
    if (this.#closing && response.isWatch === true) return shuttingDown()
    const holder = this.holderOf(visit, request)
    const places = response.isWatch === true ? placesOf(request.url, this.#parts.limits.watchBytes) : 1
    if (shares.take(holder, places)) return leaving(shares, holder, places)
    const what = response.isWatch === true ? 'watches of this caller are open' : 'lists of this caller are being sent'
    return this.refusal(`too many ${what}`)
  }
}

function leaving(shares: Shares, holder: Holder, places: number): () => void {
  let held = true
  return () => {
    if (held) shares.give(holder, places)
    held = false
  }
}

function nothingHeld(): void {}

function isWhole({ request, incoming }: Exchange): boolean {
  return !request.hasBody || incoming.readableEnded
}

/** kube-apiserver's answer while it ends: clients come back after a second, by then to the next process. */
export function shuttingDown(): Response {
  return comeBack('the server is shutting down, please try again later')
}

function comeBack(why: string): Response {
  const response = statusResponse(tooManyRequests(why, 1).status)
  response.headers['retry-after'] = '1'
  return response
}
