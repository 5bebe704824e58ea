/**
 * How often edges, and the callers behind them, may ask. Everything is kept by name and not by link, so that an edge that reconnects goes on with
 * what it has left. A caller has a share at each edge, which no other edge can use up: the kube-proxies of all edges are one user.
 * What one caller asks through all edges together has a limit of its own, many times as large.
 */
import type { Clock } from '../../base/clock.ts'
import type { ForwardingLimits } from './limits.ts'
import { AskingRates } from './rate.ts'

/** Rates as they count at one edge: a policy may say others than the options. */
export type AskingTerms = Pick<ForwardingLimits, 'edgePerSecond' | 'edgeBurst' | 'callerPerSecond' | 'callerBurst'>

/** As whom a request counts. */
export type CountedCaller = {
  readonly name: string
  /** The same one may ask through other edges, too. */
  readonly isAnywhere: boolean
}

/** Milliseconds to wait (0: it may be asked now), and for whose sake, as the beginning of a sentence. */
type AskingWait = { readonly waitMs: number; readonly who: string }

export class AskingShares {
  readonly #limits: ForwardingLimits
  readonly #edges: AskingRates
  readonly #certificates: AskingRates
  /** By edge and caller. */
  readonly #callers: AskingRates
  /** By caller, at all edges together. */
  readonly #everywhere: AskingRates

  constructor(clock: Clock, limits: ForwardingLimits) {
    this.#limits = limits
    this.#edges = new AskingRates(clock, limits.edgesMax)
    this.#certificates = new AskingRates(clock, limits.edgesMax)
    this.#callers = new AskingRates(clock, limits.callersMax)
    this.#everywhere = new AskingRates(clock, limits.callersMax)
  }

  ofEdge(edge: string, { edgePerSecond, edgeBurst }: AskingTerms): AskingWait {
    return { waitMs: this.#edges.take(edge, edgePerSecond, edgeBurst), who: 'this edge asks' }
  }

  /** For one that its link did not show before. */
  ofCertificate(edge: string): AskingWait {
    const { certificatesPerSecond, certificatesBurst } = this.#limits
    const waitMs = this.#certificates.take(edge, certificatesPerSecond, certificatesBurst)
    return { waitMs, who: 'this edge shows other certificates and asks' }
  }

  /** At its edge first: what is refused there takes nothing from the caller at other edges. */
  ofCaller(edge: string, { name, isAnywhere }: CountedCaller, terms: AskingTerms): AskingWait {
    // No name of a node has a space in it.
    const waitMs = this.#callers.take(`${edge} ${name}`, terms.callerPerSecond, terms.callerBurst)
    if (waitMs > 0 || !isAnywhere) return { waitMs, who: 'this caller asks' }
    // By the options, whatever a policy says of one of these edges.
    const { callerPerSecond, callerBurst, callerEdges } = this.#limits
    const ofAllMs = this.#everywhere.take(name, callerPerSecond * callerEdges, callerBurst * callerEdges)
    return { waitMs: ofAllMs, who: 'this caller asks, through all edges together,' }
  }
}
