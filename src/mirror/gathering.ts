/**
 * Many names of one namespace become the namespace: one stream instead of one for each, where the edge may read it. Not
 * Secrets: a stolen machine should hold no more of them than was asked for. Once the namespace is synced it feeds the names,
 * and those that are not asked for by themselves end.
 */
import type { Clock } from '../base/clock.ts'
import type { Scope } from '../kube/scope.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { type Interest, interestOf } from './interest.ts'
import type { ConfirmRefusal } from './leaving.ts'
import type { MirroredInterest } from './mirrored.ts'
import { type InterestRecord, isByName } from './records.ts'

/** From so many names on one list and one watch cost less than theirs, and the rest will likely be asked for too. */
const namesMin = 20
/** A namespace that the edge may not read, or that does not fit, is tried again after this time. */
const deniedMs = 3_600_000
/** A name that its namespace feeds ends when it was not asked for by itself this long: a client between its list and its watch. */
const fedUnaskedMsMin = 60_000

/** Namespaces of which names that found no room are counted. */
const namespacesMax = 200

/** An interest, begun or not. */
type Named = { readonly interest: Interest; readonly record: InterestRecord }

type Parts = {
  readonly upstream: Pick<Upstream, 'reachability'>
  readonly clock: Clock
  readonly confirm: ConfirmRefusal
  readonly of: (scope: Scope) => Iterable<MirroredInterest>
  readonly covering: (scope: Scope) => MirroredInterest | undefined
  /** Begins the namespace on behalf of the callers that asked for its names; undefined where there is no room. */
  readonly begin: (namespace: Interest, callers: readonly string[]) => MirroredInterest | undefined
  readonly end: (mirrored: MirroredInterest, why: string) => Promise<void>
}

export class Gathering {
  readonly #parts: Parts
  readonly #pending = new Set<string>()
  /** By namespace, the names that found no room: their caller has its share of others. The oldest are forgotten first. */
  readonly #turnedAway = new Map<string, Set<string>>()
  readonly #deniedUntil = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** A name is asked for, whether there was room for it or not: whether its namespace is worth it now. */
  look(asked: Named, hasRoom = true): void {
    if (!mayGather(asked)) return
    const { group, version, resource, namespace, name } = asked.interest
    const wide = interestOf({ group, version, resource, namespace })
    if (this.#pending.has(wide.name) || (this.#deniedUntil.get(wide.name) ?? 0) > this.#parts.clock.steady()) return
    const names = [...this.#parts.of(wide)].filter((one) => mayGather(one) && one.interest.namespace === namespace)
    const turnedAway = hasRoom ? this.#turnedAway.get(wide.name) : this.#note(wide.name, name)
    if (names.length + (turnedAway?.size ?? 0) < namesMin || this.#parts.covering(wide) !== undefined) return
    const callers = new Set([asked, ...names].flatMap(({ record }) => record.by))
    this.#turnedAway.delete(wide.name)
    this.#pending.add(wide.name)
    void this.#gather(wide, [...callers]).finally(() => this.#pending.delete(wide.name))
  }

  #note(namespace: string, name: string): ReadonlySet<string> {
    const names = this.#turnedAway.get(namespace) ?? new Set()
    this.#turnedAway.set(namespace, names.add(name))
    const [oldest] = this.#turnedAway.keys()
    if (this.#turnedAway.size > namespacesMax) this.#turnedAway.delete(oldest as string)
    return names
  }

  async #gather(wide: Interest, callers: readonly string[]): Promise<void> {
    const { upstream, confirm, begin } = this.#parts
    if (upstream.reachability.state !== 'reachable') return
    const isDenied = await confirm(wide, 403, callers).catch(() => true)
    if (isDenied || begin(wide, callers) === undefined) this.#deny(wide)
  }

  #deny({ name }: Interest): void {
    this.#deniedUntil.set(name, this.#parts.clock.steady() + deniedMs)
  }

  /** Ends the namespaces that cannot be had, and the names that theirs has made needless. */
  async tick(all: readonly MirroredInterest[]): Promise<void> {
    const { upstream, clock, end } = this.#parts
    if (upstream.reachability.state !== 'reachable') return
    for (const [name, untilMs] of this.#deniedUntil) if (untilMs <= clock.steady()) this.#deniedUntil.delete(name)
    for (const mirrored of all) {
      const { record, interest } = mirrored
      if (record.gathered && mirrored.hopeless && mirrored.cache === undefined) {
        this.#deny(interest)
        await end(mirrored, 'the edge cannot have the whole namespace')
      } else if (mayEnd(mirrored) && this.#isFedByAll(mirrored)) await end(mirrored, 'all of its namespace is mirrored')
      else this.look(mirrored)
    }
  }

  #isFedByAll({ interest, cache, state }: MirroredInterest): boolean {
    if (state.kind !== 'fed') return false
    const wide = this.#parts.covering(interestOf({ ...interest, labels: noLabels, fields: noFields }))
    return wide?.readable !== undefined && wide.readable.version >= (cache?.version ?? 0)
  }
}

const { labels: noLabels, fields: noFields } = interestOf({ group: '', version: '', resource: '', namespace: '' })

/** Of the node's own each stays what it is: no wider one that others asked for stands for it. */
function mayEnd({ interest, record }: Named): boolean {
  return isByName(interest, record) && !record.node && !record.standing && record.unaskedMs >= fedUnaskedMsMin
}

function mayGather({ interest, record }: Named): boolean {
  const { group, resource, namespace, labels } = interest
  if (!isByName(interest, record) || record.node || record.standing || namespace === '' || !labels.empty) return false
  return !(group === '' && resource === 'secrets')
}
