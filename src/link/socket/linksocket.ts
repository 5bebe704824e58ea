/**
 * One link as its driver sees it, at either end: frames in, frames out, an end with a reason. Below is a WebSocket over TLS; what
 * a link never sends (text, control frames, a message larger than a frame may be) closes it, and so does an other end that takes
 * nothing.
 */
import type { Writable } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Clock } from '../../base/clock.ts'
import { frameBytesMax } from '../frames/frames.ts'
import { type LinkLimits, standardLinkLimits } from './limits.ts'

/** What the driver of a link hears. */
export type LinkHandlers = {
  /** Bytes may be a view of a larger piece. */
  frame(frame: Buffer): void
  /** There is room again, after `send` answered false. */
  ready(): void
  /** Once, whichever side ended it. */
  closed(end: LinkEnd): void
}

export type LinkEnd = {
  readonly by: 'us' | 'peer' | 'line'
  /** For people. The other side's own words are in quotes. */
  readonly why: string
}

/** Why a link ends, as a code of WebSocket (RFC 6455, 7.4.1). */
const closeCodes = {
  /** It is not needed any more. */
  done: 1000,
  /** This side ends, or asks the other to go elsewhere. */
  away: 1001,
  /** The other side broke the protocol. */
  fault: 1002,
  /** What came is not taken here: text. */
  form: 1003,
  /** The other side may not, or keeps this one waiting. */
  refused: 1008,
  /** A fault of ours. */
  broken: 1011,
} as const

export type LinkClose = keyof typeof closeCodes

/** A close frame holds 125 bytes, two of them the code. */
const reasonBytesMax = 123
const binary = { binary: true, compress: false }

type LinkSocketParts = {
  /** What `ws` writes to. */
  readonly line: Pick<Writable, 'cork' | 'uncork'>
  readonly clock: Clock
  readonly limits?: Partial<LinkLimits>
}

export class LinkSocket<Peer> {
  readonly peer: Peer
  readonly #ws: WebSocket
  readonly #line: LinkSocketParts['line']
  readonly #clock: Clock
  readonly #limits: LinkLimits
  #handlers: LinkHandlers | undefined
  #end: LinkEnd | undefined
  /** Frames that the system has not taken yet, and when it last took one. */
  #waiting = 0
  #takenAtMs = 0
  #cancelWatch: (() => void) | undefined
  #isFull = false
  #isGathering = false
  #heard = false

  /** `ws` is open, and was made with `webSocketOptions`. */
  constructor(ws: WebSocket, peer: Peer, { line, clock, limits }: LinkSocketParts) {
    this.#line = line
    this.peer = peer
    this.#ws = ws
    this.#clock = clock
    this.#limits = { ...standardLinkLimits, ...limits }
    ws.on('error', (error) => this.#note({ by: 'line', why: errorText(error) }))
    ws.on('close', (code, reason) => this.#closed(code, reason))
    ws.pause()
  }

  /** Nothing is read before; at the latest now it is said that it ended meanwhile. */
  begin(handlers: LinkHandlers): void {
    this.#handlers = handlers
    if (this.#ws.readyState === this.#ws.CLOSED) {
      handlers.closed(this.#end ?? { by: 'line', why: 'connection closed' })
      return
    }
    this.#ws.on('message', (data, isBinary) => {
      if (this.#end !== undefined) return
      this.#heard = true
      if (isBinary) handlers.frame(data as Buffer)
      else this.close('form', 'a link has binary frames only')
    })
    for (const event of ['ping', 'pong'] as const)
      this.#ws.on(event, () => this.close('fault', 'a link has no control frames'))
    this.#ws.resume()
  }

  /** Whether any frame came. */
  get heard(): boolean {
    return this.#heard
  }

  /** What was handed over and the system has not taken yet. */
  get bufferedBytes(): number {
    return this.#ws.bufferedAmount
  }

  /** Whether more may follow at once; where not, `ready` tells when. What is sent to a link that has ended is lost. */
  send(frame: Buffer): boolean {
    if (frame.length > frameBytesMax) throw new RangeError(`a frame of ${frame.length} bytes`)
    if (this.#end !== undefined || this.#ws.readyState !== this.#ws.OPEN) return false
    if (this.#waiting++ === 0) this.#takenAtMs = this.#clock.steady()
    this.#gather()
    this.#ws.send(frame, binary, this.#taken)
    const bytes = this.#ws.bufferedAmount
    if (bytes > this.#limits.heldBytesMax) this.cut(`more than ${this.#limits.heldBytesMax} bytes wait for it`)
    else if (bytes >= this.#limits.fullBytes) this.#isFull = true
    if (this.#cancelWatch === undefined && bytes > 0) this.#watch(this.#limits.stalledMsMax)
    return !this.#isFull && this.#end === undefined
  }

  /** Nothing more is read until `resume`; what came already may still be handed over. */
  pause(): void {
    this.#ws.pause()
  }

  resume(): void {
    this.#ws.resume()
  }

  /** In order: what was sent before arrives before, if the other side still reads. */
  close(code: LinkClose, why: string): void {
    if (this.#end !== undefined) return
    this.#end = { by: 'us', why }
    this.#ws.resume()
    this.#ws.close(closeCodes[code], cutText(why))
  }

  /** At once. */
  cut(why: string): void {
    this.#end ??= { by: 'us', why }
    this.#ws.terminate()
  }

  /** What is sent in one turn is one record of TLS, and one write: each costs 22 bytes, and more time than a frame. */
  #gather(): void {
    if (this.#isGathering) return
    this.#isGathering = true
    this.#line.cork()
    process.nextTick(this.#gathered)
  }

  readonly #gathered = (): void => {
    this.#isGathering = false
    this.#line.uncork()
  }

  readonly #taken = (): void => {
    this.#waiting--
    this.#takenAtMs = this.#clock.steady()
    if (!this.#isFull || this.#end !== undefined || this.#ws.bufferedAmount > this.#limits.fullBytes / 2) return
    this.#isFull = false
    this.#handlers?.ready()
  }

  /** One timer looks at a link that sends, however often it does. */
  #watch(ms: number): void {
    this.#cancelWatch = this.#clock.setTimer(ms, () => {
      this.#cancelWatch = undefined
      if (this.#waiting === 0) return
      const { stalledMsMax } = this.#limits
      const silentMs = this.#clock.steady() - this.#takenAtMs
      if (silentMs >= stalledMsMax) this.cut(`it took nothing for ${stalledMsMax} ms`)
      else this.#watch(stalledMsMax - silentMs)
    })
  }

  #note(end: LinkEnd): void {
    this.#end ??= end
  }

  #closed(code: number, reason: Buffer): void {
    this.#cancelWatch?.()
    const said = reason.length > 0 ? `it said "${reason.toString()}"` : 'it said nothing'
    this.#note(code === 1006 ? { by: 'line', why: 'connection closed' } : { by: 'peer', why: `${said} (${code})` })
    this.#handlers?.closed(this.#end as LinkEnd)
  }
}

function cutText(why: string): string {
  const bytes = Buffer.from(why)
  return bytes.length <= reasonBytesMax ? why : bytes.subarray(0, reasonBytesMax).toString().replace(/�+$/, '')
}

/** By its code: of what the other side may have written nothing is repeated. */
function errorText(error: Error & { code?: string }): string {
  const texts: Readonly<Record<string, string>> = {
    WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: `a message larger than ${frameBytesMax} bytes`,
    WS_ERR_TOO_MANY_BUFFERED_PARTS: 'a message in too many pieces',
    ECONNRESET: 'connection reset',
  }
  const { code = '' } = error
  return texts[code] ?? (code.startsWith('WS_ERR_') ? 'it does not speak WebSocket as expected' : 'connection failed')
}
