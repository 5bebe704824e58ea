/**
 * Whose review is next: few are under way at a time, many may wait. Callers whom the API server has accepted before go
 * before strangers and take turns, so that neither invented tokens nor one busy caller keep the others waiting.
 */

const atOnceMax = 32 // a burst of first decisions must not fill the API server's share for this node
const atOnceOfOneMax = 16 // an authenticator that is slow for one caller leaves half of the places to the others
const atOnceOfStrangersMax = 8 // all of them together: they come one by one, or they are a flood
const queuedMax = 1024 // more than the distinct questions of a node that starts; beyond it the cloud is too slow to help
const queuedOfOneMax = 768 // more than the interests it may begin; what is left is for the others
const queuedOfStrangersMax = 256 // a caller that does not fit is judged by the API server itself

/** The name under which all strangers take their turns. */
export const strangers = ''

type Lane = { running: number; readonly waiting: (() => void)[] }

export class FairQueue {
  /** By caller; the one that was served last is last. */
  readonly #lanes = new Map<string, Lane>()
  #running = 0
  /** Of callers that the API server has accepted before. */
  #queued = 0

  /** Calls `go` now or when it is its turn; a caller that went says so by `leave`. False: too many wait already. */
  enter(who: string, go: () => void): boolean {
    const lane = this.#lanes.get(who) ?? { running: 0, waiting: [] }
    this.#lanes.set(who, lane)
    if (this.#running < atOnceMax && lane.running < placesOf(who)) {
      this.#start(lane, go)
      return true
    }
    const isStranger = who === strangers
    const queuedMost = isStranger ? queuedOfStrangersMax : queuedOfOneMax
    if (lane.waiting.length >= queuedMost || (!isStranger && this.#queued >= queuedMax)) {
      this.#tidy(who, lane)
      return false
    }
    lane.waiting.push(go)
    if (!isStranger) this.#queued++
    return true
  }

  leave(who: string): void {
    const lane = this.#lanes.get(who) as Lane
    lane.running--
    this.#running--
    this.#tidy(who, lane)
    this.#next()
  }

  #next(): void {
    for (const [who, lane] of this.#lanes) {
      if (who !== strangers && this.#advance(who, lane)) return
    }
    const lane = this.#lanes.get(strangers)
    if (lane !== undefined) this.#advance(strangers, lane)
  }

  #advance(who: string, lane: Lane): boolean {
    if (lane.running >= placesOf(who)) return false
    const go = lane.waiting.shift()
    if (go === undefined) return false
    if (who !== strangers) this.#queued--
    this.#lanes.delete(who)
    this.#lanes.set(who, lane)
    this.#start(lane, go)
    return true
  }

  #start(lane: Lane, go: () => void): void {
    lane.running++
    this.#running++
    go()
  }

  #tidy(who: string, { running, waiting }: Lane): void {
    if (running === 0 && waiting.length === 0) this.#lanes.delete(who)
  }
}

function placesOf(who: string): number {
  return who === strangers ? atOnceOfStrangersMax : atOnceOfOneMax
}
