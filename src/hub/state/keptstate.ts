/**
 * The state of a hub as its process holds it: opened or made at the start, and followed. The ticket key has no overlap of old
 * and new: one hub rotates it, every replica takes it over from where the state is kept, and edges shake hands in full once.
 */
import { X509Certificate } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import { reasonOf, Unavailable, UsageError } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { authoritiesOf } from './authorities.ts'
import { type HubState, makeState, makeTickets, readState, type StateTexts, textsOf, ticketTexts } from './state.ts'

/** Where a state is kept. What goes wrong is `UsageError` (the operator's) or `Unavailable`. */
export interface StateStore {
  /** For people. */
  readonly name: string
  /** Undefined: there is none, and never was. */
  read(): Promise<StoredState | undefined>
  /** False: another process was first. */
  create(texts: StateTexts): Promise<boolean>
  replace(before: StoredState, texts: StateTexts): Promise<boolean>
  /** It lies elsewhere than in the cluster: it is not put back with that. */
  readonly outlivesCluster?: boolean
}

export type StoredState = {
  readonly texts: StateTexts
  /** What it was when it was read: one that has changed since is not replaced. */
  readonly version: string
}

type Parts = { readonly store: StateStore; readonly clock: Clock; readonly log: Log }

/** As long as a ticket lives at most. */
const ticketDays = 7
const ticketMsMax = ticketDays * 24 * 3600 * 1000
/** How soon one process makes a key again, by its steady clock: replicas whose clocks are weeks apart would each find the key of the other too old. */
const rotationMsMin = 24 * 3600 * 1000
/** How long replicas may hold different ticket keys: an edge that moves then shakes hands in full, no more. */
const lookEveryMs = 10_000
/** Several processes start at once: each loses to one that got further. */
const opensMax = 5

export class KeptState {
  readonly #parts: Parts
  readonly #listeners = new Set<() => void>()
  #state: HubState
  #told = ''
  #rotatedAt = Number.NEGATIVE_INFINITY
  /** It was not there, and is now. */
  readonly isNew: boolean

  private constructor(parts: Parts, state: HubState, isNew: boolean) {
    this.#parts = parts
    this.#state = state
    this.isNew = isNew
  }

  static async open(parts: Parts): Promise<KeptState> {
    const { store, clock } = parts
    for (let made = false, opens = 0; opens < opensMax; opens++) {
      const stored = await store.read()
      if (stored !== undefined) {
        const state = readState(stored.texts, store.name)
        refuseExpired(state, store.name, clock.now())
        return new KeptState(parts, state, made)
      }
      // What was made is read again: it counts as it lies there.
      made = await store.create(textsOf(makeState(clock.now())))
    }
    throw new Unavailable(`the hub's state in ${store.name} can neither be read nor made: try again`)
  }

  get current(): HubState {
    return this.#state
  }

  /** Hears that there is another ticket key, or another authority; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.look()
      await sleep(this.#parts.clock, lookEveryMs, signal)
    }
  }

  /** Takes over what has changed, and rotates what is due. What cannot be read or written leaves all as it is. */
  async look(): Promise<void> {
    const { store, clock, log } = this.#parts
    try {
      let stored = await store.read()
      if (stored === undefined) throw new UsageError(`the hub's state in ${store.name} is gone: restore it`)
      let state = this.#checked(stored.texts)
      // A clock that was set back a long way counts as well, or the key would live until that time comes again.
      const isDue = Math.abs(clock.now() - state.tickets.madeAtMs) >= ticketMsMax
      if (isDue && clock.steady() - this.#rotatedAt >= rotationMsMin) {
        const tickets = makeTickets(clock.now())
        if (await store.replace(stored, { ...stored.texts, ...ticketTexts(tickets) })) {
          this.#rotatedAt = clock.steady()
          state = { ...state, tickets }
        } else {
          stored = await store.read()
          if (stored !== undefined) state = this.#checked(stored.texts)
        }
      }
      this.#adopt(state)
      this.#told = ''
    } catch (error) {
      const why = reasonOf(error)
      if (why !== this.#told) log.error('hub.state', { why })
      this.#told = why
    }
  }

  #checked(texts: StateTexts): HubState {
    const { name } = this.#parts.store
    const state = readState(texts, name)
    if (state.sessionIdContext !== this.#state.sessionIdContext || !isContinued(this.#state, state))
      throw new UsageError(`the hub's state in ${name} is another one now: restart this hub, or restore it`)
    if (state.generation < this.#state.generation)
      throw new UsageError(
        `the hub's state in ${name} was put back to before its authority was changed: restore the later one, or restart this hub and issue edges new credentials`,
      )
    return state
  }

  #adopt(state: HubState): void {
    const { log } = this.#parts
    const isOtherKey = !state.tickets.key.equals(this.#state.tickets.key)
    const isOtherAuthority = state.generation !== this.#state.generation
    if (!isOtherKey && !isOtherAuthority) return
    this.#state = state
    if (isOtherKey) log.info('hub.tickets', { made: new Date(state.tickets.madeAtMs).toISOString() })
    if (isOtherAuthority) {
      const trusted = authoritiesOf(state).map(({ role, hash }) => `${role} ${hash}`)
      log.info('hub.authorities', { generation: state.generation, trusted: trusted.join(', ') })
    }
    for (const listener of this.#listeners) listener()
  }
}

/** Some authority counts in both: no state that was made anew. A hub that slept through two changes begins anew. */
function isContinued(before: HubState, after: HubState): boolean {
  const known = new Set(authoritiesOf(before).map(({ hash }) => hash))
  return authoritiesOf(after).some(({ hash }) => known.has(hash))
}

function refuseExpired({ ca }: HubState, where: string, now: number): void {
  const end = new X509Certificate(ca.cert).validToDate
  if (end.getTime() >= now) return
  throw new UsageError(
    `the authority in ${where} expired on ${end.toISOString()}: begin with a new state, and issue every edge a new credential`,
  )
}
