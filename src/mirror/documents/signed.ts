/**
 * What a hub tells its edges of the documents of its cluster: looked at here once for all of them, and told when anything of it is
 * other than before. Discovery is looked at by its own mirror, which hears of definitions at once; the rest every minute.
 */
import { Bell } from '../../base/bell.ts'
import type { Clock } from '../../base/clock.ts'
import { type Reachability, Unreachable } from '../../upstream/upstream.ts'
import type { DocumentStore } from './documentstore.ts'
import type { Fetcher } from './fetcher.ts'
import { lookedAtForSigns, signsOf } from './signs.ts'

/** Ten KB from next door, in the place of as much for each edge. */
const lookMs = 60_000

type Parts = {
  readonly documentStore: DocumentStore
  readonly fetcher: Fetcher
  readonly reachability: Reachability
  readonly clock: Clock
}

export class SignedDocuments {
  readonly #parts: Parts
  readonly #listeners = new Set<() => void>()
  #signs: readonly Buffer[] = []
  #making: Promise<void> = Promise.resolve()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** As they travel; empty until anything is known. */
  get signs(): readonly Buffer[] {
    return this.#signs
  }

  /** Hears that they are others; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { documentStore, reachability, clock } = this.#parts
    const bell = new Bell(clock)
    const stops = [
      documentStore.observe(() => this.#make()),
      reachability.observe((state) => {
        if (state === 'reachable') bell.ring()
      }),
    ]
    while (!signal.aborted) {
      if (reachability.state === 'reachable') await this.#look(signal)
      await bell.wait(signal, lookMs)
    }
    for (const stop of stops) stop()
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { fetcher } = this.#parts
    try {
      for (const { place, accept } of lookedAtForSigns)
        if (!signal.aborted) await fetcher.fetch({ place, accept, basis: '' })
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
    }
  }

  /** One after the other: what was read first must not be told last. */
  #make(): void {
    this.#making = this.#making.then(async () => {
      const signs = await signsOf(this.#parts.documentStore)
      const isSame =
        signs.length === this.#signs.length && signs.every((sign, at) => sign.equals(this.#signs[at] ?? sign))
      if (isSame) return
      this.#signs = signs
      for (const listener of [...this.#listeners]) listener()
    })
  }
}
