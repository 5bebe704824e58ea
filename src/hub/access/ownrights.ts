/**
 * Whether an edge may have an interest without the credential of any caller, as it asks before it removes what it holds: a proof that
 * shows none. Its refusals tell it less: they are also those of a hub that cannot read what is wanted, or has not read policies yet.
 */
import type { Clock } from '../../base/clock.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import type { Interest } from '../../mirror/interest.ts'
import {
  decodeProof,
  encodeProofAnswer,
  type ProofAnswer,
  proofDenied,
  proofPurpose,
  takeProof,
} from '../../tunnel/proof/proof.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { AskingRate } from '../forwarding/rate.ts'
import type { JudgedEdge } from '../peers/rights.ts'
import { wantedOf } from '../sources/wanted.ts'
import { proofLimits } from './prooflimits.ts'
import type { ProvenRights } from './provenrights.ts'

type Parts = { readonly rights: Pick<ProvenRights, 'own'>; readonly clock: Clock }

export class OwnRights {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Takes the proofs without a credential among the streams of one link; the others go on to `next`. */
  acceptFor(edge: JudgedEdge, next: (incoming: IncomingStream) => void): (incoming: IncomingStream) => void {
    const rate = new AskingRate(this.#parts.clock, proofLimits.perSecond, proofLimits.burst)
    let waiting = 0
    return (incoming) => {
      const { purpose, token, certificate, stream } = incoming
      if (purpose !== proofPurpose || token !== undefined || certificate !== undefined) next(incoming)
      else if (waiting >= proofLimits.waitingMax) stream.giveUp('busy', 'too many questions of this edge wait')
      else {
        waiting++
        void this.#serve(edge, rate, incoming).finally(() => waiting--)
      }
    }
  }

  async #serve(edge: JudgedEdge, rate: AskingRate, { stream }: IncomingStream): Promise<void> {
    try {
      const wanted = wantedOf(decodeProof(await takeProof(stream)))
      const waitMs = rate.take()
      const answer = waitMs > 0 ? unknownFor(Math.ceil(waitMs)) : await this.#answer(edge, wanted)
      if (!stream.destroyed) stream.end(encodeProofAnswer(answer))
    } catch (error) {
      if (error instanceof LinkFault) stream.giveUp('unsent', error.message)
      else stream.giveUp('broken', 'the hub could not judge it')
    }
  }

  async #answer(edge: JudgedEdge, wanted: Interest | undefined): Promise<ProofAnswer> {
    const isGiven = wanted === undefined ? undefined : await this.#parts.rights.own(edge, wanted)
    if (isGiven === undefined) return unknownFor(proofLimits.unknownRetryMs)
    if (isGiven) return { verdict: 'allowed', forMs: 0, sentence: '', denied: proofDenied.not }
    const forMs = proofLimits.refusedRetryMs
    return { verdict: 'refused', forMs, sentence: 'no credential was shown', denied: proofDenied.byRights }
  }
}

function unknownFor(forMs: number): ProofAnswer {
  const sentence = 'the hub cannot tell now what this edge may have'
  return { verdict: 'unknown', forMs, sentence, denied: proofDenied.not }
}
