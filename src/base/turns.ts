/**
 * Long work done in short pieces: a request with such work takes a turn before each piece. There is one turn in each round
 * of the event loop, however many have work, so that other requests wait for one piece and not for one of each of them.
 */

/** How long one piece may take, in ms: a request needs a few rounds of the loop, and is to wait less than 50 ms in all. */
export const pieceMsMax = 5

export class Turns {
  /** Each in the order in which they asked. */
  readonly #beginning: (() => void)[] = []
  readonly #goingOn: (() => void)[] = []
  readonly #later: (fn: () => void) => void
  #wasBeginning = false

  /** `later` calls in the next round of the loop. */
  constructor(later: (fn: () => void) => void = setImmediate) {
    this.#later = later
  }

  /** For work that has begun. */
  take(): Promise<void> {
    return this.#wait(this.#goingOn)
  }

  /** For work that begins: every other turn is theirs, so that little work does not wait for all that is long. */
  takeFirst(): Promise<void> {
    return this.#wait(this.#beginning)
  }

  #wait(queue: (() => void)[]): Promise<void> {
    return new Promise((resolve) => {
      queue.push(resolve)
      if (this.#beginning.length + this.#goingOn.length === 1) this.#later(this.#next)
    })
  }

  readonly #next = (): void => {
    const isBeginning = this.#beginning.length > 0 && !(this.#wasBeginning && this.#goingOn.length > 0)
    this.#wasBeginning = isBeginning
    const first = (isBeginning ? this.#beginning : this.#goingOn).shift()
    if (this.#beginning.length + this.#goingOn.length > 0) this.#later(this.#next)
    first?.()
  }
}

/** Those of the whole process, which has one loop. */
export const turns = new Turns()
