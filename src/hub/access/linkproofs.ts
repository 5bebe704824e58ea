/** What was proved over one link, and by whom: in memory, within limits, each for a while. Only what was allowed is here. */
import type { CarriedCertificate } from '../../tunnel/credentials.ts'
import type { Identity } from '../../upstream/upstream.ts'
import type { ProofLimits } from './prooflimits.ts'

/** A caller who may have an interest, with the credential by which that is looked at again. */
export type CallerProof = {
  readonly interest: string
  /** The same text for all credentials of one caller. */
  readonly caller: string
  readonly credential: Identity | CarriedCertificate
}

type HeldProof = CallerProof & { readonly provedAt: number }

export class LinkProofs {
  readonly #limits: ProofLimits
  /** By interest, then by caller; the one proved last is last. */
  readonly #proofs = new Map<string, Map<string, HeldProof>>()
  /** By caller, how many are theirs. */
  readonly #callers = new Map<string, number>()
  #size = 0
  #nameBytes = 0

  constructor(limits: ProofLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#size
  }

  /** Of one interest, what was proved last first. */
  of(interest: string, now: number): readonly CallerProof[] {
    this.#expire(interest, now)
    return [...(this.#proofs.get(interest)?.values() ?? [])].reverse()
  }

  /** Takes the place of what the same caller proved before. A sentence says why there is no room. */
  hold(proof: CallerProof, now: number): string | undefined {
    const { interest, caller } = proof
    const isNew = this.#proofs.get(interest)?.has(caller) !== true
    const full = isNew ? this.#full(interest, caller, now) : undefined
    if (full !== undefined) return full
    this.#drop(interest, caller)
    const present = this.#proofs.get(interest) ?? this.#begin(interest)
    present.set(caller, { ...proof, provedAt: now })
    this.#callers.set(caller, (this.#callers.get(caller) ?? 0) + 1)
    this.#size++
    for (const [oldest] of present) {
      if (present.size <= this.#limits.perInterestMax) break
      this.#drop(interest, oldest)
    }
    return undefined
  }

  /** Ends one that was found to be none, unless its caller has shown another credential since. */
  end({ interest, caller, credential }: CallerProof): void {
    if (this.#proofs.get(interest)?.get(caller)?.credential === credential) this.#drop(interest, caller)
  }

  #begin(interest: string): Map<string, HeldProof> {
    const begun = new Map<string, HeldProof>()
    this.#proofs.set(interest, begun)
    this.#nameBytes += Buffer.byteLength(interest)
    return begun
  }

  #full(interest: string, caller: string, now: number): string | undefined {
    const found = this.#whyFull(interest, caller)
    if (found === undefined) return undefined
    for (const name of [...this.#proofs.keys()]) this.#expire(name, now)
    return this.#whyFull(interest, caller)
  }

  #whyFull(interest: string, caller: string): string | undefined {
    const { proofsMax, callersMax, nameBytesMax } = this.#limits
    const nameBytes = this.#proofs.has(interest) ? 0 : Buffer.byteLength(interest)
    if (this.#size >= proofsMax || this.#nameBytes + nameBytes > nameBytesMax)
      return 'the callers of this edge have proved as much as a hub holds for one edge'
    if (!this.#callers.has(caller) && this.#callers.size >= callersMax)
      return `the proofs of ${callersMax} callers of this edge are held, which is as many as a hub holds`
    return undefined
  }

  #expire(interest: string, now: number): void {
    for (const { caller, provedAt } of [...(this.#proofs.get(interest)?.values() ?? [])])
      if (now - provedAt >= this.#limits.lifeMs) this.#drop(interest, caller)
  }

  #drop(interest: string, caller: string): void {
    const present = this.#proofs.get(interest)
    if (present?.delete(caller) !== true) return
    this.#size--
    const left = (this.#callers.get(caller) ?? 1) - 1
    if (left > 0) this.#callers.set(caller, left)
    else this.#callers.delete(caller)
    if (present.size > 0) return
    this.#proofs.delete(interest)
    this.#nameBytes -= Buffer.byteLength(interest)
  }
}
