/**
 * The epoch of the cluster, as hubs agree on it. A cluster that was put back to an earlier state gives out versions again that
 * meant something else before: versions are compared within an epoch only, and each time that is noticed a greater one begins.
 * It is kept with the state, so that every replica has the same one, after a restart too. Its number is the time at which it
 * began, in seconds: a Secret is put back with its cluster, and must not have a number given out twice.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import { reasonOf, Unavailable, UsageError } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import type { StateStore } from './keptstate.ts'
import { epochIn, epochTexts, type HubEpoch, nextEpoch, type StateTexts } from './state.ts'

type Parts = { readonly store: StateStore; readonly clock: Clock; readonly log: Log }

/** Which process noticed that the cluster was put back: this one, or another one on the same state. */
type Noticed = 'here' | 'elsewhere'

/** How late a hub hears what another has noticed and it has not: until then edges of the new epoch are sent away. */
const lookEveryMs = 60_000
/** Hubs that notice at the same time: each loses to one that got further. */
const triesMax = 5
/** How far the cluster is, is written down this often where that outlives it. */
const noteEveryMs = 600_000

export class KeptEpoch {
  readonly #parts: Parts
  readonly #listeners = new Set<(epoch: HubEpoch, noticed: Noticed) => void>()
  #current: HubEpoch
  /** The newest version that was written down; 0: none was. */
  #noted: number
  #notedAt: number
  #told = ''

  private constructor(parts: Parts, texts: StateTexts) {
    this.#parts = parts
    this.#current = epochIn(texts, parts.store.name)
    this.#noted = newestIn(texts)
    this.#notedAt = parts.clock.steady()
  }

  /** The state is there already. */
  static async open(parts: Parts): Promise<KeptEpoch> {
    const stored = await parts.store.read()
    if (stored === undefined) throw new UsageError(`the hub's state in ${parts.store.name} is gone: restore it`)
    return new KeptEpoch(parts, stored.texts)
  }

  get current(): HubEpoch {
    return this.#current
  }

  /** Hears of every epoch that begins. */
  observe(listener: (epoch: HubEpoch, noticed: Noticed) => void): void {
    this.#listeners.add(listener)
  }

  /** How far the cluster is when this process begins: it was put back if it was further before. */
  async begin(version: number): Promise<void> {
    if (version < this.#noted) await this.raise(this.#noted)
  }

  /** The cluster was put back, and everything up to this version is lost. Never rejects: what cannot be written is, later. */
  async raise(lost: number): Promise<void> {
    const { clock, log } = this.#parts
    const before = this.#current.number
    await this.declare(lost).catch((error: unknown) => {
      log.error('hub.epoch', { why: reasonOf(error) })
      this.#adopt(nextEpoch(before, lost, clock.now()), 'here')
    })
  }

  /** The same, where it counts once it is written. */
  async declare(lost: number): Promise<void> {
    const { store, clock } = this.#parts
    const before = this.#current.number
    for (let tries = 0; tries < triesMax; tries++) {
      const stored = await store.read()
      if (stored === undefined) break
      const known = epochIn(stored.texts, store.name)
      const next = nextEpoch(before, lost, clock.now())
      // Another hub may have been first.
      const isKnown = known.number > before
      if (!isKnown && !(await store.replace(stored, { ...stored.texts, ...epochTexts(next), ...newestText(0) })))
        continue
      this.#noted = 0
      this.#adopt(isKnown ? known : next, 'here')
      return
    }
    throw new Unavailable(`the epoch cannot be written to ${store.name}: try again`)
  }

  /** `newest` answers how far the cluster is now. */
  async run(newest: () => number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { clock, store } = this.#parts
      await sleep(clock, lookEveryMs, signal)
      // An API server that is away would hold up the end.
      if (signal.aborted && store.outlivesCluster !== true) return
      const isDue = signal.aborted || clock.steady() - this.#notedAt >= noteEveryMs
      await this.look(isDue ? newest() : 0)
    }
  }

  /** Takes over what another hub has noticed, and writes what could not be written before. */
  async look(newest = 0): Promise<void> {
    const { store, clock, log } = this.#parts
    try {
      const stored = await store.read()
      if (stored === undefined) return
      const known = epochIn(stored.texts, store.name)
      if (known.number > this.#current.number) this.#adopt(known, 'elsewhere')
      const epoch = known.number < this.#current.number ? epochTexts(this.#current) : {}
      const further = store.outlivesCluster === true && newest > this.#noted ? newestText(newest) : {}
      const written = { ...epoch, ...further }
      if (Object.keys(written).length === 0) return
      if (!(await store.replace(stored, { ...stored.texts, ...written }))) return
      this.#noted = Math.max(this.#noted, newest)
      this.#notedAt = clock.steady()
      this.#told = ''
    } catch (error) {
      const why = reasonOf(error)
      if (why !== this.#told) log.error('hub.epoch', { why })
      this.#told = why
    }
  }

  #adopt(epoch: HubEpoch, noticed: Noticed): void {
    if (epoch.number <= this.#current.number) return
    this.#current = epoch
    this.#parts.log.warn('hub.epoch', { epoch: epoch.number, lost: epoch.lost, noticed })
    for (const listener of this.#listeners) listener(epoch, noticed)
  }
}

function newestText(version: number): StateTexts {
  return { newest: String(version) }
}

function newestIn({ newest = '0' }: StateTexts): number {
  const found = Number(newest)
  return Number.isSafeInteger(found) ? found : 0
}
