/**
 * Names of shared bodies to which no later frame refers, until the index hears of them. They are released together: each is a row anywhere
 * in the index, and a page of it that changes is written as a whole.
 */
import type { Clock } from '../base/clock.ts'

/** Meanwhile bodies that nothing else holds keep their room on the disk: so many, so much, or for so long. */
const releaseNamesMax = 4_096
const releaseBytesMax = 8 * 1024 * 1024
const releaseMsMax = 60_000

type Parts = {
  readonly clock: Clock
  /** There are enough: the next round may take them. */
  readonly many: () => void
  /** The first of them has waited for long enough. */
  readonly late: () => void
}

export class ReleasedNames {
  readonly #parts: Parts
  /** Names that no frame from this sequence on refers to, in the order in which they were released. */
  #released: { readonly name: number; readonly sequence: number }[] = []
  #cancelWait: (() => void) | undefined
  #isLate = false
  /** How much the log had written when some were last taken. */
  #bytesAtTake = 0
  #isOver = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  add(name: number, sequence: number): void {
    this.#released.push({ name, sequence })
    this.#wait()
  }

  /** Those that cannot go yet go with the next. */
  #wait(): void {
    if (this.#isOver || this.#released.length === 0) return
    const { clock, many, late } = this.#parts
    this.#cancelWait ??= clock.setTimer(releaseMsMax, () => {
      this.#isLate = true
      late()
    })
    if (this.#released.length === releaseNamesMax) many()
  }

  /** Whether it is worth the pages that it writes; `bytes` is how much the log has written. */
  isDue(bytes: number): boolean {
    if (this.#isLate || this.#released.length >= releaseNamesMax) return true
    return bytes - this.#bytesAtTake >= releaseBytesMax
  }

  /** What frames behind this sequence no longer refer to. */
  take(sequence: number, bytes: number): number[] {
    this.#cancelWait?.()
    this.#cancelWait = undefined
    this.#isLate = false
    this.#bytesAtTake = bytes
    const later = this.#released.findIndex((one) => one.sequence > sequence)
    const released = this.#released.splice(0, later < 0 ? this.#released.length : later)
    this.#wait()
    return released.map(({ name }) => name)
  }

  /** Those that are not taken go at the next start. */
  stop(): void {
    this.#isOver = true
    this.#cancelWait?.()
  }
}
