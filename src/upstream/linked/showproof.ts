/** One proof over one link: the credential of a caller, an interest, and what the hub says to both. */
import type { Clock } from '../../base/clock.ts'
import { StreamBroken } from '../../tunnel/duplex.ts'
import {
  decodeProofAnswer,
  encodeProof,
  type ProofAnswer,
  proofDenied,
  proofPurpose,
  takeProof,
} from '../../tunnel/proof/proof.ts'
import type { TunnelStreams } from '../../tunnel/streams.ts'
import type { ProvingShown } from './askingcredentials.ts'

/** The hub may have to ask the API server who the caller is and what it may do, 10 s each at most. */
const answerMsMax = 30_000
/** After a stream that broke off, or that the hub had no room for. */
const brokenRetryMs = 5_000
/** A hub of a release that takes none does not learn to while a link lives. */
const untakenRetryMs = 10 * 60_000

type Parts = {
  readonly streams: Pick<TunnelStreams, 'open' | 'takesCertificates'> | undefined
  readonly interest: string
  /** Without it the edge asks for itself: what policies and its node give it. */
  readonly shown?: ProvingShown | undefined
  readonly clock: Clock
}

/** Never rejects: what is not answered is unknown. */
export async function showProof({ streams, interest, shown, clock }: Parts): Promise<ProofAnswer> {
  if (shown !== undefined && 'certificate' in shown && streams?.takesCertificates !== true)
    return unknown('the hub takes no certificates of callers', untakenRetryMs)
  const stream = streams?.open({ purpose: proofPurpose, ...shown })
  if (stream === undefined) return unknown('there is no stream for it now', brokenRetryMs)
  const cancel = clock.setTimer(answerMsMax, () => stream.giveUp('cancelled', 'it took too long'))
  try {
    stream.end(encodeProof(interest))
    return decodeProofAnswer(await takeProof(stream))
  } catch (error) {
    stream.destroy()
    const isBroken = error instanceof StreamBroken
    const isUntaken = isBroken && error.reason === 'unknown'
    const sentence = isBroken ? error.message : 'the answer of the hub makes no sense'
    return unknown(sentence, isUntaken ? untakenRetryMs : brokenRetryMs)
  } finally {
    cancel()
  }
}

function unknown(sentence: string, forMs: number): ProofAnswer {
  return { verdict: 'unknown', forMs, sentence, denied: proofDenied.not }
}
