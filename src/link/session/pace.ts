/**
 * How much bulk may be on its way: what the line holds (bandwidth × smallest round trip) and 100 ms of queue, so that an event
 * behind it hardly waits. Both are measured by acknowledgements: of each piece it is known how much had arrived when
 * it was sent and when that was, so that what arrives in a burst is not taken for a faster line.
 */
import type { SessionLimits } from './limits.ts'

/** While nothing queues on the line there may be more of it than was ever used: so much more is tried. */
const gain = 1.1

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
  #onTheWay: Sent[] = []
  #roundTripMs = Number.POSITIVE_INFINITY
  #isQueueing = false
  /** The largest bandwidths of the last while, falling: the first counts. */
  #seen: Seen[] = []

  constructor(limits: SessionLimits) {
    this.#limits = limits
  }

  get unacknowledged(): number {
    return this.#sent - this.#arrived
  }

  get limit(): number {
    const { bulkBytesMin, bulkBytesMax, bulkQueueMs } = this.#limits
    const [best] = this.#seen
    if (best === undefined) return bulkBytesMin
    const line = best.bytesPerMs * (this.#roundTripMs + bulkQueueMs) * (this.#isQueueing ? 1 : gain)
    return Math.min(bulkBytesMax, Math.max(bulkBytesMin, line))
  }

  hasRoom(bytes: number): boolean {
    return this.unacknowledged === 0 || this.unacknowledged + bytes <= this.limit
  }

  send(bytes: number, now: number): void {
    if (bytes === 0) return
    if (this.#sent === this.#arrived) this.#arrivedAt = now
    this.#sent += bytes
    this.#onTheWay.push({ upTo: this.#sent, at: now, arrivedBefore: this.#arrived, arrivedAt: this.#arrivedAt })
  }

  /** False if so much was never sent, or less than was acknowledged before. */
  acknowledge(arrived: number, now: number): boolean {
    if (arrived < this.#arrived || arrived > this.#sent) return false
    if (arrived === this.#arrived) return true
    this.#arrived = arrived
    this.#arrivedAt = now
    let last: Sent | undefined
    while (this.#onTheWay[0] !== undefined && this.#onTheWay[0].upTo <= arrived) last = this.#onTheWay.shift()
    if (last === undefined) return true
    const roundTripMs = Math.max(1, now - last.at)
    this.#roundTripMs = Math.min(this.#roundTripMs, roundTripMs)
    this.#isQueueing = roundTripMs > this.#roundTripMs + this.#limits.bulkQueueMs / 2
    const bytesPerMs = (arrived - last.arrivedBefore) / Math.max(1, now - last.arrivedAt)
    this.#seen = this.#seen.filter(
      ({ at, bytesPerMs: other }) => now - at < this.#limits.bandwidthMs && other > bytesPerMs,
    )
    this.#seen.push({ bytesPerMs, at: now })
    return true
  }
}
