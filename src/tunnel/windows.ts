/**
 * How much the other side may send in each stream. Every stream has a small window from its beginning, which no other stream
 * can take from it: a reader that sleeps holds its own window and delays no other. A reader that keeps up is given more, out
 * of what all streams of the link may have grown by. There is no credit of the link as a whole: a few readers that sleep
 * would hold it.
 */
import { LinkFault } from '../link/frames/bytes.ts'
import type { TunnelLimits } from './limits.ts'
import type { TunnelStream } from './stream.ts'

export class Windows {
  readonly #limits: TunnelLimits
  #grown = 0

  constructor(limits: TunnelLimits) {
    this.#limits = limits
  }

  /** By how much windows have grown together. */
  get grown(): number {
    return this.#grown
  }

  begin(stream: TunnelStream): void {
    stream.window = this.#limits.windowBytes
    stream.granted = stream.window
  }

  /** Bytes came; what was not allowed closes the link. */
  spend(stream: TunnelStream, bytes: number): void {
    if (bytes > stream.granted)
      throw new LinkFault(`stream ${stream.number} brought ${bytes} bytes where ${stream.granted} were allowed`)
    stream.granted -= bytes
  }

  /** Its reader took bytes. Answers whether the other side should hear of it: not of every few bytes. */
  read(stream: TunnelStream): boolean {
    if (roomOf(stream) < stream.window / 2) return false
    if (stream.unread === 0) this.#grow(stream)
    return true
  }

  /** What the other side is to be granted now. */
  grant(stream: TunnelStream): number {
    const room = roomOf(stream)
    stream.granted += room
    return room
  }

  /** Nothing more will come, and nothing that came is held. */
  end(stream: TunnelStream): void {
    this.#grown -= Math.max(0, stream.window - this.#limits.windowBytes)
    stream.window = 0
  }

  #grow(stream: TunnelStream): void {
    const { windowBytesMax, grownBytesMax } = this.#limits
    const more = Math.min(stream.window, windowBytesMax - stream.window, grownBytesMax - this.#grown)
    if (more <= 0) return
    stream.window += more
    this.#grown += more
  }
}

function roomOf({ window, granted, unread }: TunnelStream): number {
  return window - granted - unread
}
