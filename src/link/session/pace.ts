/**
 * How much bulk may be on its way: what the line holds (bandwidth × smallest round trip) and 100 ms of queue, so that an event
 * behind it hardly waits. Both are measured by acknowledgements: of each piece it is known how much had arrived when
 * it was sent and when that was, so that what arrives in a burst is not taken for a faster line. Those 100 ms are also what finds a faster
 * line: more is on its way than the one that is known holds.
 *
 * A path may become another one, so the smallest round trip is measured anew from time to time, by a piece that has the line for itself:
 * one behind others would measure what they queue.
 */
import type { SessionLimits } from './limits.ts'

type Sent = {
  /** Bytes sent up to its end. */
  readonly upTo: number
  readonly at: number
  readonly arrivedBefore: number
  readonly arrivedAt: number
}

type Seen = { readonly bytesPerMs: number; readonly at: number }

export class BulkPace {
  readonly #limits: SessionLimits
  #sent = 0
  #arrived = 0
  #arrivedAt = 0
  /** Sent up to the end of what the other side acknowledges at once, whatever its size. */
  #promptUpTo = 0
  #onTheWay: Sent[] = []
  #roundTripMs = Number.POSITIVE_INFINITY
  /** When that was last seen. */
  #roundTripAt = 0
  /** The end of the piece that measures it anew. */
  #measuredBy: number | undefined
  /** The largest bandwidths of the last while, falling: the first counts. */
  #seen: Seen[] = []

  constructor(limits: SessionLimits) {
    this.#limits = limits
  }

  get unacknowledged(): number {
    return this.#sent - this.#arrived
  }

  /** So much is on its way that the other side is dead if it does not say so: of less in streams that is not concluded. */
  get isLate(): boolean {
    return this.#arrived < this.#promptUpTo || this.unacknowledged >= this.#limits.lateBytes
  }

  /** The other side is to say that something has come: of a little in streams it need not. */
  get isOwed(): boolean {
    return this.#arrived < this.#promptUpTo || this.unacknowledged >= this.#limits.unsaidBytes
  }

  get limit(): number {
    const { bulkBytesMin, bulkBytesMax, bulkQueueMs } = this.#limits
    const [best] = this.#seen
    if (best === undefined) return bulkBytesMin
    const line = best.bytesPerMs * (this.#roundTripMs + bulkQueueMs)
    return Math.min(bulkBytesMax, Math.max(bulkBytesMin, line))
  }

  /** How much more may be sent. */
  room(now: number): number {
    const isWaited = this.#measuredBy !== undefined || (this.isOwed && this.#isOld(now))
    return isWaited ? 0 : Math.max(0, Math.floor(this.limit - this.unacknowledged))
  }

  /** Whether anything more may be sent that is worth a frame. */
  hasRoom(now: number): boolean {
    return this.share(this.#limits.pieceBytes, now) > 0
  }

  /** What may be sent of so many bytes: all, a part that is worth a frame, or nothing. Where nothing is on its way it is all. */
  share(wanted: number, now: number): number {
    const room = this.unacknowledged === 0 ? wanted : this.room(now)
    if (wanted <= room) return wanted
    return room < this.#limits.cutBytesMin ? 0 : room
  }

  /** `isPrompt`: it is acknowledged when it has come; else together with what follows. */
  send(bytes: number, now: number, isPrompt = true): void {
    if (bytes === 0) return
    const wasOwed = this.isOwed
    // What was not owed counts as come: the edge says nothing of it by itself.
    const arrivedBefore = wasOwed ? this.#arrived : this.#sent
    if (!wasOwed) this.#arrivedAt = now
    this.#sent += bytes
    if (isPrompt) this.#promptUpTo = this.#sent
    if (!wasOwed && this.isOwed && this.#isOld(now)) this.#measuredBy = this.#sent
    this.#onTheWay.push({ upTo: this.#sent, at: now, arrivedBefore, arrivedAt: this.#arrivedAt })
  }

  /** False if so much was never sent, or less than was acknowledged before. */
  acknowledge(arrived: number, now: number): boolean {
    if (arrived < this.#arrived || arrived > this.#sent) return false
    if (arrived === this.#arrived) return true
    this.#arrived = arrived
    this.#arrivedAt = now
    let last: Sent | undefined
    while (this.#onTheWay[0] !== undefined && this.#onTheWay[0].upTo <= arrived) last = this.#onTheWay.shift()
    if (last !== undefined) this.#measure(last, now)
    return true
  }

  #measure({ upTo, at, arrivedBefore, arrivedAt }: Sent, now: number): void {
    const roundTripMs = Math.max(1, now - at)
    const isAnew = this.#measuredBy !== undefined && upTo >= this.#measuredBy
    if (isAnew) this.#measuredBy = undefined
    if (isAnew || roundTripMs <= this.#roundTripMs) {
      this.#roundTripMs = roundTripMs
      this.#roundTripAt = now
    }
    const bytesPerMs = (this.#arrived - arrivedBefore) / Math.max(1, now - arrivedAt)
    this.#seen = this.#seen.filter((seen) => now - seen.at < this.#limits.bandwidthMs && seen.bytesPerMs > bytesPerMs)
    this.#seen.push({ bytesPerMs, at: now })
  }

  #isOld(now: number): boolean {
    return this.#roundTripMs < Number.POSITIVE_INFINITY && now - this.#roundTripAt >= this.#limits.roundTripMs
  }
}
