/**
 * Which sources show tickets that are worth something. One that is not costs the hub a full handshake, and is found out at the end of that,
 * or never, where the client leaves or says no more; so a source has so many on trial, and beyond that its clients wait in the line for full
 * handshakes, whatever they show.
 */
import type { Clock } from '../../base/clock.ts'
import type { HubSocketLimits } from './limits.ts'

type TrustLimits = Pick<HubSocketLimits, 'ticketsOnTrialMax' | 'worthlessPerSecond' | 'sourcesMax'>

type Trial = { underWay: number; worthless: number; at: number }

export class TicketTrust {
  readonly #clock: Clock
  readonly #limits: TrustLimits
  readonly #trials = new Map<string, Trial>()

  constructor(clock: Clock, limits: TrustLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  trusts(source: string): boolean {
    const trial = this.#trials.get(source)
    return trial === undefined || trial.underWay + this.#worthless(trial) < this.#limits.ticketsOnTrialMax
  }

  begin(source: string): void {
    this.#trial(source).underWay++
  }

  end(source: string, isResumed: boolean): void {
    const trial = this.#trial(source)
    trial.worthless = this.#worthless(trial) + (isResumed ? 0 : 1)
    trial.at = this.#clock.steady()
    trial.underWay--
    if (trial.underWay === 0 && trial.worthless === 0) this.#trials.delete(source)
  }

  /** What was worthless is forgotten by the time. */
  #worthless({ worthless, at }: Trial): number {
    return Math.max(0, worthless - ((this.#clock.steady() - at) * this.#limits.worthlessPerSecond) / 1_000)
  }

  /** Beyond the limit the source goes that was first seen longest ago and has none under way. */
  #trial(source: string): Trial {
    const known = this.#trials.get(source)
    if (known !== undefined) return known
    const trial = { underWay: 0, worthless: 0, at: this.#clock.steady() }
    if (this.#trials.size >= this.#limits.sourcesMax)
      for (const [other, { underWay }] of this.#trials) {
        if (underWay > 0) continue
        this.#trials.delete(other)
        break
      }
    this.#trials.set(source, trial)
    return trial
  }
}
