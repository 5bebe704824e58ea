/**
 * The watches that are open here, so that a caller without the right to one any more does not go on hearing: each is asked
 * about every few minutes, and at once when roles or bindings are seen to change. A caller that is told no gets the end of
 * its stream, and its next watch meets the refusal. Only a no of the API server ends one: not a review that failed, which is
 * soon tried again where roles have changed, nor a cloud that is away.
 */
import { backoffMs } from '../base/backoff.ts'
import { type Clock, sleep } from '../base/clock.ts'
import type { Identity, Reachability } from '../upstream/upstream.ts'
import type { Verdict } from './access.ts'
import type { Changes } from './changes.ts'
import { everywhere } from './changes.ts'
import type { Question } from './question.ts'

const everyMs = 300_000 // where changes are not seen: as long as the API server keeps what a webhook allowed
const everySpread = 0.4 // of it, so that the watches of a node do not all come at once
const retryMs = 60_000 // after a review that failed, at most
const retryChangedMs = 2_200 // the same for the first one after a change; what failed is not asked within a second, half of this
const lookEveryMs = 5_000
const earlyMs = 10 // a timer may fire a moment before its time
const spreadMs = 500 // every edge of a cluster sees the same change
const lagMs = 11_000 // the API server's authorizer may be behind us: a second look, when what it said at once is old
const atOnceMax = 8 // reads that wait for a decision have the other places

type Watch = { readonly end: () => void }

/** Watches of one credential that ask for the same. */
type Group = {
  readonly identity: Identity
  readonly question: Question
  readonly watches: Set<Watch>
  dueAt: number
  /** When it is looked at once more after a change. */
  againAt: number
  /** Roles have changed, and the last word on it has not been heard since. */
  isChanged: boolean
  /** Reviews that failed in a row. */
  failures: number
}

type Parts = {
  readonly recheck: (identity: Identity, question: Question) => Promise<Verdict>
  readonly keyOf: (identity: Identity) => string
  readonly changes: Changes
  readonly reachability: Reachability
  readonly clock: Clock
  readonly random?: () => number
}

export class OpenWatches {
  readonly #parts: Parts
  readonly #random: () => number
  readonly #groups = new Map<string, Group>()
  readonly #queue = new Set<Group>()
  #asking = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#random = parts.random ?? Math.random
    parts.changes.observe((namespace) => this.#changed(namespace))
  }

  /** `end` ends the stream; the answer says that it has ended. The administrator's own are not asked about. */
  add(identity: Identity, question: Question, end: () => void): () => void {
    if (identity.kind === 'edge') return () => {}
    const { keyOf, clock, changes } = this.#parts
    const key = `${keyOf(identity)} ${question.key}`
    const now = clock.steady()
    // What let it in was perhaps said before a change that was seen only now.
    const isUnsure = now - changes.since(question.namespace) < lagMs
    // What was judged here for a caller that is impersonated is the API server's to judge as soon as that is back.
    const dueAt = identity.kind === 'local' ? now : now + (isUnsure ? lagMs : this.#nextMs())
    const group = this.#groups.get(key) ?? newGroup(identity, question, dueAt)
    const watch = { end }
    group.dueAt = Math.min(group.dueAt, dueAt)
    this.#groups.set(key, group)
    group.watches.add(watch)
    return () => {
      group.watches.delete(watch)
      if (group.watches.size > 0 || this.#groups.get(key) !== group) return
      this.#groups.delete(key)
      this.#queue.delete(group)
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = this.#parts.reachability.observe(() => this.#look())
    signal.addEventListener('abort', stop, { once: true })
    while (!signal.aborted) {
      await sleep(this.#parts.clock, lookEveryMs, signal)
      if (!signal.aborted) this.#look()
    }
  }

  #changed(namespace: string): void {
    const { clock } = this.#parts
    const dueAt = clock.steady() + this.#random() * spreadMs
    const againAt = dueAt + lagMs
    let concerned = false
    for (const group of this.#groups.values()) {
      if (namespace !== everywhere && group.question.namespace !== namespace) continue
      group.dueAt = Math.min(group.dueAt, dueAt)
      group.againAt = againAt
      group.isChanged = true
      concerned = true
    }
    if (!concerned) return
    clock.setTimer(dueAt - clock.steady(), () => this.#look())
    clock.setTimer(againAt - clock.steady(), () => this.#look())
  }

  /** What is due while the cloud is away stays due. */
  #look(): void {
    if (this.#parts.reachability.state !== 'reachable') return
    const soon = this.#parts.clock.steady() + earlyMs
    for (const group of this.#groups.values()) if (group.dueAt <= soon) this.#queue.add(group)
    this.#next()
  }

  #next(): void {
    for (const group of this.#queue) {
      if (this.#asking >= atOnceMax) return
      this.#queue.delete(group)
      this.#asking++
      void this.#ask(group)
    }
  }

  async #ask(group: Group): Promise<void> {
    const { recheck, clock, reachability } = this.#parts
    // A change that comes while it is asked makes it due again.
    group.dueAt = Number.POSITIVE_INFINITY
    const verdict = await recheck(group.identity, group.question)
    this.#asking--
    const now = clock.steady()
    const isSure = verdict !== 'unknown'
    group.failures = isSure ? 0 : group.failures + 1
    if (isSure && now >= group.againAt - earlyMs) group.isChanged = false
    const waitMs = isSure ? this.#nextMs() : reachability.state === 'reachable' ? this.#retryMs(group) : 0
    group.dueAt = Math.min(group.dueAt, now + waitMs, group.againAt > now ? group.againAt : Number.POSITIVE_INFINITY)
    // The next look may be seconds away, and a caller that has lost the right hears on until then.
    if (!isSure && group.isChanged && waitMs > 0) clock.setTimer(waitMs, () => this.#look())
    if (verdict === 'denied' || verdict === 'unauthorized') for (const { end } of [...group.watches]) end()
    this.#next()
  }

  #retryMs({ isChanged, failures }: Group): number {
    const firstMs = isChanged ? retryChangedMs : retryMs
    return backoffMs(isChanged ? failures : 1, { firstMs, maxMs: retryMs, random: this.#random })
  }

  #nextMs(): number {
    return everyMs * (1 - everySpread / 2 + this.#random() * everySpread)
  }
}

function newGroup(identity: Identity, question: Question, dueAt: number): Group {
  return { identity, question, watches: new Set(), dueAt, againAt: 0, isChanged: false, failures: 0 }
}
