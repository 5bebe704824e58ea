/** How long one request may wait: until its caller gives up, or its head has taken too long. Afterwards only the caller counts. */
import type { Clock } from '../base/clock.ts'
import { Unreachable } from './upstream.ts'

type Parts = {
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  readonly headMsMax?: number | undefined
}

export class Patience {
  readonly #controller = new AbortController()
  readonly #callerSignal: AbortSignal | undefined
  readonly #cancelTimer: () => void
  #why = 'given up'
  /** The head took too long, as opposed to a caller who left. */
  timedOut = false

  constructor({ clock, signal, headMsMax }: Parts) {
    this.#callerSignal = signal
    this.#cancelTimer =
      headMsMax === undefined
        ? () => {}
        : clock.setTimer(headMsMax, () => {
            this.timedOut = true
            this.#end(`no answer within ${headMsMax} ms`)
          })
    if (signal?.aborted) this.#leave()
    else signal?.addEventListener('abort', this.#leave, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** What to reject with once the signal has fired. */
  error(sent: boolean): Unreachable {
    return new Unreachable(this.#why, sent)
  }

  /** The head is there: from now on it may take as long as it likes. */
  answered(): void {
    this.#cancelTimer()
  }

  /** The request is over: nothing is left behind. */
  done(): void {
    this.#cancelTimer()
    this.#callerSignal?.removeEventListener('abort', this.#leave)
  }

  /** Waits for `promise` as long as this lasts. */
  async wait<T>(promise: Promise<T>): Promise<T> {
    if (this.signal.aborted) throw this.error(false)
    let stop = () => {}
    const ended = new Promise<never>((_, reject) => {
      stop = () => reject(this.error(false))
      this.signal.addEventListener('abort', stop, { once: true })
    })
    try {
      return await Promise.race([promise, ended])
    } finally {
      this.signal.removeEventListener('abort', stop)
    }
  }

  readonly #leave = (): void => this.#end('the caller gave up')

  #end(why: string): void {
    if (this.signal.aborted) return
    this.#why = why
    this.done()
    this.#controller.abort()
  }
}
