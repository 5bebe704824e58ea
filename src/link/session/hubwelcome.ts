/**
 * What the hub says of itself and of its cluster: in its welcome, behind that, and again whenever something of it changes. An edge that
 * does not fit, or that the hub does not admit, is told why instead.
 */
import { chooseProtocol, type LinkFrame } from '../frames/frames.ts'
import { misfitOf, noProtocol, type SessionRefusal } from './hubgreeting.ts'
import type { HubSessionParts } from './hubparts.ts'
import type { SessionLimits } from './limits.ts'
import type { LinkTerms } from './session.ts'

type Said = 'hub' | 'release' | 'cluster' | 'epoch' | 'lost' | 'digestKey' | 'trustsEdges' | 'signs'
type Parts = {
  readonly own: Pick<HubSessionParts, Said | 'admit'>
  readonly limits: SessionLimits
  readonly send: (frame: LinkFrame) => void
}

export class HubWelcome {
  readonly #parts: Parts
  #epoch: number
  #lost: number
  #terms: LinkTerms | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#epoch = parts.own.epoch
    this.#lost = parts.own.lost
  }

  get epoch(): number {
    return this.#epoch
  }

  /** Undefined: the edge is welcome, and was told so. */
  greet(hello: Extract<LinkFrame, { readonly kind: 'hello' }>, isStreamPaced: boolean): SessionRefusal | undefined {
    const { own, limits, send } = this.#parts
    const { hub, release, cluster, digestKey, trustsEdges = false, admit } = own
    const protocol = chooseProtocol(hello)
    if (protocol === undefined) return noProtocol
    const refusal = misfitOf(hello, { cluster, epoch: this.#epoch, limits }) ?? admit(hello.edge)
    if (refusal !== undefined) return refusal
    const [trusts, counts] = [trustsEdges ? 1 : 0, isStreamPaced ? 1 : 0]
    const said = { protocol, hub, release, cluster, epoch: this.#epoch, window: limits.windowWanted, digestKey }
    send({ kind: 'welcome', ...said, trusts, counts })
    if (hello.cluster !== '' && hello.epoch < this.#epoch)
      send({ kind: 'lost', interest: 0, epoch: this.#epoch, version: this.#lost })
    this.tellTerms()
    this.tellSigns()
    return undefined
  }

  /** The cluster was put back. */
  putBack(epoch: number, version: number): void {
    this.#epoch = epoch
    this.#lost = version
  }

  /** What policies say of the edge. */
  set terms(terms: LinkTerms) {
    this.#terms = terms
  }

  tellTerms(): void {
    const terms = this.#terms
    if (terms !== undefined) this.#parts.send({ kind: 'terms', ...terms, trusts: terms.trusts ? 1 : 0 })
  }

  /** An edge that has its documents by these asks for none of them. */
  tellSigns(): void {
    const { own, send } = this.#parts
    const { signs = noSigns } = own
    if (signs().length > 0) send({ kind: 'documents', signs: signs() })
  }
}

const noSigns = (): readonly Buffer[] => []
