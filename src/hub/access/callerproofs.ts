/**
 * Callers behind edges, as far as they prove that an edge may have an interest. An edge shows the credential of a caller who asked it
 * for something, over its link and for that link alone; who the caller is and what it may do is judged as a request of its own
 * would be. What was allowed is held in memory, and looked at again as long as the edge has the interest: it ends with the link,
 * the credential, the right, or when it is not proved again for a while.
 *
 * Callers are judged without what binds them to one pod or node, which no authorizer of Kubernetes looks at: so the same question
 * is asked of the API server once for the pods of a DaemonSet on all nodes together.
 */
import type { Access } from '../../access/access.ts'
import { idOf } from '../../access/identity.ts'
import type { OpenAccess } from '../../access/open.ts'
import { makeQuestion } from '../../access/question.ts'
import type { Clock } from '../../base/clock.ts'
import { Counter, gauge } from '../../base/metrics.ts'
import type { Caller } from '../../kube/caller.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import type { Interest } from '../../mirror/interest.ts'
import { CarriedCertificate, type CarriedToken, type HeldCredential } from '../../tunnel/credentials.ts'
import { sentenceOf } from '../../tunnel/frames.ts'
import {
  decodeProof,
  encodeProofAnswer,
  type ProofAnswer,
  proofDenied,
  proofPurpose,
  takeProof,
} from '../../tunnel/proof/proof.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import type { Identity } from '../../upstream/upstream.ts'
import { unbound } from '../callers/callers.ts'
import type { JudgedCertificate } from '../callers/certificates.ts'
import type { SpokenCallers } from '../callers/spoken.ts'
import { AskingRate } from '../forwarding/rate.ts'
import type { JudgedEdge } from '../peers/rights.ts'
import { wantedOf } from '../sources/wanted.ts'
import { type CallerProof, LinkProofs } from './linkproofs.ts'
import { type ProofLimits, proofLimits } from './prooflimits.ts'
import { waysTo } from './waysto.ts'

type Parts = {
  readonly access: Pick<Access, 'recheck' | 'refusal'>
  readonly recheckCaller: OpenAccess['recheckCaller']
  /** The callers for whom edges may speak by certificates; without it no certificate is taken. */
  readonly spoken?: Pick<SpokenCallers, 'judge'> | undefined
  readonly clock: Clock
  readonly limits?: Partial<ProofLimits>
}

/** A token, or a certificate for whose caller this edge may speak. */
type ProvingCredential = CallerProof['credential']

type ProvingLink = {
  readonly proofs: LinkProofs
  readonly rate: AskingRate
  /** One for each token, so that its digest is made once. */
  readonly identities: WeakMap<CarriedToken, Identity>
  waiting: number
  isOver: boolean
}

type Judged =
  | { readonly verdict: 'allowed'; readonly caller: string }
  | { readonly verdict: 'refused' | 'unknown'; readonly sentence: string; readonly denied?: ProofAnswer['denied'] }

export class CallerProofs {
  readonly #parts: Parts
  readonly #limits: ProofLimits
  readonly #links = new Map<JudgedEdge, ProvingLink>()
  readonly #counter = new Counter()
  /** Under judgement, of all links. */
  #waiting = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...proofLimits, ...parts.limits }
  }

  /** Takes the proofs among the streams of one link; the others go on to `next`. */
  acceptFor(edge: JudgedEdge, next: (incoming: IncomingStream) => void): (incoming: IncomingStream) => void {
    return (incoming) => {
      if (incoming.purpose !== proofPurpose) next(incoming)
      else this.#accept(edge, incoming)
    }
  }

  /** Undefined: a caller has proved that this link may have it, and still may; else a sentence that says why none has. */
  async judge(edge: JudgedEdge, wanted: Interest): Promise<string | undefined> {
    const link = this.#links.get(edge)
    let why = 'it needs the credential of a caller who may, and none was shown over this link'
    for (const proof of link?.proofs.of(wanted.name, this.#parts.clock.steady()) ?? []) {
      const judged = await this.#judge(edge, proof.credential, wanted)
      // What cannot be told now was told before.
      if (judged.verdict !== 'refused') return undefined
      link?.proofs.end(proof)
      why = `it needs the credential of a caller who may, and the last one may no more: ${judged.sentence}`
    }
    return why
  }

  /** The link is over, and what was shown over it is forgotten. */
  left(edge: JudgedEdge): void {
    const link = this.#links.get(edge)
    if (link === undefined) return
    link.isOver = true
    this.#links.delete(edge)
  }

  figures(): string[] {
    let held = 0
    for (const { proofs } of this.#links.values()) held += proofs.size
    return [
      gauge('ake_hub_proofs', 'Interests of edges that a caller has proved, times those callers.', [['', held]]),
      this.#counter.render('ake_hub_proofs_total', 'Credentials that edges showed for an interest, by verdict.'),
    ]
  }

  #linkOf(edge: JudgedEdge): ProvingLink {
    const { clock } = this.#parts
    const { perSecond, burst } = this.#limits
    const known = this.#links.get(edge)
    if (known !== undefined) return known
    const link: ProvingLink = {
      proofs: new LinkProofs(this.#limits),
      rate: new AskingRate(clock, perSecond, burst),
      identities: new WeakMap(),
      waiting: 0,
      isOver: false,
    }
    this.#links.set(edge, link)
    return link
  }

  #accept(edge: JudgedEdge, incoming: IncomingStream): void {
    const link = this.#linkOf(edge)
    if (link.waiting >= this.#limits.waitingMax) {
      incoming.stream.giveUp('busy', 'too many proofs of this edge wait to be judged')
      return
    }
    link.waiting++
    // Until it is judged, and not only until its edge has left: otherwise leaving at once would be a way around the limit.
    void this.#serve(edge, link, incoming).finally(() => link.waiting--)
  }

  async #serve(edge: JudgedEdge, link: ProvingLink, { stream, ...shown }: IncomingStream): Promise<void> {
    try {
      const interest = decodeProof(await takeProof(stream))
      const answer = await this.#answer(edge, link, { interest, shown })
      this.#counter.add(`verdict="${answer.verdict}"`)
      if (!stream.destroyed) stream.end(encodeProofAnswer({ ...answer, sentence: sentenceOf(answer.sentence) }))
    } catch (error) {
      // What came whole and makes no sense is this stream's fault alone; of anything else nothing is told that may hold a token.
      if (error instanceof LinkFault) stream.giveUp('unsent', error.message)
      else stream.giveUp('broken', 'the hub could not judge it')
    }
  }

  async #answer(
    edge: JudgedEdge,
    link: ProvingLink,
    { interest, shown }: { readonly interest: string; readonly shown: HeldCredential },
  ): Promise<ProofAnswer> {
    const { refusedRetryMs, unknownRetryMs, lifeMs, waitingTotalMax } = this.#limits
    const waitMs = link.rate.take()
    if (waitMs > 0) return answerOf('unknown', Math.ceil(waitMs), 'this edge proves too often')
    const wanted = wantedOf(interest)
    if (wanted === undefined) return answerOf('refused', lifeMs, 'no interest is called so')
    const credential = credentialOf(link, shown)
    if (credential === undefined) return answerOf('refused', lifeMs, 'no credential was shown')
    if (this.#waiting >= waitingTotalMax) return answerOf('unknown', unknownRetryMs, waiting)
    this.#waiting++
    const judged = await this.#judge(edge, credential, wanted).finally(() => this.#waiting--)
    if (judged.verdict !== 'allowed') {
      const { verdict, sentence, denied } = judged
      return answerOf(verdict, verdict === 'refused' ? refusedRetryMs : unknownRetryMs, sentence, denied)
    }
    if (link.isOver) return answerOf('unknown', 0, 'the link has ended')
    const { caller } = judged
    const full = link.proofs.hold({ interest: wanted.name, caller, credential }, this.#parts.clock.steady())
    if (full !== undefined) return answerOf('unknown', refusedRetryMs, full)
    return answerOf('allowed', lifeMs, '')
  }

  /** Who stands behind a credential now. */
  async #callerOf(edge: JudgedEdge, credential: ProvingCredential): Promise<{ readonly caller: Caller } | Judged> {
    if (credential instanceof CarriedCertificate) {
      const judged: JudgedCertificate = this.#parts.spoken?.judge(edge.name, credential) ?? untaken
      if ('caller' in judged) return judged
      const { sentence, isForeign, isUnread = false } = judged
      if (isUnread) return { verdict: 'unknown', sentence }
      return { verdict: 'refused', sentence, denied: isForeign ? proofDenied.not : proofDenied.unspoken }
    }
    const found = await this.#parts.recheckCaller(credential)
    if (found === 'refused') return { verdict: 'refused', sentence: 'the API server does not accept this credential' }
    return found === 'unknown' ? unjudged : { caller: found }
  }

  async #judge(edge: JudgedEdge, credential: ProvingCredential, wanted: Interest): Promise<Judged> {
    const { access } = this.#parts
    const found = await this.#callerOf(edge, credential)
    if ('verdict' in found) return found
    const caller = unbound(found.caller)
    const named: Identity = { kind: 'named', caller }
    let [isUnknown, sentence] = [false, '']
    for (const way of waysTo(wanted)) {
      const questions = way.map(makeQuestion)
      const verdicts = await Promise.all(questions.map((question) => access.recheck(named, question)))
      const at = verdicts.findIndex((one) => one !== 'allowed')
      if (at < 0) return { verdict: 'allowed', caller: idOf(caller) }
      isUnknown ||= verdicts.includes('unknown')
      const denied = questions[verdicts.indexOf('denied')]
      if (denied !== undefined) sentence = access.refusal(named, denied, 'denied').message
    }
    return isUnknown ? unjudged : { verdict: 'refused', sentence, denied: proofDenied.byRights }
  }
}

function answerOf(
  verdict: ProofAnswer['verdict'],
  forMs: number,
  sentence: string,
  denied: ProofAnswer['denied'] = proofDenied.not,
): ProofAnswer {
  return { verdict, forMs, sentence, denied }
}

const untaken = { sentence: 'the hub takes no certificates', isForeign: true }
const waiting = 'too many proofs wait to be judged'
const unjudged: Judged = { verdict: 'unknown', sentence: 'the hub cannot tell now what this caller may do' }

function credentialOf(
  { identities }: ProvingLink,
  { token, certificate }: HeldCredential,
): ProvingCredential | undefined {
  if (token === undefined) return certificate
  const known = identities.get(token)
  const identity: Identity = known ?? { kind: 'token', token: token.tell() }
  identities.set(token, identity)
  return identity
}
