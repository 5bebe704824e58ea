/**
 * What interests weigh while some of them go, by what they hold alone and what others hold as well. Its share is for ranking:
 * twenty selectors over the same objects weigh no more than one. What an end frees is what counts in the end: nothing, as long
 * as others hold all of it.
 */
import type { SharedBytes } from '../cache/holdings.ts'

export type Weighed = {
  /** What it alone holds. */
  readonly bytes: number
  /** What others hold as well. */
  readonly shared: readonly SharedBytes[]
}

export class Weights {
  /** Those who still hold it, where some have gone. */
  readonly #left = new Map<SharedBytes, number>()

  readonly shareOf = ({ bytes, shared }: Weighed): number => {
    let sum = bytes
    for (const one of shared) sum += one.bytes / this.#leftOf(one)
    return sum
  }

  /** It goes: how many bytes go with it. */
  end(held: Weighed): number {
    for (const one of held.shared) this.#left.set(one, this.#leftOf(one) - 1)
    return this.broughtBy(held)
  }

  /** It stays after all. */
  keep({ shared }: Weighed): void {
    for (const one of shared) this.#left.set(one, this.#leftOf(one) + 1)
  }

  /** Of one that has gone: what no other holds. */
  broughtBy({ bytes, shared }: Weighed): number {
    let sum = bytes
    for (const one of shared) if (this.#leftOf(one) === 0) sum += one.bytes
    return sum
  }

  #leftOf(one: SharedBytes): number {
    return this.#left.get(one) ?? one.holders
  }
}
