/** Chance that can be repeated: the same seed gives the same numbers, so that a test which prints its seed can be run again as it was. */

/** Numbers from 0 up to, but without, 1 (mulberry32). */
export function chanceOf(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A whole number from 0 up to, but without, the limit. */
export type SeededRandom = (below: number) => number

export function seeded(seed: number): SeededRandom {
  const chance = chanceOf(seed)
  return (below) => Math.floor(chance() * below)
}
