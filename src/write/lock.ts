/** One writer per key: a second write waits until the first one's commit is decided, so every write reads committed state. */

import { tooManyRequests } from '../kube/status.ts'

const waitersMax = 1000 // a queue this long on one object means clients in a loop; more would only hold their bodies

export class KeyLock {
  readonly #tails = new Map<string, { waiting: number; last: Promise<unknown> }>()

  /** Runs `work` when every earlier call for the key has ended, in order of arrival. */
  async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
    const tail = this.#tails.get(key)
    if (tail === undefined) {
      const entry: { waiting: number; last: Promise<unknown> } = { waiting: 1, last: Promise.resolve() }
      this.#tails.set(key, entry)
      return this.#run(key, entry, work)
    }
    if (tail.waiting >= waitersMax) throw tooManyRequests(`too many writes are waiting for ${key}`, 1)
    tail.waiting++
    return this.#run(key, tail, work)
  }

  /** How many keys are held: nothing may be left behind. */
  get held(): number {
    return this.#tails.size
  }

  #run<T>(key: string, entry: { waiting: number; last: Promise<unknown> }, work: () => Promise<T>): Promise<T> {
    const mine = entry.last.then(work)
    entry.last = mine.then(ignore, ignore).then(() => {
      entry.waiting--
      if (entry.waiting === 0) this.#tails.delete(key)
    })
    return mine
  }
}

function ignore(): void {}
