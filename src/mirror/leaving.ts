/**
 * When an interest ends: unasked for a day, refused for good, or of something that no longer exists and that no caller has
 * asked for during minutes. Nothing ends while the cloud is away, nor what a client watches. What an option names stays, and is emptied where
 * another one would be refused for good.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { objectKey } from '../kube/resource.ts'
import { neverKept } from '../upstream/follow/follow.ts'
import { Source } from '../upstream/follow/source.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { covers, type Interest, scopeOfName } from './interest.ts'
import { mirrorLimits } from './mirror.ts'
import type { MirroredInterest } from './mirrored.ts'
import { isNode } from './records.ts'

/** How often it looks; what a restart forgets of a time is at most this, and what is written down less often. */
export const tickMs = 5_000
/** Namespaces asked for at one tick: a run of tests leaves hundreds. */
const namespacesPerTick = 10
/** One that exists is asked for no sooner than this again. */
const namespaceEveryMs = 10 * 60_000

/** A refusal that was not confirmed is asked about again after this: behind a hub it costs a question for each caller. */
const confirmEveryMs = 30_000

/**
 * Whether a refusal with this code is what the cloud really means, asked with the edge's own credential. `callers` have asked for it within a
 * day, the node left out: one of them may have a right to it that the edge cannot show now.
 */
export type ConfirmRefusal = (interest: Interest, code: number, callers: readonly string[]) => Promise<boolean>

type Parts = {
  readonly upstream: Upstream
  readonly clock: Clock
  readonly log: Log
  readonly confirm: ConfirmRefusal
  readonly end: (mirrored: MirroredInterest, why: string) => Promise<void>
  /** What is held of it goes, and it stays: its callers are passed on. */
  readonly empty: (mirrored: MirroredInterest) => Promise<void>
}

export class Leaving {
  readonly #parts: Parts
  /** When a namespace may be asked for next. */
  readonly #asksAt = new Map<string, number>()
  /** When the refusal of an interest may be asked about next. */
  readonly #confirmsAt = new WeakMap<MirroredInterest, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async tick(all: readonly MirroredInterest[], signal: AbortSignal): Promise<void> {
    const { upstream, clock, end } = this.#parts
    if (upstream.reachability.state !== 'reachable') return
    const empty = new Map<string, MirroredInterest[]>()
    for (const mirrored of all) {
      if ((mirrored.cache?.watchers.size ?? 0) > 0) mirrored.asked(clock.now())
      // Its watchers hear nothing: their next watch goes where something happens.
      if (mirrored.isBlind) mirrored.finishWatches()
      const { record, interest } = mirrored
      record.unaskedMs += tickMs
      await this.#lookAtRefusal(mirrored)
      if (record.standing) continue
      if (record.unaskedMs >= mirrorLimits.unaskedMsMax) await end(mirrored, 'nobody has asked for it for a long time')
      else if (!isLeft(mirrored)) continue
      else if (interest.fields.required('metadata.name') !== undefined) await end(mirrored, 'its object is no more')
      else if (interest.namespace !== '')
        empty.set(interest.namespace, [...(empty.get(interest.namespace) ?? []), mirrored])
    }
    await this.#endGone(empty, all, signal)
  }

  /** Of those that hold nothing and that no caller asks for: the ones whose namespace is no more. */
  async #endGone(
    empty: ReadonlyMap<string, readonly MirroredInterest[]>,
    all: readonly MirroredInterest[],
    signal: AbortSignal,
  ): Promise<void> {
    const nowMs = this.#parts.clock.steady()
    for (const namespace of this.#asksAt.keys()) if (!empty.has(namespace)) this.#asksAt.delete(namespace)
    const due = [...empty.keys()].filter((namespace) => (this.#asksAt.get(namespace) ?? 0) <= nowMs)
    for (const namespace of due.slice(0, namespacesPerTick)) {
      this.#asksAt.set(namespace, nowMs + namespaceEveryMs)
      // An API server that may not be asked, or does not answer, has not said that it is gone.
      if (!(await this.#isGone(namespace, all, signal).catch(() => false))) continue
      for (const mirrored of empty.get(namespace) ?? [])
        if (isLeft(mirrored)) await this.#parts.end(mirrored, 'its namespace is no more')
      // One that was fed by what ended here has to show first that it is empty on its own: it ends at a later tick.
      this.#asksAt.delete(namespace)
    }
  }

  /** By what is mirrored of namespaces, as kube-proxy or an operator has it: behind a hub the edge's node may not ask. */
  async #isGone(namespace: string, all: readonly MirroredInterest[], signal: AbortSignal): Promise<boolean> {
    const scope = scopeOfName({ group: '', version: 'v1', resource: 'namespaces', namespace: '' }, namespace)
    const covering = all.find(({ interest, state }) => isSynced(state) && covers(interest, scope))
    if (covering?.readable !== undefined) return covering.readable.peek(objectKey('', namespace)) === undefined
    const source = new Source({ ...this.#parts, scope, kind: 'Namespace' })
    const { items, continueToken } = await source.page({ objects: 1 }, signal)
    return items.length === 0 && continueToken === ''
  }

  /** A refusal that lasts, and that the cloud confirms, takes the data out of use; later they go. */
  async #lookAtRefusal(mirrored: MirroredInterest): Promise<void> {
    const { clock, log, end } = this.#parts
    const { state, record } = mirrored
    if (state.kind !== 'refused') {
      // A cut line takes back nothing that the cloud has said.
      if (state.kind !== 'waiting') mirrored.withdrawnAtMs = undefined
      if (isSynced(state)) mirrored.isEmptied = false
      return
    }
    // A policy forbids to keep it, which takes no time to believe; it may be wanted for other reasons all the same.
    if (state.code === neverKept) {
      if (mirrored.cache !== undefined) await this.#empty(mirrored, state.why)
      return
    }
    const nowMs = clock.steady()
    const { withdrawnAtMs } = mirrored
    if (withdrawnAtMs !== undefined) {
      mirrored.finishWatches()
      // What was confirmed minutes ago, perhaps before the line was cut, is confirmed again before anything is lost.
      if (nowMs - withdrawnAtMs <= mirrorLimits.withdrawnMsMin || !(await this.#isConfirmed(mirrored, state.code)))
        return
      if (record.standing) await this.#empty(mirrored, state.why)
      else await end(mirrored, state.why)
      return
    }
    // What an option names and holds nothing only waits.
    if (record.standing && mirrored.cache === undefined) return
    // A credential that is no longer accepted says nothing about data.
    if (state.code === 401 || nowMs - state.sinceMs < mirrorLimits.refusalMsMin) return
    if (!(await this.#isConfirmed(mirrored, state.code))) return
    log.warn('interest.withdrawn', { interest: mirrored.interest.name, why: state.why })
    mirrored.finishWatches()
    mirrored.withdrawnAtMs = nowMs
  }

  async #isConfirmed(mirrored: MirroredInterest, code: number): Promise<boolean> {
    const { clock, confirm } = this.#parts
    const nowMs = clock.steady()
    if (nowMs < (this.#confirmsAt.get(mirrored) ?? 0)) return false
    this.#confirmsAt.set(mirrored, nowMs + confirmEveryMs)
    const { by, unaskedMs } = mirrored.record
    const callers = unaskedMs < mirrorLimits.unaskedMsMax ? by.filter((caller) => !isNode(caller)) : []
    const isMeant = await confirm(mirrored.interest, code, callers).catch(() => false)
    if (isMeant) this.#confirmsAt.delete(mirrored)
    return isMeant
  }

  /** It stays, and comes again once it may be had. */
  async #empty(mirrored: MirroredInterest, why: string): Promise<void> {
    this.#parts.log.warn('interest.emptied', { interest: mirrored.interest.name, why })
    mirrored.finishWatches()
    await this.#parts.empty(mirrored)
    mirrored.isEmptied = true
    mirrored.withdrawnAtMs = undefined
  }
}

/** Whether it holds nothing, as far as the cloud tells now, and no caller has asked for it lately. */
function isLeft({ record, readable, state }: MirroredInterest): boolean {
  if (record.unaskedMs < mirrorLimits.emptyUnaskedMsMax) return false
  return isSynced(state) && readable?.size === 0 && !readable.isDamaged
}

function isSynced({ kind }: MirroredInterest['state']): boolean {
  return kind === 'synced' || kind === 'fed'
}
