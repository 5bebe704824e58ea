/** Chance that can be repeated: the same seed, the same choices. */

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** From 0 up to, but without, 1; mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
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
