/**
 * One check of one object, in turns: what it has cost so far, and when others are to be let in. A check is a pure
 * function that knows nothing of turns; where it takes too long it is broken off and begun again, and what its patterns
 * have answered so far is kept for it.
 */

import { setImmediate } from 'node:timers/promises'
import { matches, stepsOf } from './pattern.ts'

/** The longest a check goes on before others are let in; no request should wait 50 ms for another caller's object. */
const TURN_MAX_MS = 20
/** Below this, answers of patterns are not worth keeping: they cost 15 ms in the worst case. */
const UNKEPT_STEPS = 1_000_000
/** Looking at the clock after every text would cost more than most texts do. */
const LOOK_STEPS = 100_000
/** Turns that the patterns of one object may take, a second in all: 3 MB of names take two or three. */
const TURNS_MAX = 50

class TurnOver extends Error {}

export class Effort {
  readonly #now: () => number
  readonly #answers = new Map<string, Map<string, boolean | undefined>>()
  #steps = 0
  #looked = 0
  #began: number | undefined
  #turns = 1

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** What is done from now on counts for this turn. */
  begin(): void {
    this.#began ??= this.#now()
  }

  /** A turn begins with the first thing that was not done in an earlier one. */
  isOver(): boolean {
    const now = this.#now()
    this.#began ??= now
    return now - this.#began > TURN_MAX_MS
  }

  /** Others are let in. */
  async rest(): Promise<void> {
    await setImmediate()
    this.#began = undefined
    this.#turns++
  }

  /** Whether a text matches; undefined where that would take too long to find out. Throws for what is no pattern. */
  matches(source: string, text: string): boolean | undefined {
    const known = this.#answers.get(source)
    if (known?.has(text)) return known.get(text)
    const steps = stepsOf(source, text)
    this.#steps += steps
    const answer = this.#turns > TURNS_MAX ? undefined : matches(source, text)
    if (this.#steps < UNKEPT_STEPS) return answer
    if (known === undefined) this.#answers.set(source, new Map([[text, answer]]))
    else known.set(text, answer)
    this.#looked += steps
    if (this.#looked > LOOK_STEPS) {
      this.#looked = 0
      if (this.#turns <= TURNS_MAX && this.isOver()) throw new TurnOver()
    }
    return answer
  }
}

/** Begins a check again and again until it comes to its end within a turn. */
export async function inTurns<T>(effort: Effort, check: () => T): Promise<T> {
  for (;;) {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof TurnOver)) throw error
    }
    await effort.rest()
  }
}
