/** Drives the judgement: probes at its pace, at once when traffic fails, one round at a time, and tells its listeners. */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { firstJudgement, type Judgement, judge, limitMsOf, type Sign } from './judgement.ts'
import type { UpstreamLimits } from './limits.ts'
import type { Reachability, ReachabilityState } from './upstream.ts'

type Parts = {
  /** Ends by itself within its own limit, and never rejects. */
  readonly probe: () => Promise<Sign>
  readonly everyMs: number
  /** While the API server does not answer, where that is more often: callers that wait for it must not wait for a probe. */
  readonly awayEveryMs?: number
  readonly clock: Clock
  readonly log: Log
  readonly limits: Pick<UpstreamLimits, 'suspectEveryMs' | 'hurryEveryMs'>
  readonly random?: () => number
  /** What else people should know, such as a credential that has expired. */
  readonly note: () => string | undefined
}

export class Checker implements Reachability {
  readonly #parts: Parts
  readonly #listeners = new Set<(state: ReachabilityState) => void>()
  #judgement: Judgement
  /** What the log says last. */
  #told: ReachabilityState | undefined
  #probing: Promise<Sign> | undefined
  #running = false
  /** The probe that is under way asks by a credential or at an address that are used no more. */
  #isStale = false
  #cancelNext: () => void = () => {}
  #dueAt = 0
  /** When traffic last made a probe come before its time. */
  #hurriedAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
    this.#judgement = firstJudgement(parts.clock.now())
  }

  get state(): ReachabilityState {
    return this.#judgement.state
  }

  get why(): string {
    return [this.#judgement.why, this.#parts.note() ?? ''].filter((one) => one !== '').join('; ')
  }

  get sinceMs(): number {
    return this.#judgement.sinceMs
  }

  get heardAt(): number {
    return this.#judgement.heardAt
  }

  get refusesEdge(): boolean {
    return this.#judgement.refusesEdge
  }

  get limitMs(): number {
    return limitMsOf(this.#judgement)
  }

  suspect(why: string): void {
    this.#take({ kind: 'traffic failed', why })
    this.#hurry()
  }

  observe(listener: (state: ReachabilityState) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async probe(): Promise<boolean> {
    this.probeNow()
    return (await this.#probing)?.kind === 'probe answered'
  }

  /** A probe that is under way answers for this one too. */
  probeNow(): void {
    if (this.#running && this.#probing === undefined) void this.#round()
  }

  /** Another credential, or other addresses: what a probe under way finds does not count, and the next one follows it. */
  probeAnew(): void {
    this.#isStale = this.#probing !== undefined
    this.probeNow()
  }

  /** The first failure is looked into at once; a line on which everything fails is not probed as often as it fails. */
  #hurry(): void {
    if (!this.#running || this.#probing !== undefined) return
    const { clock, limits } = this.#parts
    const nowMs = clock.steady()
    const leftMs = this.#hurriedAt + limits.hurryEveryMs - nowMs
    if (leftMs > 0) {
      if (this.#dueAt > nowMs + leftMs) this.#schedule(leftMs, () => this.#hurry())
      return
    }
    this.#hurriedAt = nowMs
    this.probeNow()
  }

  #schedule(waitMs: number, then: () => void): void {
    const { clock } = this.#parts
    this.#cancelNext()
    this.#dueAt = clock.steady() + waitMs
    this.#cancelNext = clock.setTimer(waitMs, then)
  }

  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    this.#running = true
    this.probeNow()
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    this.#running = false
    this.#cancelNext()
  }

  async #round(): Promise<void> {
    this.#cancelNext()
    this.#isStale = false
    this.#probing = this.#parts.probe()
    const sign = await this.#probing
    this.#probing = undefined
    if (!this.#running) return
    if (this.#isStale) return await this.#round()
    this.#take(sign)
    const { everyMs, awayEveryMs = everyMs, limits, random = Math.random } = this.#parts
    const hastes = { reachable: everyMs, suspect: limits.suspectEveryMs, unreachable: awayEveryMs }
    const waitMs = Math.min(hastes[this.state], everyMs)
    // A fleet that lost its API server at one moment must not come back to it in step.
    this.#schedule(waitMs * (0.75 + random() / 4), () => this.probeNow())
  }

  #take(sign: Sign): void {
    const { clock, log } = this.#parts
    const before = this.#judgement
    this.#judgement = judge(before, sign, { steadyMs: clock.steady(), nowMs: clock.now() })
    if (this.state === before.state) return
    const fields = { why: this.why, before: before.state }
    // A moment of doubt is no news, nor is its end: only what was told is taken back.
    if (this.state === 'suspect' || this.state === this.#told) log.debug(`upstream.${this.state}`, fields)
    else if (this.state === 'reachable') log.info('upstream.reachable', fields)
    else log.warn('upstream.unreachable', fields)
    if (this.state !== 'suspect') this.#told = this.state
    for (const listener of this.#listeners) listener(this.state)
  }
}
