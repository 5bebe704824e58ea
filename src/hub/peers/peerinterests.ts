/**
 * The interests of one edge at this hub. Each is judged before its source is opened for it, and again from time to time: what the
 * edge may have no more ends. The operator hears what is refused, and of an interest that is further than the cluster.
 */
import type { Warnings } from '../../base/warnings.ts'
import type { HubSession } from '../../link/session/hub.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import type { HubSources } from '../sources/sources.ts'
import { wantedOf } from '../sources/wanted.ts'
import { type InterestLink, PeerInterest } from './peerinterest.ts'
import type { EdgeRights } from './rights.ts'
import { LinkSelections, type LookingBudgets } from './selections.ts'

type Parts = {
  readonly edge: EdgePeer
  readonly link: InterestLink & { readonly isOver: boolean }
  readonly session: HubSession
  readonly sources: Pick<HubSources, 'open' | 'present'>
  readonly rights: EdgeRights
  readonly looking: LookingBudgets
  readonly warnings: Pick<Warnings, 'warn'>
}

export class PeerInterests {
  readonly #parts: Parts
  /** By the number that the edge gave it. */
  readonly #all = new Map<number, PeerInterest>()
  readonly selections: LinkSelections
  #isJudging = false
  #isJudgedAgain = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.selections = new LinkSelections(parts.edge.name, parts.looking)
  }

  get size(): number {
    return this.#all.size
  }

  /** Of which it is told anything. */
  get sources(): ReadonlySet<number> {
    return new Set([...this.#all.values()].map((one) => one.source))
  }

  open(number: number, name: string): void {
    const { session, link } = this.#parts
    const wanted = wantedOf(name)
    if (wanted === undefined) {
      const sentence = 'no interest is called so'
      this.refused(name, sentence)
      session.refuse(number, { reason: 'unknown', retryAfterMs: 0, sentence })
      link.wake()
      return
    }
    const interest = new PeerInterest({ number, wanted, among: this, link, session })
    this.#all.set(number, interest)
    void this.#judge(interest).then((refusal) => this.#judged(interest, refusal))
  }

  /** For the first time. */
  #judged(interest: PeerInterest, refusal: SessionRefusal | undefined): void {
    if (this.#all.get(interest.number) !== interest) return
    try {
      if (refusal === undefined) interest.open(this.#parts.sources)
      else {
        if (refusal.reason !== 'busy') this.refused(interest.wanted.name, refusal.sentence)
        interest.refused(refusal)
      }
    } catch (error) {
      this.#parts.link.broke(error)
    }
  }

  /** Whether the edge may still have what it has. What cannot be told now was told before. */
  async judgeAgain(): Promise<void> {
    this.#isJudgedAgain = true
    // One at a time: policies may change faster than all interests can be judged.
    if (this.#isJudging) return
    this.#isJudging = true
    try {
      while (this.#isJudgedAgain && !this.#parts.link.isOver) {
        this.#isJudgedAgain = false
        await this.#judgeAll()
      }
    } finally {
      this.#isJudging = false
    }
  }

  async #judgeAll(): Promise<void> {
    for (const interest of [...this.#all.values()]) {
      const refusal = await this.#judge(interest)
      if (refusal === undefined || refusal.reason === 'busy') continue
      if (this.#all.get(interest.number) !== interest) continue
      this.refused(interest.wanted.name, refusal.sentence)
      interest.refused(refusal)
    }
  }

  /** What cannot be judged is not given. */
  #judge({ wanted }: PeerInterest): Promise<SessionRefusal | undefined> {
    const { rights, edge } = this.#parts
    return rights.judge(edge, wanted).catch(() => unjudged)
  }

  /** Tells the operator. */
  refused(name: string, why: string): void {
    const { edge, warnings } = this.#parts
    const interest = name.slice(0, nameCharsMax)
    const about = { who: edge.name, kind: 'interest', same: `${interest} ${why}` }
    warnings.warn('edge.refused', about, { edge: edge.name, from: edge.from, interest, why })
  }

  /** The edge says to be further with it than this hub: whether the API server is, it is asked. */
  measure(number: number): void {
    const { sources, session, link, edge, warnings } = this.#parts
    const interest = this.#all.get(number)
    if (interest === undefined) return
    void sources.present(interest.source).then((version) => {
      if (version === undefined || link.isOver || !session.measured(number, version)) return
      const { name } = interest.wanted
      const about = { who: edge.name, kind: 'interest', same: `${name} lost` }
      warnings.warn('edge.ahead', about, { edge: edge.name, from: edge.from, interest: name, version })
      link.wake()
    })
  }

  release(number: number): void {
    const interest = this.#all.get(number)
    if (interest !== undefined) this.forget(interest)
  }

  forget(interest: PeerInterest): void {
    this.#all.delete(interest.number)
    interest.release()
  }

  /** The link has ended. */
  forgetAll(): void {
    for (const interest of [...this.#all.values()]) this.forget(interest)
  }
}

/** Of an interest's name, as the log has it. */
const nameCharsMax = 256

const unjudged: SessionRefusal = {
  reason: 'busy',
  retryAfterMs: sessionLimits.busyRetryMs,
  sentence: 'the hub cannot tell now whether this edge may have it',
}
