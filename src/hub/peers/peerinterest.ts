/** One interest of an edge at this hub: what its source says goes to the session of its link, in the turn in which it is said. */
import type { HubSession } from '../../link/session/hub.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { InterestView, LinkEvent } from '../../link/session/session.ts'
import type { Interest } from '../../mirror/interest.ts'
import { sentenceOf } from '../../tunnel/frames.ts'
import type { HubSources, OpenedSource } from '../sources/sources.ts'
import type { SelectedView, SourceReader } from '../sources/view.ts'
import type { LinkSelections } from './selections.ts'

/** The link that it is told over. */
export type InterestLink = {
  /** The session has something to be sent. */
  wake(): void
  /** The same, for an event. */
  told(): void
  /** The session broke over it. */
  broke(error: unknown): void
}

/** Those of its edge. */
type OthersOfEdge = {
  forget(interest: PeerInterest): void
  readonly selections: LinkSelections
  /** An operator should know that it was. */
  refused(interest: string, why: string): void
}

type Parts = {
  /** As the edge gave it. */
  readonly number: number
  readonly wanted: Interest
  readonly among: OthersOfEdge
  readonly link: InterestLink
  readonly session: HubSession
}

/** One interest of the edge, by the number that the edge gave it. */
export class PeerInterest implements SourceReader {
  readonly number: number
  readonly wanted: Interest
  readonly #among: OthersOfEdge
  readonly #link: InterestLink
  readonly #session: HubSession
  #opened: OpenedSource | undefined
  #isOver = false
  /** Where it has a selector: what it counts as. */
  #selected: SelectedView | undefined
  source = 0

  constructor({ number, wanted, among, link, session }: Parts) {
    this.number = number
    this.wanted = wanted
    this.#among = among
    this.#link = link
    this.#session = session
  }

  open(sources: Pick<HubSources, 'open'>): void {
    if (this.#isOver) return
    const opened = sources.open(this.wanted, this)
    // It may have been refused on the spot.
    if (this.#isOver) opened?.leave(this.wanted, this)
    else this.#opened = opened
  }

  selects(view: SelectedView): SessionRefusal | undefined {
    const refusal = this.#among.selections.enter(view)
    if (refusal === undefined) this.#selected = view
    else if (refusal.reason !== 'busy') this.#among.refused(this.wanted.name, refusal.sentence)
    return refusal
  }

  looked(objects: number, found: number): void {
    this.#among.selections.looked(objects, found)
  }

  opened(view: InterestView): void {
    if (this.#isOver) return
    this.source = view.source
    this.#session.opened(this.number, view)
    this.#link.wake()
  }

  event(event: LinkEvent): void {
    try {
      this.#session.event(this.number, event)
    } catch (error) {
      this.#link.broke(error)
    }
    this.#link.told()
  }

  refused(refusal: SessionRefusal): void {
    if (this.#isOver) return
    this.#session.refuse(this.number, sayable(refusal))
    this.#among.forget(this)
    this.#link.wake()
  }

  release(): void {
    this.#isOver = true
    this.#opened?.leave(this.wanted, this)
    this.#opened = undefined
    if (this.#selected !== undefined) this.#among.selections.leave(this.#selected)
    this.#selected = undefined
  }
}

/** What others wrote may be longer than a frame says. */
export function sayable(refusal: SessionRefusal): SessionRefusal {
  return { ...refusal, sentence: sentenceOf(refusal.sentence) }
}
