/**
 * Long work done in short pieces: a request with such work takes a turn before each piece. There is one turn in each round
 * of the event loop, however many have work, so that other requests wait for one piece and not for one of each of them.
 * Turns go round by who asks: a caller that comes waits for a piece of each other one, and not for all that one of them wants.
 */

/** How long one piece may take, in ms: a request needs a few rounds of the loop, and is to wait less than 50 ms in all. */
export const pieceMsMax = 5

/** Under which name a caller takes its shares; undefined: the process itself. */
type Who = string | undefined

/** Who waits for a turn, one after the other, and what each waits with in the order in which it asked. */
class Round {
  readonly #waiting = new Map<Who, (() => void)[]>()

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  add(who: Who, go: () => void): void {
    const others = this.#waiting.get(who)
    if (others === undefined) this.#waiting.set(who, [go])
    else others.push(go)
  }

  next(): (() => void) | undefined {
    for (const [who, all] of this.#waiting) {
      const first = all.shift()
      // What it has left waits behind all others.
      this.#waiting.delete(who)
      if (all.length > 0) this.#waiting.set(who, all)
      return first
    }
    return undefined
  }
}

export class Turns {
  readonly #beginning = new Round()
  readonly #goingOn = new Round()
  readonly #later: (fn: () => void) => void
  #wasBeginning = false

  /** `later` calls in the next round of the loop. */
  constructor(later: (fn: () => void) => void = setImmediate) {
    this.#later = later
  }

  /** For work that has begun. */
  take(who?: Who): Promise<void> {
    return this.#wait(this.#goingOn, who)
  }

  /** For work that begins: every other turn is theirs, so that little work does not wait for all that is long. */
  takeFirst(who?: Who): Promise<void> {
    return this.#wait(this.#beginning, who)
  }

  #wait(round: Round, who: Who): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isEmpty) this.#later(this.#next)
      round.add(who, resolve)
    })
  }

  get #isEmpty(): boolean {
    return this.#beginning.isEmpty && this.#goingOn.isEmpty
  }

  readonly #next = (): void => {
    const isBeginning = !this.#beginning.isEmpty && !(this.#wasBeginning && !this.#goingOn.isEmpty)
    this.#wasBeginning = isBeginning
    const first = (isBeginning ? this.#beginning : this.#goingOn).next()
    if (!this.#isEmpty) this.#later(this.#next)
    first?.()
  }
}

/** Those of the whole process, which has one loop. */
export const turns = new Turns()
