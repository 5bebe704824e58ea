/**
 * Goes through all links a moment at a time, so that thousands of them delay nothing else. Asked for meanwhile it goes through them once more: what
 * changes faster than they can be gone through piles nothing up.
 */
import { pieceMsMax, turns } from '../../base/turns.ts'

type Parts<Link> = {
  readonly links: () => Iterable<Link>
  readonly look: (link: Link) => void
}

export class Sweep<Link> {
  readonly #parts: Parts<Link>
  #isRunning = false
  #isDueAgain = false

  constructor(parts: Parts<Link>) {
    this.#parts = parts
  }

  /** The first ones are looked at in this turn. */
  async run(): Promise<void> {
    this.#isDueAgain = true
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      while (this.#isDueAgain) {
        this.#isDueAgain = false
        await this.#once()
      }
    } finally {
      this.#isRunning = false
    }
  }

  async #once(): Promise<void> {
    const { links, look } = this.#parts
    let beganAt = performance.now()
    for (const link of [...links()]) {
      look(link)
      if (performance.now() - beganAt < pieceMsMax) continue
      await turns.take()
      beganAt = performance.now()
    }
  }
}
