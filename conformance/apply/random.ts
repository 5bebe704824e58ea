/** Chance that can be repeated: the same seed, the same choices. */

import { chanceOf } from '../../src/base/seeded.test-support.ts'

export class Random {
  /** From 0 up to, but without, 1. */
  readonly next: () => number

  constructor(seed: number) {
    this.next = chanceOf(seed)
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T
  }

  /** Some of them, at least one, in any order. */
  some<T>(from: readonly T[], most = from.length): T[] {
    const left = [...from]
    const count = 1 + this.below(Math.min(most, left.length))
    return Array.from({ length: count }, () => left.splice(this.below(left.length), 1)[0] as T)
  }

  /** By weight. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let at = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, choice] of choices) {
      at -= weight
      if (at < 0) return choice
    }
    return (choices.at(-1) as readonly [number, T])[1]
  }
}
