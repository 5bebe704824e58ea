/**
 * How much an edge may have its hub do: subscriptions, comparisons and the packing of blocks cost the hub more than the edge that asks for
 * them, and a hostile edge could ask without end. A link earns by the time, up to a limit, and what it asks for is taken off that.
 */
import { LinkFault } from '../frames/bytes.ts'

export class HubLabour {
  readonly #max: number
  readonly #perMs: number
  #left: number
  #at: number

  constructor({ max, perMs }: { readonly max: number; readonly perMs: number }, now: number) {
    this.#max = max
    this.#perMs = perMs
    this.#left = max
    this.#at = now
  }

  /** Throws `LinkFault` where the edge asks for more than it may. */
  spend(units: number, now: number): void {
    if (this.draw(units, now) < 0) throw new LinkFault('asks for more than a link may')
  }

  /** What is left then: less than nothing has to be earned before there is more. */
  draw(units: number, now: number): number {
    const more = Math.max(0, now - this.#at) * this.#perMs
    this.#left = Math.min(this.#max, this.#left + more) - units
    this.#at = now
    return this.#left
  }

  /** When there is something left, for one that has nothing. */
  get earnedAt(): number {
    return this.#at + Math.max(0, -this.#left) / this.#perMs
  }
}
