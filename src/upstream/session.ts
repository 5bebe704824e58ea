/**
 * One HTTP/2 connection, and whether it still lives. A link that silently lost its peer looks like one with nothing to
 * say: while it is quiet it is asked by PING, and without a sign of life in time it is dead for every stream on it.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { Clock } from '../base/clock.ts'
import { bodyBroke, Flow, pour } from './flow.ts'
import { answerHeaders, declaredBytes, type SentHeaders } from './headers.ts'
import type { UpstreamLimits } from './limits.ts'
import type { Patience } from './patience.ts'
import { reasonOf } from './reason.ts'
import type { Secured } from './secure.ts'
import { Unreachable, type UpstreamResponse } from './upstream.ts'

/** What may be asked again: any request (surely not processed; `elsewhere`: as its connection went away), reads, or none. */
type Again = 'elsewhere' | 'anybody' | 'reads' | 'nobody'

/** An end before the head. */
export class BrokenOff extends Unreachable {
  readonly again: Again

  constructor(why: string, again: Again) {
    super(why, again === 'reads' || again === 'nobody')
    this.again = again
  }
}

export type Sending = {
  readonly method: string
  readonly path: string
  readonly headers: SentHeaders
  readonly body: Buffer | AsyncIterable<Buffer> | undefined
  readonly patience: Patience
}

type Parts = {
  readonly secured: Secured
  readonly url: URL
  readonly clock: Clock
  readonly limits: UpstreamLimits
  /** It broke while a request used it, or stopped answering. */
  readonly lost: (why: string) => void
  readonly closed: () => void
}

export class Session {
  /** Resolves when the server has said how many streams it takes, or is gone: before that a watch could wait for ever. */
  readonly settled: Promise<void>
  readonly #parts: Parts
  readonly #http2: ClientHttp2Session
  readonly #tickMs: number
  #open = 0
  #sending = 0
  #used = false
  #settled = false
  #admitted = false
  #retired = false
  /** It broke while a request used it. */
  #missed = false
  /** Why every stream on it ends, once that is known. */
  #why: string | undefined
  #lastStream = Number.POSITIVE_INFINITY
  #heardAt: number
  #observedAt: number
  #bytes = 0
  #usedAt: number
  #pinging = false
  #silentTicks = -1 // since the PING that waits for a sign of life; -1: none does
  #cancelTick: () => void = () => {}
  #cancelDrain: () => void = () => {}

  constructor(parts: Parts) {
    this.#parts = parts
    const { secured, url, clock, limits } = parts
    this.#heardAt = this.#observedAt = this.#usedAt = clock.steady()
    this.#tickMs = limits.pingEveryMs / 2
    const options = {
      createConnection: () => secured.socket,
      settings: { enablePush: false, initialWindowSize: limits.streamWindowBytes },
      // A client's headers go up as they came, however often it repeats one that Node would have once only.
      strictSingleValueFields: false,
      maxHeaderListPairs: limits.answerHeadersMax,
      maxSessionMemory: 4_000_000, // in MB, out of reach: Node's count never forgets cancelled streams; windows bound it
    }
    this.#http2 = connect(url.origin, options)
    this.#http2.once('connect', () => {
      if (!this.#http2.destroyed) this.#http2.setLocalWindowSize(limits.sessionWindowBytes)
    })
    this.#http2.on('goaway', (_code, lastStream) => {
      this.#lastStream = lastStream
      this.#retired = true
    })
    this.#http2.on('error', (error) => {
      this.#why ??= reasonOf(error)
    })
    this.settled = new Promise((resolve) => {
      this.#http2.once('close', resolve)
      this.#http2.once('remoteSettings', () => {
        this.#settled = true
        resolve()
      })
    })
    this.#http2.once('close', () => this.#ended())
    this.#tick()
  }

  /** How many more streams it takes. */
  get free(): number {
    if (!this.#settled || !this.#admitted || this.#retired || this.#http2.closed || this.#http2.destroyed) return 0
    const { limits } = this.#parts
    const allowed = this.#http2.remoteSettings?.maxConcurrentStreams ?? limits.streamsAssumedMax
    return Math.max(1, Math.floor(allowed * limits.streamsShare)) - this.#open
  }

  /** It is known where it leads: from here on it takes requests. */
  admit(): void {
    this.#admitted = true
  }

  /** When it last gave a sign of life, by the steady clock; never too late, at most half a PING's pace too early. */
  heardAt(): number {
    this.#observe()
    return this.#heardAt
  }

  request({ method, path, headers, body, patience }: Sending): Promise<UpstreamResponse> {
    const reused = this.#used
    this.#used = true
    const { url } = this.#parts
    let stream: ClientHttp2Stream
    try {
      stream = this.#http2.request(
        { ...headers, ':method': method, ':path': path, ':scheme': 'https', ':authority': url.host },
        { endStream: body === undefined },
      )
    } catch (error) {
      const stale = this.#http2.closed || this.#http2.destroyed
      if (stale) throw new BrokenOff('the connection was closing', 'elsewhere')
      throw new BrokenOff(`cannot be sent: ${reasonOf(error)}`, 'anybody')
    }
    this.#open++
    let failed: Error | undefined
    let given: string | undefined
    const leave = () => {
      given = patience.error(true).message
      if (patience.timedOut) this.ping()
      stream.close(constants.NGHTTP2_CANCEL)
      stream.destroy()
    }
    patience.signal.addEventListener('abort', leave, { once: true })
    stream.on('error', (error) => {
      failed = error
    })
    stream.once('close', () => {
      this.#open--
      if (given === undefined && (this.#http2.destroyed || this.#parts.secured.wire.destroyed)) this.#missed = true
      this.#usedAt = this.#parts.clock.steady()
      patience.signal.removeEventListener('abort', leave)
      patience.done()
    })
    if (body !== undefined) this.#send(stream, { headers, body }, (why) => (given ??= why))
    const why = () => given ?? this.#why ?? (failed === undefined ? 'connection closed' : reasonOf(failed))

    return new Promise((resolve, reject) => {
      stream.once('close', () => {
        if (given !== undefined) return reject(new Unreachable(given, true))
        reject(new BrokenOff(why(), this.#again(stream, reused)))
      })
      stream.once('response', (_headers, _flags, raw) => {
        this.#hear()
        patience.answered()
        const entries = raw as unknown as string[]
        resolve({
          status: Number(entries[entries.indexOf(':status') + 1]),
          headers: answerHeaders(entries),
          body: new Flow({
            stream,
            failure: () => {
              const whole = failed === undefined && given === undefined && this.#why === undefined
              // A reset stream ends like a whole one: its code tells them apart.
              return whole && stream.rstCode === constants.NGHTTP2_NO_ERROR ? undefined : new Unreachable(why(), true)
            },
            cancel: () => {
              stream.close(constants.NGHTTP2_CANCEL)
              stream.destroy()
            },
            heard: () => this.#hear(),
          }),
          heardAt: () => this.heardAt(),
        })
      })
    })
  }

  #again({ id = 0, rstCode }: ClientHttp2Stream, reused: boolean): Again {
    if (id > this.#lastStream) return 'elsewhere'
    if (rstCode === constants.NGHTTP2_REFUSED_STREAM) return 'anybody'
    return reused && this.#why === undefined ? 'reads' : 'nobody'
  }

  /** Nothing new goes here; what is under way may end. */
  retire(): void {
    this.#retired = true
    this.#http2.close()
  }

  /** As `retire`, but only for a while: what has not ended by then is ended. */
  drain(why: string): void {
    this.retire()
    this.#cancelDrain()
    this.#cancelDrain = this.#parts.clock.setTimer(this.#parts.limits.drainMsMax, () => this.destroy(why))
  }

  destroy(why: string): void {
    this.#why ??= why
    this.#retired = true
    this.#http2.destroy(undefined, constants.NGHTTP2_CANCEL) // otherwise its streams end as if they were whole
  }

  /** Asks for a sign of life now, unless a request already waits for one. */
  ping(): void {
    if (this.#http2.destroyed || this.#silentTicks >= 0) return
    this.#silentTicks = 0
    if (this.#pinging) return
    this.#pinging = this.#http2.ping((error) => {
      this.#pinging = false
      if (error === null) this.#hear()
    })
  }

  #send(
    stream: ClientHttp2Stream,
    { headers, body }: { readonly headers: SentHeaders; readonly body: Buffer | AsyncIterable<Buffer> },
    broke: (why: string) => void,
  ): void {
    this.#sending++
    let over = () => {
      this.#sending--
      over = () => {}
    }
    stream.once('close', () => over())
    pour(body, stream, declaredBytes(headers)).then(
      () => over(),
      (error: unknown) => {
        broke(bodyBroke(error))
        stream.close(constants.NGHTTP2_CANCEL)
        stream.destroy()
      },
    )
  }

  #hear(): void {
    this.#heardAt = this.#parts.clock.steady()
    this.#silentTicks = -1
  }

  /** Bytes on the wire count although no record or frame is complete yet; they came after the last look. */
  #observe(): void {
    const bytes = this.#parts.secured.wire.bytesRead
    if (bytes !== this.#bytes) {
      this.#bytes = bytes
      this.#heardAt = Math.max(this.#heardAt, this.#observedAt)
      this.#silentTicks = -1
    }
    this.#observedAt = this.#parts.clock.steady()
  }

  /** Silence is counted in ticks, not in time: a process that was stopped must not find all its connections dead. */
  #tick(): void {
    const { clock, limits } = this.#parts
    if (this.#http2.destroyed) return
    this.#observe()
    const now = clock.steady()
    if (this.#silentTicks >= 0) this.#silentTicks++
    const silentMsMax = this.#sending > 0 ? limits.pingSendingMsMax : limits.pingMsMax
    if (this.#silentTicks * this.#tickMs >= silentMsMax) {
      const why = `no sign of life for ${silentMsMax} ms`
      if (!this.#retired) this.#parts.lost(why) // of a retired one nothing is expected
      this.destroy(why)
      return
    }
    if (this.#open === 0 && now - this.#usedAt >= limits.idleMsMax) this.retire()
    else if (now - this.#heardAt >= limits.pingEveryMs) this.ping()
    this.#cancelTick = clock.setTimer(this.#tickMs, () => this.#tick())
  }

  #ended(): void {
    this.#cancelTick()
    this.#cancelDrain()
    if (!this.#retired && this.#missed) this.#parts.lost(this.#why ?? 'connection closed')
    this.#retired = true
    this.#parts.closed()
  }
}
