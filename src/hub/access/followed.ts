/**
 * A whole resource, or what of it is wanted, as a part of the hub reads it, by the same source that edges have views of: its objects as they are, then every
 * change in the turn that publishes it. What cannot be had is asked for again.
 */
import type { Clock } from '../../base/clock.ts'
import { pieceMsMax, turns } from '../../base/turns.ts'
import type { Scope } from '../../kube/scope.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { InterestView, LinkEvent, LinkObject } from '../../link/session/session.ts'
import { interestOf } from '../../mirror/interest.ts'
import type { HubSources } from '../sources/sources.ts'
import type { SourceReader } from '../sources/view.ts'

type Parts = {
  readonly sources: Pick<HubSources, 'open'>
  /** Of all namespaces and names, unless it says otherwise. */
  readonly of: Pick<Scope, 'group' | 'version' | 'resource'> & Partial<Scope>
  readonly clock: Clock
  readonly put: (object: LinkObject) => void
  readonly remove: (key: string) => void
  /** It begins anew. */
  readonly clear: () => void
  /** It is there, or it is not: called each time that becomes known. */
  readonly told: () => void
}

/** Soon enough for an operator who gave the hub a right, and for a hub that was started before its API server. */
const retryMsMin = 5_000

export class FollowedObjects implements SourceReader {
  readonly skipsDigest = true
  readonly #parts: Parts
  #letGo: () => void = () => undefined
  #cancelRetry: () => void = () => undefined
  /** Counts beginnings: what is read belongs to one of them. */
  #begun = 0
  #isKnown = false
  #refusal: SessionRefusal | undefined
  #isOver = false
  /** It was refused, and is asked for again later. */
  #isPausing = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Everything of it was read, and it is as far as its source. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Why it is not known, as far as that was told. */
  get refusal(): SessionRefusal | undefined {
    return this.#refusal
  }

  start(): void {
    this.#isPausing = false
    const wanted = interestOf({ namespace: '', ...this.#parts.of })
    const opened = this.#parts.sources.open(wanted, this)
    this.#letGo = () => opened?.leave(wanted, this)
  }

  /** What could not be had may be there now. */
  hurry(): void {
    if (!this.#isPausing || this.#isOver) return
    this.#cancelRetry()
    this.start()
  }

  stop(): void {
    this.#isOver = true
    this.#begun++
    this.#cancelRetry()
    this.#letGo()
  }

  opened(view: InterestView): void {
    void this.#readAll(view, ++this.#begun)
  }

  event({ key, item }: LinkEvent): void {
    if (item === undefined) this.#parts.remove(key)
    else this.#parts.put(item)
  }

  refused(refusal: SessionRefusal): void {
    if (this.#isOver) return
    this.#begun++
    this.#isKnown = false
    this.#refusal = refusal
    this.#parts.clear()
    this.#parts.told()
    this.#isPausing = true
    this.#cancelRetry = this.#parts.clock.setTimer(Math.max(retryMsMin, refusal.retryAfterMs), () => this.start())
  }

  /** What changes meanwhile is told as it comes; what is read later is read as it is then. */
  async #readAll(view: InterestView, begun: number): Promise<void> {
    const { put, clear, told } = this.#parts
    this.#isKnown = false
    clear()
    let beganAt = performance.now()
    for (const { key } of view.behind('')) {
      const object = view.get(key)
      if (object !== undefined) put(object)
      if (performance.now() - beganAt < pieceMsMax) continue
      await turns.take()
      if (this.#begun !== begun) return
      beganAt = performance.now()
    }
    this.#isKnown = true
    this.#refusal = undefined
    told()
  }
}
