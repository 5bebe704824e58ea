/**
 * Certificates over links: edges hear which authorities the hub has, and get a new certificate for the one that "ake hub issue" made, before
 * it ends or once another authority signs. A link gets one for its own name and for no other, whatever it asks for; what the cluster
 * signed is the cluster's to renew.
 */
import { createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { LinkFault } from '../../link/frames/bytes.ts'
import { StreamBroken } from '../../tunnel/duplex.ts'
import {
  authoritiesPurpose,
  clientAuthoritiesPurpose,
  decodeKnown,
  decodeRenewal,
  digestOfAuthorities,
  encodeAuthorities,
  encodeRenewalAnswer,
  isProof,
  type RenewalAnswer,
  type RenewalWish,
  renewalPurpose,
  takeSaid,
} from '../../tunnel/identity/identity.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import { AskingRate } from '../forwarding/rate.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import { authoritiesOf, isTrusted } from '../state/authorities.ts'
import { renewedCertificate } from '../state/certificates.ts'
import type { HubState } from '../state/state.ts'

type Parts = {
  readonly state: () => HubState
  /** By which the cluster knows clients; none: they are not known yet. */
  readonly clusterAuthorities: () => readonly X509Certificate[]
  /** A sentence for an edge whose certificate counts no more. */
  readonly revoked: (edge: EdgePeer) => string | undefined
  readonly clock: Clock
  readonly log: Log
}

type ToldPurpose = typeof authoritiesPurpose | typeof clientAuthoritiesPurpose
type IdentityLink = { readonly rate: AskingRate; readonly waiting: Map<ToldPurpose, IncomingStream> }

/** Of one link: an edge renews once in months, and tries again when its disk has failed. */
const renewalsPerSecond = 1 / 60
const renewalsBurst = 5
/** Of all links: a signature takes a tenth of a millisecond, and a whole fleet renews when the authority was switched. */
const allPerSecond = 100
const allBurst = 200
/** No certificate is replaced in the first half of its life, unless another authority signs now. */
const dueAt = 0.5
const refusedRetryMs = 3_600_000

export class EdgeIdentities {
  readonly #parts: Parts
  readonly #links = new WeakMap<EdgePeer, IdentityLink>()
  /** Streams over which edges wait to hear of other authorities. */
  readonly #waiting = new Map<IncomingStream, { readonly known: Buffer; readonly purpose: ToldPurpose }>()
  readonly #rate: AskingRate
  /** Since it was made. */
  readonly counts = { renewed: 0, refused: 0 }

  constructor(parts: Parts) {
    this.#parts = parts
    this.#rate = new AskingRate(parts.clock, allPerSecond, allBurst)
  }

  /** Takes what is about certificates among the streams of one link; the others go on to `next`. */
  acceptFor(edge: EdgePeer, next: (incoming: IncomingStream) => void): (incoming: IncomingStream) => void {
    return (incoming) => {
      const { purpose } = incoming
      if (purpose === authoritiesPurpose || purpose === clientAuthoritiesPurpose)
        void this.#guarded(incoming, () => this.#tellLater(edge, incoming, purpose))
      else if (incoming.purpose === renewalPurpose) void this.#guarded(incoming, () => this.#renew(edge, incoming))
      else next(incoming)
    }
  }

  /** There are other authorities: every edge that waits hears of them. */
  changed(): void {
    for (const [incoming, { known, purpose }] of [...this.#waiting]) this.#tell(incoming, known, purpose)
  }

  async #guarded(incoming: IncomingStream, serve: () => Promise<void>): Promise<void> {
    try {
      await serve()
    } catch (error) {
      const isTold = error instanceof StreamBroken || error instanceof LinkFault
      incoming.stream.giveUp('other', isTold ? error.message : 'the hub made a mistake')
      if (!isTold) throw error
    }
  }

  /** One of each kind for each link: the next takes the place of the one before it. */
  async #tellLater(edge: EdgePeer, incoming: IncomingStream, purpose: ToldPurpose): Promise<void> {
    const known = decodeKnown(await takeSaid(incoming.stream))
    const link = this.#linkOf(edge)
    link.waiting.get(purpose)?.stream.giveUp('cancelled', 'it was asked again')
    link.waiting.set(purpose, incoming)
    this.#waiting.set(incoming, { known, purpose })
    incoming.stream.once('close', () => {
      this.#waiting.delete(incoming)
      if (link.waiting.get(purpose) === incoming) link.waiting.delete(purpose)
    })
    this.#tell(incoming, known, purpose)
  }

  #tell(incoming: IncomingStream, known: Buffer, purpose: ToldPurpose): void {
    const authorities = this.#authoritiesOf(purpose)
    if (authorities.length === 0 || digestOfAuthorities(authorities).equals(known)) return
    this.#waiting.delete(incoming)
    incoming.stream.end(encodeAuthorities(authorities.map(({ raw }) => raw)))
  }

  #authoritiesOf(purpose: ToldPurpose): readonly X509Certificate[] {
    const { state, clusterAuthorities } = this.#parts
    if (purpose === clientAuthoritiesPurpose) return clusterAuthorities()
    return authoritiesOf(state()).map(({ certificate }) => certificate)
  }

  async #renew(edge: EdgePeer, { stream }: IncomingStream): Promise<void> {
    const waitMs = Math.max(this.#linkOf(edge).rate.take(), this.#rate.take())
    const wish = decodeRenewal(await takeSaid(stream))
    const answer = waitMs > 0 ? no('it asks too often', Math.ceil(waitMs)) : this.#answerTo(edge, wish)
    const isMade = answer.certificate.length > 0
    this.counts[isMade ? 'renewed' : 'refused']++
    const { log } = this.#parts
    log[isMade ? 'info' : 'warn']('edge.renewal', {
      edge: edge.name,
      from: edge.from,
      ...(!isMade && { why: answer.sentence }),
    })
    stream.end(encodeRenewalAnswer(answer))
  }

  #answerTo(edge: EdgePeer, { key, proof }: RenewalWish): RenewalAnswer {
    const { state, revoked, clock } = this.#parts
    const { name, certificate } = edge
    const now = clock.now()
    const taken = revoked(edge)
    if (taken !== undefined) return no(taken)
    if (certificate.signer !== 'hub') return no('the cluster signed this certificate, and renews it')
    const retired = retirementOf(edge, state())
    if (retired !== undefined) return no(retired)
    const [current] = authoritiesOf(state())
    const isOld = certificate.authority !== current?.certificate.fingerprint256
    const due = certificate.issuedAtMs + (certificate.endsAtMs - certificate.issuedAtMs) * dueAt
    if (!isOld && now < due) return no('this certificate is not in the second half of its life', due - now)
    const publicKey = publicKeyOf(key)
    if (publicKey === undefined) return no('the key is no P-256 key')
    if (!isProof(proof, key, name, publicKey)) return no('the key was not shown to be at hand')
    const { vouchedAtMs: vouchedAt } = certificate
    const renewed = renewedCertificate(state(), { name, vouchedAt, publicKey }, now)
    return { certificate: renewed, retryAfterMs: 0, sentence: '' }
  }

  #linkOf(edge: EdgePeer): IdentityLink {
    const known = this.#links.get(edge)
    if (known !== undefined) return known
    const link: IdentityLink = {
      rate: new AskingRate(this.#parts.clock, renewalsPerSecond, renewalsBurst),
      waiting: new Map(),
    }
    this.#links.set(edge, link)
    return link
  }
}

/** A sentence for an edge whose certificate an authority signed that counts no more. Links outlive what let them in: each is asked again. */
export function retirementOf(
  { name, certificate }: Pick<EdgePeer, 'name' | 'certificate'>,
  state: HubState,
): string | undefined {
  if (certificate.signer !== 'hub' || isTrusted(state, certificate.authority)) return undefined
  return `the authority that signed the certificate of "${name}" was retired: issue a new credential with "ake hub issue", or join again`
}

function no(sentence: string, retryAfterMs = refusedRetryMs): RenewalAnswer {
  return { certificate: Buffer.alloc(0), retryAfterMs: Math.max(0, Math.ceil(retryAfterMs)), sentence }
}

/** Of no other kind than those that the hub makes itself. */
function publicKeyOf(key: Buffer): KeyObject | undefined {
  try {
    const publicKey = createPublicKey({ key, format: 'der', type: 'spki' })
    return publicKey.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? publicKey : undefined
  } catch {
    return undefined
  }
}
