/** One interest of an edge on its link: where it stands with the hub, and the comparison that is being made for it. */
import type { DigestTree } from '../digest/digest.ts'
import { DigestWalk } from '../digest/walk.ts'
import { LinkFault } from '../frames/bytes.ts'
import type { InterestStart, InterestWish, PartialSnapshot } from './session.ts'

/** What an edge wants of an interest, and what it has of it. */
export type InterestHeld = {
  /** The epoch that its versions are of. */
  readonly epoch: number
  /** What its copy is synced to; 0 for nothing, or for a past that is lost. */
  readonly version: number
  readonly wish: InterestWish
  readonly partial?: PartialSnapshot | undefined
}

/** `wanted`: not on the line yet. `asked`: not answered. `astray`: something did not fit, until it restarts. */
type EdgePhase = 'wanted' | 'asked' | 'waiting' | 'comparing' | 'snapshot' | 'live' | 'astray'

/** Of a comparison: the tree is not here, it has its turn to come, a request is out, everything was asked. */
type WalkState = 'treeless' | 'ready' | 'asking' | 'done'

export class EdgeInterest {
  readonly number: number
  readonly name: string
  source = 0
  phase: EdgePhase = 'wanted'
  walkState: WalkState = 'treeless'
  comparison = 0
  /** When all of it was what the cluster had. */
  freshAt = Number.NEGATIVE_INFINITY
  /** Versions do not fall behind this. */
  version: number
  #held: InterestHeld
  #walk: DigestWalk | undefined
  /** What the hub has said not to have. */
  #gone: readonly string[] = []

  constructor(number: number, name: string, held: InterestHeld) {
    this.number = number
    this.name = name
    this.#held = held
    this.version = held.version
  }

  get held(): InterestHeld {
    return this.#held
  }

  get gone(): readonly string[] {
    return this.#gone
  }

  /** The hub owes an answer. */
  get isWaiting(): boolean {
    return this.phase === 'asked' || (this.phase === 'comparing' && this.walkState === 'asking')
  }

  /** It goes on the line. What is known of an epoch that has passed does not count. */
  subscribe(epoch: number): void {
    const { version, partial } = this.#held
    if (this.#held.epoch !== epoch && (version > 0 || partial !== undefined)) this.forgetPast()
    this.phase = 'asked'
  }

  forgetPast(): void {
    this.#held = { epoch: this.#held.epoch, version: 0, wish: 'compare' }
    this.version = 0
    if (this.phase !== 'wanted') this.phase = 'asked'
  }

  /** Whether a snapshot goes on where an earlier one ended. */
  begin(start: InterestStart, version: number, source: number): boolean {
    const { partial } = this.#held
    const isFirst = this.phase === 'asked' || this.phase === 'waiting'
    this.source = source
    this.#walk = undefined
    this.#gone = []
    this.walkState = 'treeless'
    if (start === 'wait' || start === 'replay') {
      if (!isFirst) throw new LinkFault(`${start} of an interest that has begun`)
      if (start === 'replay' && (this.version === 0 || version !== this.version))
        throw new LinkFault('a replay from a version that is not held')
      this.phase = start === 'wait' ? 'waiting' : 'live'
      return start === 'wait'
    }
    this.phase = start === 'snapshot' ? 'snapshot' : 'comparing'
    if (start === 'compare') this.comparison = version
    const resumes = start === 'snapshot' && isFirst && partial !== undefined && partial.version === version
    this.#held = { ...this.#held, partial: undefined }
    return resumes
  }

  take(tree: DigestTree): void {
    this.#walk = new DigestWalk(tree)
    this.walkState = 'ready'
  }

  /** The next request; an empty one when everything was asked. */
  ask(answer?: Buffer): Buffer {
    const walk = this.#walk as DigestWalk
    const request = walk.next(answer)
    this.walkState = request === undefined ? 'done' : 'asking'
    if (request !== undefined) return request
    this.#gone = walk.gone
    this.#walk = undefined
    return Buffer.alloc(0)
  }
}
