/**
 * Every connection and what it is worth, for the moment when there are too many. A newcomer cannot be known before it has
 * shaken hands, some not before they have asked for something: so it is let in, and the most worthless stranger goes. That
 * is the one that has asked for nothing for the longest, shaken hands or not, then one that is idle. Strangers never push out a caller;
 * where callers are too many, it is one of the caller's who has the most.
 */

import { type Holder, strangers } from '../holder.ts'
import type { Connection } from './peer.ts'

export type Visit = {
  /** The caller that its certificate names, or the first token on it that the API server accepts, as it holds shares. */
  holder: Holder
  /** The same for all connections of one caller. */
  caller: string
  /** By its certificate: then every request on it is that holder's. */
  certified: boolean
  /** Ends it. */
  readonly cut: () => void
  /** Requests whose answers have not ended. */
  underWay: number
  /** Requests begun since it was last counted anew, in some round of the loop. */
  begun: number
  /** One of them has: the same function for all, since watches are many and live long. */
  readonly over: () => void
  /** When that was, in no unit. */
  usedAt: number
  /** Where it is kept. */
  rank: Set<Visit>
}

/** Whose a connection is, and what it is worth. */
export type VisitingConnection = Connection & { readonly visit: Visit }

/** Places that callers leave to clients that are still to show who they are: one of so many. */
const newcomersDivisor = 64

export class Connections {
  readonly #max: number
  readonly #knownMax: number
  /** Those of strangers, the most worthless first; in each the one that has been in it for the longest is first. */
  readonly #silent = new Set<Visit>()
  readonly #idle = new Set<Visit>()
  readonly #busy = new Set<Visit>()
  readonly #known = new Set<Visit>()
  readonly #strangers = [this.#silent, this.#idle, this.#busy]
  /** Stands for every connection that is no longer there. */
  readonly gone = this.#visit(() => {})
  #uses = 0
  #underWay = 0

  constructor(max: number) {
    this.#max = max
    this.#knownMax = max - Math.ceil(max / newcomersDivisor)
  }

  /** Requests whose answers have not ended, on all of them. */
  get underWay(): number {
    return this.#underWay
  }

  get size(): number {
    return this.#strangers.reduce((sum, { size }) => sum + size, this.#known.size)
  }

  /** One more, before it has shaken hands; another stranger goes where that is too many. */
  admit(cut: () => void): Visit {
    const visit = this.#visit(cut)
    this.#silent.add(visit)
    if (this.size > this.#max) this.#end(this.#worst(visit))
    return visit
  }

  /** It has shaken hands; `holder` is the caller that its certificate names. */
  greeted(visit: Visit, holder: Holder | undefined): void {
    if (holder === undefined) return
    visit.certified = true
    this.know(visit, holder)
  }

  /** A certificate or the API server vouches for the caller at its other end. */
  know(visit: Visit, holder: Holder): void {
    const { standing, name } = holder
    visit.caller = `${standing} ${name}`
    // Everything on the machine that acts as its administrator has one certificate: each connection has a share of its own.
    visit.holder = standing === 'own' ? { standing, name: `${name} ${++this.#uses}` } : holder
    this.#move(visit, this.#known)
    if (this.#known.size > this.#knownMax) this.#end(this.#leastKnown(visit))
  }

  begin(visit: Visit): void {
    this.#underWay++
    visit.underWay++
    if (visit.holder.standing === 'stranger' && visit.underWay === 1) this.#move(visit, this.#busy)
  }

  remove(visit: Visit): void {
    visit.rank.delete(visit)
  }

  #visit(cut: () => void): Visit {
    const visit: Visit = {
      holder: strangers,
      caller: '',
      certified: false,
      cut,
      underWay: 0,
      begun: 0,
      over: () => this.#over(visit),
      usedAt: 0,
      rank: this.#silent,
    }
    return visit
  }

  #over(visit: Visit): void {
    this.#underWay--
    visit.underWay--
    visit.usedAt = ++this.#uses
    if (visit.holder.standing === 'stranger' && visit.underWay === 0) this.#move(visit, this.#idle)
  }

  /** One that was removed stays so. */
  #move(visit: Visit, rank: Set<Visit>): void {
    if (!visit.rank.delete(visit)) return
    visit.rank = rank
    rank.add(visit)
  }

  #end(visit: Visit): void {
    this.remove(visit)
    visit.cut()
  }

  #worst(newcomer: Visit): Visit {
    for (const rank of this.#strangers) for (const visit of rank) if (visit !== newcomer) return visit
    return newcomer
  }

  /** Of the caller who has the most: the one unused for the longest. A busy one only for the administrator, or from a crowd. */
  #leastKnown(newcomer: Visit): Visit {
    const byCaller = new Map<string, Visit[]>()
    for (const visit of this.#known) {
      if (visit === newcomer) continue
      const others = byCaller.get(visit.caller)
      if (others === undefined) byCaller.set(visit.caller, [visit])
      else others.push(visit)
    }
    const most = [...byCaller.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    const idle = most.filter(({ underWay }) => underWay === 0)
    const isUrgent = newcomer.holder.standing === 'own' || most.length > this.#knownMax / 2
    const candidates = idle.length > 0 ? idle : isUrgent ? most : []
    return candidates.reduce((one, other) => (other.usedAt < one.usedAt ? other : one), candidates[0] ?? newcomer)
  }
}
