/**
 * The connections to one address in one name. Reflectors hold their streams for hours, so when a connection is full the
 * next is opened: short requests and watches never wait for each other. Failed dials back off for all requests but probes.
 */
import { type Backoff, backoff } from '../base/backoff.ts'
import type { Clock } from '../base/clock.ts'
import type { Dial } from './dial.ts'
import { KeptBody, KeptRoom } from './keptbody.ts'
import type { UpstreamLimits } from './limits.ts'
import type { Patience } from './patience.ts'
import { PlainSessions } from './plain.ts'
import { isCertain, reasonOf } from './reason.ts'
import { type Pair, type Secured, secure, type Trust } from './secure.ts'
import { BrokenOff, type Sending, Session } from './session.ts'
import { Unreachable, type UpstreamResponse } from './upstream.ts'

export type PoolParts = {
  readonly dial: Dial
  readonly url: URL
  readonly trust: Trust
  readonly pair: Pair | undefined
  readonly clock: Clock
  readonly limits: UpstreamLimits
  /** A connection could not be made, or broke while it was used. */
  readonly lost: (why: string) => void
  /** Says why a new connection may not be used; is given a way to ask over it, and the digest of the server's certificate. */
  readonly admit?: ((ask: Ask, server: string) => Promise<string | undefined>) | undefined
}

export type Ask = (sending: Sending & { readonly body: undefined }) => Promise<UpstreamResponse>

/** A body that comes as a stream is kept, so that it can be sent again. */
export type PoolSending = Omit<Sending, 'body'> & { readonly body: Buffer | KeptBody | undefined }

/** No connection: nothing was sent. */
export class NotConnected extends Unreachable {
  /** The other end said no at once. */
  readonly certain: boolean

  constructor(why: string, certain: boolean) {
    super(why, false)
    this.certain = certain
  }
}

type Protocols = readonly ('h2' | 'http/1.1')[]

type Waiting = { readonly resolve: () => void; readonly reject: (error: Error) => void; readonly urgent: boolean }

export class Pool {
  readonly #parts: PoolParts
  readonly #sessions = new Set<Session>()
  readonly #plain: PlainSessions
  /** HTTP/1.1 connections over which only the gate asks. */
  readonly #checking: PlainSessions
  readonly #stop = new AbortController()
  readonly #backoff: Backoff
  readonly #kept: KeptRoom
  #opening: Promise<void> | undefined
  #openingSince = 0
  #openedAt = Number.NEGATIVE_INFINITY
  /** Requests without a connection: the next one is for all of them, whichever dialled it. */
  readonly #waiting = new Set<Waiting>()
  #plainUntil = Number.NEGATIVE_INFINITY
  #redialAt = Number.NEGATIVE_INFINITY
  #failure: NotConnected | undefined
  #cancelDrain: () => void = () => {}
  #drained: () => void = () => {}

  constructor(parts: PoolParts) {
    this.#parts = parts
    const { url, clock, limits } = parts
    this.#backoff = backoff({ firstMs: limits.redialFirstMs, maxMs: limits.redialMsMax })
    this.#kept = new KeptRoom({ bodyBytesMax: limits.keptBodyBytesMax, bytesMax: limits.keptBytesMax })
    this.#plain = new PlainSessions({ url, clock, limits, dial: () => this.dial(['http/1.1']) })
    this.#checking = new PlainSessions({ url, clock, limits, dial: () => this.#dial(['http/1.1']) })
  }

  /** Its caller settles it once no attempt follows. */
  keep(body: AsyncIterable<Buffer>): KeptBody {
    return new KeptBody(body, this.#kept)
  }

  async ask(sending: PoolSending, urgent = false): Promise<UpstreamResponse> {
    const { body } = sending
    const kept = body instanceof KeptBody ? body : undefined
    const attempt = (): Sending => ({ ...sending, body: body instanceof KeptBody ? body.attempt() : body })
    const isGone = () => kept?.isWhole === false
    for (let tried = 0; ; tried++) {
      let usable = this.#usable()
      // Asked again after each wait, with nothing between the answer and its use: others wait for the same place.
      while (usable === undefined) {
        await this.ready(sending.patience, urgent)
        usable = this.#usable()
      }
      if (sending.patience.signal.aborted) throw sending.patience.error(false)
      if (isGone()) throw new Unreachable('its body was larger than what is kept of it', false)
      try {
        return await usable.request(attempt())
      } catch (error) {
        if (!(error instanceof BrokenOff) || !mayRepeat(error, sending) || isGone()) throw error
        if (tried >= retriesMax(error, this.#parts.limits)) throw error
      }
    }
  }

  /** Waits until something takes a request. */
  async ready(patience: Patience, urgent: boolean): Promise<void> {
    const { clock, limits } = this.#parts
    while (this.#usable() === undefined) {
      if (patience.signal.aborted) throw patience.error(false)
      if (this.#stop.signal.aborted) throw new Unreachable('the connection was closing', false)
      if (this.#sessions.size >= limits.sessionsMax) {
        throw new Unreachable(`all ${limits.sessionsMax} connections to the API server are full`, false)
      }
      // A dial that has come to nothing so far may be stuck where the next one is not: a probe tries beside it.
      const stuck = urgent && clock.steady() - this.#openingSince >= limits.probeMsMax
      if (this.#opening === undefined || stuck) {
        if (!urgent && this.#failure !== undefined && clock.steady() < this.#redialAt) throw this.#failure
        this.#open()
      }
      await this.#next(patience, urgent)
    }
  }

  /** In a set and not by one promise for all: a request that leaves would stay in its memory until the cloud is back. */
  async #next(patience: Patience, urgent: boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting = { resolve, reject, urgent }
    this.#waiting.add(waiting)
    try {
      await patience.wait(Promise.race([this.#opening, promise]))
    } finally {
      this.#waiting.delete(waiting)
    }
  }

  /** A connection of its own, also for upgrades. */
  async dial(protocols: Protocols): Promise<Secured> {
    const begunAt = this.#parts.clock.steady()
    const secured = await this.#dial(protocols)
    try {
      await this.#admit((sending) => this.#checking.ask(sending), secured, begunAt)
    } catch (error) {
      secured.socket.destroy()
      throw error
    }
    return secured
  }

  async #dial(protocols: Protocols): Promise<Secured> {
    const { dial, url, trust, pair, clock, limits } = this.#parts
    const begunAt = clock.steady()
    try {
      return await secure({ dial, url, trust, pair, protocols, clock, limits, signal: this.#stop.signal })
    } catch (error) {
      throw this.#failed(reasonOf(error), isCertain(error), begunAt)
    }
  }

  /** The server is reachable again: no request has to wait before the next dial. */
  forgive(): void {
    const { clock, limits } = this.#parts
    this.#failure = undefined
    this.#backoff.reset()
    // A dial from before may be stuck where the next one is not: requests that wait for it need not wait for its end.
    const stuck = this.#opening !== undefined && clock.steady() - this.#openingSince >= limits.probeMsMax
    if (stuck && this.#usable() === undefined) this.#open()
  }

  /** It is known by now that no server answers: requests that wait for a connection, probes apart, hear it at once. */
  giveUp(why: string): void {
    for (const { reject, urgent } of this.#waiting) if (!urgent) reject(new NotConnected(why, false))
  }

  /** A probe got no answer: connections that were silent meanwhile get nothing new. Answers whether any gave a sign of life. */
  doubt(sinceMs: number): boolean {
    let alive = false
    for (const session of this.#sessions) {
      if (session.heardAt() > sinceMs) alive = true
      else {
        session.ping()
        session.retire()
      }
    }
    return alive
  }

  /** Nothing new comes; what is under way gets some time, then ends. */
  drain(why: string, drained: () => void): void {
    this.#drained = drained
    for (const session of this.#sessions) session.drain(why)
    this.#cancelDrain()
    this.#cancelDrain = this.#parts.clock.setTimer(this.#parts.limits.drainMsMax, () => this.destroy(why))
  }

  destroy(why: string): void {
    this.#cancelDrain()
    this.#drained()
    this.#stop.abort()
    this.#plain.destroy()
    this.#checking.destroy()
    for (const session of this.#sessions) session.destroy(why)
  }

  #usable(): { request(sending: Sending): Promise<UpstreamResponse> } | undefined {
    for (const session of this.#sessions) if (session.free > 0) return session
    if (this.#parts.clock.steady() >= this.#plainUntil) return undefined
    return { request: (sending) => this.#plain.ask(sending) }
  }

  #open(): void {
    const opening = this.#openNext().finally(() => {
      if (this.#opening === opening) this.#opening = undefined
    })
    opening.catch(() => {}) // the request that waited may be gone
    this.#opening = opening
    this.#openingSince = this.#parts.clock.steady()
  }

  async #openNext(isSecond = false): Promise<void> {
    const { url, clock, limits, lost } = this.#parts
    const begunAt = clock.steady()
    const secured = await this.#dial(['h2', 'http/1.1'])
    if (secured.protocol === 'http/1.1') {
      secured.socket.destroy()
      this.#plainUntil = clock.steady() + limits.plainMsMax
    } else {
      const session: Session = new Session({
        secured,
        url,
        clock,
        limits,
        lost: (why) => lost(`${url.origin}: ${why}`),
        closed: () => void this.#sessions.delete(session),
      })
      this.#sessions.add(session)
      if (this.#stop.signal.aborted) session.destroy('stopped')
      let isUnauthorized = false
      const ask = async (sending: Sending) => {
        const response = await session.request(sending)
        isUnauthorized ||= response.status === 401
        return response
      }
      try {
        await this.#admit(ask, secured, begunAt)
      } catch (error) {
        session.destroy((error as Error).message)
        throw error
      }
      session.admit()
      await session.settled
      if (session.free <= 0) {
        // kube-apiserver ends a connection with its 401 to the gate's question, which the gate does not ask again at once.
        if (isUnauthorized && !isSecond) return await this.#openNext(true)
        throw this.#failed('it takes connections and closes them', false, clock.steady())
      }
    }
    this.#openedAt = clock.steady()
    this.forgive()
    for (const { resolve } of this.#waiting) resolve()
  }

  /** Before anything else is sent over a connection it is known where it leads. */
  async #admit(ask: Ask, { socket }: Secured, begunAt: number): Promise<void> {
    let refusal: string | undefined
    try {
      refusal = await this.#parts.admit?.(ask, socket.getPeerX509Certificate()?.fingerprint256 ?? '')
    } catch (error) {
      throw this.#failed(error instanceof Unreachable ? error.message : reasonOf(error), false, begunAt)
    }
    if (refusal !== undefined) throw this.#failed(refusal, true, begunAt)
  }

  #failed(reason: string, certain: boolean, begunAt: number): NotConnected {
    const { url, clock, lost } = this.#parts
    if (this.#stop.signal.aborted) return new NotConnected('the connection was closing', false)
    const failure = new NotConnected(`${url.origin}: ${reason}`, certain)
    // What was dialled into a hole says nothing about the way that others have found since.
    if (this.#openedAt > begunAt) return failure
    this.#failure = failure
    this.#redialAt = clock.steady() + this.#backoff.next()
    lost(this.#failure.message)
    return this.#failure
  }
}

function retriesMax({ again }: BrokenOff, limits: UpstreamLimits): number {
  return again === 'elsewhere' ? limits.elsewhereRetriesMax : limits.retriesMax
}

function mayRepeat({ again }: BrokenOff, { method, patience }: Pick<Sending, 'method' | 'patience'>): boolean {
  if (patience.signal.aborted) return false
  return again === 'elsewhere' || again === 'anybody' || (again === 'reads' && (method === 'GET' || method === 'HEAD'))
}
