/**
 * How much an edge may have its hub do: subscriptions and comparisons cost the hub more than the edge that asks for them, and a hostile
 * edge could ask without end. A link earns by the time, up to a limit, and what it asks for is taken off that.
 */
import { LinkFault } from '../frames/bytes.ts'
import type { SessionLimits } from './limits.ts'

export class HubLabour {
  readonly #limits: Pick<SessionLimits, 'labourMax' | 'labourPerMs'>
  #left: number
  #at: number

  constructor(limits: Pick<SessionLimits, 'labourMax' | 'labourPerMs'>, now: number) {
    this.#limits = limits
    this.#left = limits.labourMax
    this.#at = now
  }

  /** Throws `LinkFault` where the edge asks for more than it may. */
  spend(units: number, now: number): void {
    const { labourMax, labourPerMs } = this.#limits
    const more = Math.max(0, now - this.#at) * labourPerMs
    this.#left = Math.min(labourMax, this.#left + more) - units
    this.#at = now
    if (this.#left < 0) throw new LinkFault('asks for more than a link may')
  }
}
