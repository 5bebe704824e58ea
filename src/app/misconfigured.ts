/** What is configured so that it cannot work: said once in the log, and in `ake status` for as long as it is so. */
import type { Log } from '../base/log.ts'

/** More than an operator reads at once: a crowd of unknown certificates is one fault, many times. */
const causesMax = 64

/** Hears of a cause what is wrong and what to do about it, in one sentence; undefined: nothing any more. */
export type TellMisconfigured = (cause: string, sentence: string | undefined) => void

export class Misconfigured {
  readonly #log: Log
  readonly #sentences = new Map<string, string>()

  constructor({ log }: { readonly log: Log }) {
    this.#log = log
  }

  get all(): readonly string[] {
    return [...this.#sentences.values()]
  }

  readonly tell: TellMisconfigured = (cause, sentence) => {
    const before = this.#sentences.get(cause)
    if (before === sentence) return
    if (sentence === undefined) {
      this.#sentences.delete(cause)
      return
    }
    if (before === undefined && this.#sentences.size >= causesMax) return
    this.#sentences.set(cause, sentence)
    this.#log.warn('edge.misconfigured', { why: sentence })
  }
}
