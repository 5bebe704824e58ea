/**
 * One direction of a connection through the link: bytes from one socket to the other, at a pace, held for a while, or
 * lost for good. What it buffers is bounded; the sender feels that as a full window.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../src/base/clock.ts'

/** What one direction of one connection may hold on its way: some round trips of a slow line, no more. */
const heldBytesMax = 256 * 1024
/** Pieces of a slow line: small enough to share it between connections. */
const pieceBytesMax = 16 * 1024

/** When a piece that is ready now arrives at the other end. */
export type Pace = (bytes: number) => number

type Parts = {
  readonly from: Socket
  readonly to: Socket
  readonly clock: Clock
  readonly count: (bytes: number) => void
}

export class Flow {
  readonly #parts: Parts
  readonly #queue: { readonly bytes: Buffer; readonly dueMs: number }[] = []
  #queuedBytes = 0
  #state: 'open' | 'held' | 'lost' = 'held'
  #pace: Pace | undefined
  #full = false
  #ended = false
  #cancelTimer: (() => void) | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    const { from, to } = parts
    from.on('data', (bytes: Buffer) => this.#take(bytes))
    from.on('end', () => {
      this.#ended = true
      this.#pump()
    })
    to.on('drain', () => {
      this.#full = false
      this.#pump()
    })
    from.pause()
  }

  /** Bytes go on, also those that were held; those that come from now on take as long as `pace` says. */
  open(pace?: Pace): void {
    if (this.#state === 'lost') return
    this.#state = 'open'
    this.#pace = pace
    this.#pump()
  }

  /** Nothing is read, nothing is written; all of it comes later if this direction opens again. */
  hold(): void {
    if (this.#state === 'open') this.#state = 'held'
    this.#pump()
  }

  /** For good: what comes is thrown away, so that the end of the sender is noticed and nothing piles up. */
  lose(): void {
    this.#state = 'lost'
    this.#drop()
    this.#pump()
  }

  stop(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#drop()
  }

  #drop(): void {
    this.#queue.length = 0
    this.#queuedBytes = 0
  }

  #take(bytes: Buffer): void {
    if (this.#state === 'lost' || this.#parts.to.destroyed) return
    const size = this.#pace === undefined ? bytes.length : pieceBytesMax
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size)
      this.#queue.push({ bytes: piece, dueMs: this.#pace?.(piece.length) ?? 0 })
    }
    this.#queuedBytes += bytes.length
    this.#pump()
  }

  #pump(): void {
    const { from, to, clock, count } = this.#parts
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    if (to.destroyed) this.#drop()
    while (this.#state === 'open' && !this.#full) {
      const next = this.#queue[0]
      if (next === undefined) break
      const waitMs = next.dueMs - clock.steady()
      if (waitMs > 0) {
        this.#cancelTimer = clock.setTimer(Math.ceil(waitMs), () => this.#pump())
        break
      }
      this.#queue.shift()
      this.#queuedBytes -= next.bytes.length
      count(next.bytes.length)
      this.#full = !to.write(next.bytes)
    }
    if (this.#ended && this.#queue.length === 0 && this.#state === 'open' && to.writable) to.end()
    if (this.#state === 'held' || this.#queuedBytes > heldBytesMax) from.pause()
    else from.resume()
  }
}
