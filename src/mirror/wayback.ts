/**
 * The way back of one interest to its cluster, as a state machine: what has to be asked before the copy may be continued,
 * and whether it may be read meanwhile. `table` is complete: every state knows what each input means for it. Pure but for
 * the time at which a doubt began.
 */
import type { Clock } from '../base/clock.ts'
import type { From } from '../upstream/follow/follow.ts'

export type WayState =
  /** Nothing is held. */
  | 'empty'
  /** The edge was not connected all the time: whether the cluster is still the one the copy is of has to be asked. */
  | 'unsure'
  /** As unsure, with a reason to think that it is another: no client reads the copy while the cloud can say. */
  | 'doubted'
  /** The cluster is the one the copy is of; the copy goes on where it is. */
  | 'sure'
  /** The copy cannot go on where it is: everything has to be compared. Each kind of certainty has this beside it. */
  | 'unsure, to compare'
  | 'doubted, to compare'
  | 'sure, to compare'
  /** The cluster was put back: nothing that is held counts, whatever else happens, until it was read anew. */
  | 'lost'
  /** Changes come as they happen. */
  | 'live'

export type WayInput =
  /** What `follow` tells. */
  | 'verified'
  | 'lost'
  | 'live'
  | 'over'
  /** What it told of the whole collection is committed. */
  | 'listed'
  /** The API server has forgotten what comes after the copy's version. */
  | 'expired'
  /** Any other end: an outage, a refusal, a watch that ended early, a new beginning of this process. */
  | 'broken'
  /** The copy was seen to differ from the cloud. */
  | 'differs'
  /** Another interest was found to be of a lost past. */
  | 'doubt'
  /** The wider interest that fed this one is no more. */
  | 'unfed'

/** What has to be done at a transition besides going on: let clients read again, or begin to follow anew. */
export type WayEffect = 'trust' | 'again' | undefined

type Row = Readonly<Record<WayInput, readonly [WayState, WayEffect?]>>

const table: Readonly<Record<WayState, Row>> = {
  empty: {
    verified: ['empty'],
    lost: ['empty'],
    live: ['live'],
    over: ['empty'],
    listed: ['sure', 'trust'],
    expired: ['empty'],
    broken: ['empty'],
    differs: ['empty'],
    doubt: ['empty'],
    unfed: ['empty'],
  },
  unsure: {
    verified: ['sure', 'trust'],
    lost: ['lost'],
    live: ['live'],
    over: ['unsure'],
    listed: ['sure', 'trust'],
    expired: ['unsure, to compare'],
    broken: ['unsure'],
    differs: ['unsure, to compare', 'again'],
    doubt: ['doubted, to compare', 'again'],
    unfed: ['doubted'],
  },
  doubted: {
    verified: ['sure', 'trust'],
    lost: ['lost'],
    live: ['live'],
    over: ['doubted'],
    listed: ['sure', 'trust'],
    expired: ['doubted, to compare'],
    broken: ['doubted'],
    differs: ['doubted, to compare', 'again'],
    doubt: ['doubted, to compare', 'again'],
    unfed: ['doubted'],
  },
  sure: {
    verified: ['sure', 'trust'],
    lost: ['lost'],
    live: ['live'],
    over: ['sure'],
    listed: ['sure', 'trust'],
    expired: ['sure, to compare'],
    broken: ['unsure'],
    differs: ['sure, to compare', 'again'],
    doubt: ['doubted, to compare', 'again'],
    unfed: ['doubted'],
  },
  'unsure, to compare': {
    verified: ['sure, to compare', 'trust'],
    lost: ['lost'],
    live: ['unsure, to compare'],
    over: ['unsure, to compare'],
    listed: ['sure', 'trust'],
    expired: ['unsure, to compare'],
    broken: ['unsure, to compare'],
    differs: ['unsure, to compare'],
    doubt: ['doubted, to compare', 'again'],
    unfed: ['doubted, to compare'],
  },
  'doubted, to compare': {
    // That the versions go on does not clear a doubt of this kind: the comparison does.
    verified: ['doubted, to compare'],
    lost: ['lost'],
    live: ['doubted, to compare'],
    over: ['doubted, to compare'],
    listed: ['sure', 'trust'],
    expired: ['doubted, to compare'],
    broken: ['doubted, to compare'],
    differs: ['doubted, to compare'],
    doubt: ['doubted, to compare'],
    unfed: ['doubted, to compare'],
  },
  'sure, to compare': {
    verified: ['sure, to compare', 'trust'],
    lost: ['lost'],
    live: ['sure, to compare'],
    over: ['sure, to compare'],
    listed: ['sure', 'trust'],
    expired: ['sure, to compare'],
    broken: ['unsure, to compare'],
    differs: ['sure, to compare'],
    doubt: ['doubted, to compare', 'again'],
    unfed: ['doubted, to compare'],
  },
  lost: {
    verified: ['lost'],
    lost: ['lost'],
    live: ['lost'],
    over: ['lost'],
    listed: ['sure', 'trust'],
    expired: ['lost'],
    broken: ['lost'],
    differs: ['lost'],
    doubt: ['lost'],
    unfed: ['lost'],
  },
  live: {
    verified: ['live', 'trust'],
    lost: ['lost'],
    live: ['live'],
    over: ['sure'],
    listed: ['live', 'trust'],
    expired: ['sure, to compare'],
    broken: ['unsure'],
    differs: ['sure, to compare', 'again'],
    doubt: ['doubted, to compare', 'again'],
    unfed: ['doubted'],
  },
}

export function next(state: WayState, input: WayInput): readonly [WayState, WayEffect?] {
  return table[state][input]
}

/** How to follow from here. */
export function askOf(state: WayState): Pick<From, 'start' | 'check'> {
  switch (state) {
    case 'empty':
    case 'lost':
      return { start: 'anew', check: false }
    case 'unsure':
    case 'doubted':
      return { start: 'resume', check: true }
    case 'sure':
    case 'live':
      return { start: 'resume', check: false }
    case 'unsure, to compare':
    case 'doubted, to compare':
      return { start: 'compare', check: true }
    case 'sure, to compare':
      return { start: 'compare', check: false }
  }
}

export function isDoubtful(state: WayState): boolean {
  return state === 'lost' || state === 'doubted' || state === 'doubted, to compare'
}

/** Where one interest is on its way. */
export class WayBack {
  readonly #clock: Clock
  #state: WayState
  /** Since when clients may not read the copy while the cloud can be asked, by the steady clock. */
  doubtedAtMs: number | undefined
  /** How often another was found to be of a lost past: what was asked for before that says nothing about the one that counts now. */
  doubts = 0

  constructor({ clock, isHeld }: { clock: Clock; isHeld: boolean }) {
    this.#clock = clock
    this.#state = isHeld ? 'unsure' : 'empty'
  }

  get state(): WayState {
    return this.#state
  }

  take(input: WayInput): WayEffect {
    const [state, effect] = next(this.#state, input)
    this.#state = state
    if (input === 'doubt') this.doubts++
    this.doubtedAtMs = isDoubtful(state) ? (this.doubtedAtMs ?? this.#clock.steady()) : undefined
    return effect
  }
}
