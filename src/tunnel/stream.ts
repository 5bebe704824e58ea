/** One stream as a side of a link knows it: how far each direction has come, what waits to be sent, what was not read yet. */
import type { StreamContext } from './contexts.ts'
import type { ResetReason } from './frames.ts'

export type StreamState =
  /** Ours, and the other side has not heard of it. */
  | 'waiting'
  | 'open'
  /** Our last bytes were sent; the other side's are still to come. */
  | 'ended'
  /** The other side's last bytes came; ours are not sent yet. */
  | 'heard'
  /** We gave it up. What the other side sent before it heard so is still to come, and passed over. */
  | 'resetting'
  /** The other side gave it up, and is still to hear that we heard. */
  | 'answering'
  /** No frame about it will be sent; what was received may still be unread. */
  | 'over'

type Parts = { readonly number: number; readonly isOwn: boolean; readonly purpose: string; readonly state: StreamState }

export class TunnelStream {
  /** 0 until the other side hears of it: numbers have no gaps. */
  number: number
  readonly isOwn: boolean
  readonly purpose: string
  state: StreamState

  /** What the other side allows us to send. */
  credit = 0
  /** What the first frame that we send is like; undefined once it was sent, or where it is like nothing. */
  context: StreamContext | undefined
  /** Its writer has more at hand: nothing of it is sent before. */
  isHeld = false
  /** No bytes follow those that wait. */
  isEnding = false
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0

  /** What the other side may send and has not sent; together with what is unread never more than the window. */
  granted = 0
  unread = 0
  window = 0
  /** Whether the first of the other side's bytes, or their end, are waited for. */
  isAwaited = false
  /** Whether the other side's end came: also in a stream that is being reset. */
  hasHeardEnd = false
  /** Whether our end was sent before we reset it. */
  hasSentEnd = false
  reset: { readonly reason: ResetReason; readonly sentence: string } | undefined

  constructor({ number, isOwn, purpose, state }: Parts) {
    this.number = number
    this.isOwn = isOwn
    this.purpose = purpose
    this.state = state
  }

  /** Whether any of it was handed to the link. */
  get isSent(): boolean {
    return this.number !== 0
  }

  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Whether its writer may still add something. */
  get isWritable(): boolean {
    const { state } = this
    return !this.isEnding && (state === 'open' || state === 'heard' || state === 'waiting')
  }

  /** Whether a data or end frame could be sent now. */
  get isSendable(): boolean {
    if (this.isHeld || (this.state !== 'open' && this.state !== 'heard')) return false
    return this.#waitingBytes > 0 ? this.credit > 0 : this.isEnding
  }

  put(bytes: Buffer): void {
    if (bytes.length === 0) return
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
  }

  /** The next bytes to be sent, at most so many. */
  take(max: number): Buffer {
    const taken: Buffer[] = []
    let left = max
    for (let first = this.#waiting[0]; first !== undefined && left > 0; first = this.#waiting[0]) {
      if (first.length > left) {
        taken.push(first.subarray(0, left))
        this.#waiting[0] = first.subarray(left)
        left = 0
      } else {
        taken.push(first)
        this.#waiting.shift()
        left -= first.length
      }
    }
    this.#waitingBytes -= max - left
    return taken.length === 1 ? (taken[0] as Buffer) : Buffer.concat(taken)
  }

  dropWaiting(): void {
    this.#waiting.length = 0
    this.#waitingBytes = 0
  }
}
