/**
 * Why the hub may feed this edge what its callers want: the credentials of callers who asked for an interest lately, kept in memory
 * and shown over each link that needs them. What the link's own node may have needs none, which only the hub can tell: an
 * interest is proved once the hub has refused it without, and from then on before it is asked for.
 *
 * After a start nothing is kept: what needs a proof is not fed until a caller asks, and its data stay as without a cloud.
 */
import { type Clock, sleep } from '../../base/clock.ts'
import { interestBytesMax } from '../../link/frames/frames.ts'
import { proofDenied } from '../../tunnel/proof/proof.ts'
import { Busy, type Followed, Refused } from '../follow/follow.ts'
import type { Identity } from '../upstream.ts'
import { AskingCredentials, type ProvingShown } from './askingcredentials.ts'
import type { EdgeLink } from './edgelink.ts'
import type { LiveLink } from './livelink.ts'
import { showProof } from './showproof.ts'

/** Interests that callers have asked for: as many as an edge mirrors by itself. Each has up to 4 credentials of some KB. */
const interestsMax = 1_024
/** How often it is looked whether something has to be proved again, which a hub wants once in half an hour. */
const lookEveryMs = 30_000
/** After a proof that could not be renewed: as often as the hub looks after its own. */
const renewRetryMs = 60_000
/**
 * An interest that was refused is asked for again by its reflector, in vain as long as no caller asks and the node gets no other rights.
 * Each time costs some 300 bytes: at the longest pause 100 KB a day.
 */
const quietMsMin = 1_000
const quietMsMax = 5 * 60_000

type Parts = {
  readonly link: Pick<EdgeLink, 'current'>
  readonly clock: Clock
  /** It was refused, and its caller has proved it: it is to be asked for again. */
  readonly proven: (interest: string) => void
}

/** Of an interest that waits for a caller who may have it. */
type StandingRefusal = {
  readonly link: LiveLink
  /** How long the hub is not asked for it again, and until when. */
  readonly quietMs: number
  readonly askAt: number
  error: Refused
}

type ProvingInterest = {
  readonly name: string
  readonly credentials: AskingCredentials
  /** How often it is followed now. */
  followings: number
  /** The hub does not give it to the edge's node by itself. */
  isNeeded: boolean
  /** The hub has refused it, and nothing of it comes. */
  refused: StandingRefusal | undefined
  /** Over which link, and when it is to be proved again. */
  proved: { readonly link: LiveLink; renewAt: number } | undefined
  /** Over which link anything was last shown. */
  shownOver: LiveLink | undefined
  showing: Promise<boolean> | undefined
  /** What the hub said to the last proof that it did not take. */
  why: string
}

type FollowedOver = { readonly link: LiveLink; readonly name: string; readonly signal: AbortSignal }

export class InterestProofs {
  readonly #parts: Parts
  readonly #interests = new Map<string, ProvingInterest>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** A caller who may read it here has asked for something that this interest holds. Of what was refused: when that is judged. */
  asked(name: string, identity: Identity): Promise<void> | undefined {
    const shown = shownOf(identity)
    if (shown === undefined || name.length > interestBytesMax) return undefined
    const interest = this.#of(name)
    interest.credentials.keep(shown, this.#parts.clock.steady(), identity.kind === 'named' ? identity.caller.name : '')
    return interest.refused === undefined ? undefined : this.#proveRefused(interest)
  }

  /** What the hub has refused it may give now: whatever waits is asked for when it is wanted next. */
  reconsider(): void {
    for (const interest of this.#interests.values())
      if (interest.refused !== undefined) interest.refused = { ...interest.refused, askAt: 0 }
  }

  /**
   * Whether the right to it is gone: each caller who asked for it lately is shown again, and of each the API server says now that it may
   * not. Where no caller is known who could prove it, neither here nor among `callers`, who used it before, the hub says for certain that
   * neither policies nor the node give it. A credential that does not count any more, or a hub that cannot tell, say nothing of rights.
   */
  async isWithdrawn(name: string, callers: readonly string[]): Promise<boolean> {
    const { link, clock } = this.#parts
    const interest = this.#interests.get(name)
    const { current } = link
    if (interest === undefined || current === undefined || interest.refused?.link !== current) return false
    const { credentials } = interest
    for (const shown of credentials.all()) {
      const answer = await showProof({ streams: current.streams, interest: name, shown, clock })
      credentials.answered(shown, answer, clock.steady())
      if (answer.verdict === 'allowed') {
        interest.refused = undefined
        this.#parts.proven(name)
      }
      if (answer.verdict !== 'refused' || answer.denied === proofDenied.not) return false
    }
    const { isDenied, unspoken } = credentials
    if (isDenied && unspoken.length === 0) return link.current === current
    // One that the hub would speak for may have the right, and shows it when it asks again.
    if (!isDenied && callers.some((caller) => !unspoken.includes(caller))) return false
    const own = await showProof({ streams: current.streams, interest: name, clock })
    return own.verdict === 'refused' && own.denied === proofDenied.byRights && link.current === current
  }

  /** Follows it over this link, with whatever proof that takes. */
  async *following(
    { link, name, signal }: FollowedOver,
    follow: () => AsyncGenerator<Followed>,
  ): AsyncGenerator<Followed, void> {
    const interest = this.#of(name)
    interest.followings++
    try {
      const isProved = interest.isNeeded && (await unlessAborted(this.#prove(link, interest), signal))
      const { refused } = interest
      if (!isProved && refused?.link === link && this.#parts.clock.steady() < refused.askAt) throw refused.error
      for (let isFirst = true; ; isFirst = false) {
        const hasBegun = { at: false }
        try {
          yield* this.#steps(interest, follow, hasBegun)
          return
        } catch (error) {
          // A hub that cannot tell what the node may have can judge a caller all the same.
          if (error instanceof Busy) interest.isNeeded ||= interest.credentials.size > 0
          if (!isForbidden(error)) throw error
          const said = this.#refused(link, interest, error)
          if (isFirst && !hasBegun.at && (await unlessAborted(this.#prove(link, interest), signal))) continue
          if (interest.why !== '')
            said.error = new Refused(error.code, `${error.message}; a caller's was not taken: ${interest.why}`)
          throw said.error
        }
      }
    } finally {
      interest.followings--
    }
  }

  /** Proves again what is followed by proofs, and forgets the credentials of callers who ask no more. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, link } = this.#parts
    while (!signal.aborted) {
      await sleep(clock, lookEveryMs, signal)
      if (signal.aborted) return
      for (const interest of [...this.#interests.values()]) {
        this.#tidy(interest)
        const { current } = link
        if (current !== undefined && interest.proved?.link === current && interest.followings > 0)
          void this.#prove(current, interest)
      }
    }
  }

  async *#steps(
    interest: ProvingInterest,
    follow: () => AsyncGenerator<Followed>,
    hasBegun: { at: boolean },
  ): AsyncGenerator<Followed, void> {
    for await (const step of follow()) {
      hasBegun.at = true
      interest.refused = undefined
      yield step
    }
  }

  #refused(link: LiveLink, interest: ProvingInterest, error: Refused): StandingRefusal {
    const before = interest.refused?.link === link ? interest.refused : undefined
    const quietMs = before === undefined ? 0 : Math.min(quietMsMax, Math.max(quietMsMin, 2 * before.quietMs))
    const refused = { link, quietMs, askAt: this.#parts.clock.steady() + quietMs, error }
    interest.isNeeded = true
    interest.refused = refused
    interest.proved = undefined
    return refused
  }

  async #proveRefused(interest: ProvingInterest): Promise<void> {
    const { link, proven } = this.#parts
    const { current } = link
    if (current === undefined || !(await this.#prove(current, interest)) || interest.refused === undefined) return
    interest.refused = undefined
    proven(interest.name)
  }

  /** Whether it is proved over this link. One at a time for each interest. */
  async #prove(link: LiveLink, interest: ProvingInterest): Promise<boolean> {
    const { proved } = interest
    if (proved?.link === link && this.#parts.clock.steady() < proved.renewAt) return true
    interest.showing ??= this.#show(link, interest).finally(() => {
      interest.showing = undefined
    })
    return await interest.showing
  }

  async #show(link: LiveLink, interest: ProvingInterest): Promise<boolean> {
    const { clock } = this.#parts
    const { name, credentials } = interest
    if (interest.shownOver !== link) credentials.anew(clock.steady())
    interest.shownOver = link
    for (const shown of credentials.due(clock.steady())) {
      const answer = await showProof({ streams: link.streams, interest: name, shown, clock })
      const now = clock.steady()
      credentials.answered(shown, answer, now)
      if (answer.verdict === 'allowed') {
        interest.proved = { link, renewAt: now + answer.forMs / 2 }
        interest.why = ''
        return true
      }
      interest.why = answer.sentence
    }
    const { proved } = interest
    // It may count for a while yet: the hub ends it where it does not.
    if (proved?.link === link) proved.renewAt = clock.steady() + renewRetryMs
    return false
  }

  #of(name: string): ProvingInterest {
    const known = this.#interests.get(name)
    if (known !== undefined) return known
    if (this.#interests.size >= interestsMax) this.#makeRoom()
    const interest: ProvingInterest = {
      ...{ name, credentials: new AskingCredentials(), followings: 0, isNeeded: false, refused: undefined },
      ...{ proved: undefined, shownOver: undefined, showing: undefined, why: '' },
    }
    this.#interests.set(name, interest)
    return interest
  }

  /** What is not followed costs its callers a refusal when they ask again. */
  #makeRoom(): void {
    for (const [name, { followings }] of this.#interests) {
      if (followings > 0) continue
      this.#interests.delete(name)
      return
    }
  }

  #tidy(interest: ProvingInterest): void {
    interest.credentials.forget(this.#parts.clock.steady())
    if (interest.followings === 0 && interest.refused === undefined && interest.credentials.size === 0)
      this.#interests.delete(interest.name)
  }
}

/** An edge that stops does not wait for a hub. */
async function unlessAborted(proving: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  let leave = () => {}
  const aborted = new Promise<false>((resolve) => {
    leave = () => resolve(false)
  })
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  const isProved = await Promise.race([proving, aborted])
  signal.removeEventListener('abort', leave)
  return isProved
}

/** What its hub can judge a caller by. */
function shownOf(identity: Identity): ProvingShown | undefined {
  if (identity.kind === 'token') return { token: identity.token }
  return identity.kind === 'named' && identity.chain !== undefined ? { certificate: identity.chain } : undefined
}

function isForbidden(error: unknown): error is Refused {
  return error instanceof Refused && error.code === 403
}
