/** Waits until one copy shows what a write did. */
import type { Clock } from '../../base/clock.ts'
import type { Cache } from '../../cache/cache.ts'
import type { Effect } from './effects.ts'

export class Showing {
  readonly #cache: Cache
  readonly #clock: Clock
  /** The version that has to be reached: of one that wrote nothing new no event will come. */
  readonly #version: number
  /** Whether the copy still shows the object as it was, by key. */
  readonly #pending = new Map<string, () => boolean>()

  constructor(cache: Cache, effects: readonly Effect[], clock: Clock) {
    this.#cache = cache
    this.#clock = clock
    let version = 0
    for (const effect of effects) {
      if (effect.kind === 'unknown') continue
      const { key } = effect
      const item = cache.peek(key)
      if (effect.kind === 'gone') {
        const uid = effect.uid === '' ? item?.uid : effect.uid
        this.#pending.set(key, () => {
          const now = cache.peek(key)
          return now !== undefined && now.uid === uid
        })
        continue
      }
      if ((item?.version ?? 0) < effect.version) version = Math.max(version, effect.version)
      if (effect.kind === 'changed') {
        this.#pending.set(key, () => {
          const now = cache.peek(key)
          return now !== undefined && now.uid === effect.uid && now.version <= effect.version
        })
      }
    }
    this.#version = version
  }

  /** False if that takes longer than until `endMs`, by the steady clock. */
  async within(endMs: number): Promise<boolean> {
    const leftMs = () => Math.max(0, endMs - this.#clock.steady())
    // What was gone before the copy had heard of it may still be on its way: first as far as the API server was.
    if (this.#version > 0 && !(await this.#cache.progress.reach(this.#version, leftMs(), this.#clock))) return false
    for (const [key, isPending] of this.#pending) if (!isPending()) this.#pending.delete(key)
    if (this.#pending.size === 0) return true
    return new Promise((resolve) => {
      const end = (shown: boolean) => {
        cancel()
        stop()
        resolve(shown)
      }
      const cancel = this.#clock.setTimer(leftMs(), () => end(false))
      const stop = this.#cache.observe(({ key }) => {
        if (this.#pending.get(key)?.() === false && this.#pending.delete(key) && this.#pending.size === 0) end(true)
      })
    })
  }
}
