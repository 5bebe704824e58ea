/**
 * Where a read is answered: from the copy, by the cloud, or not at all. Reads never wait for the network, with two bounded
 * exceptions (decision 11 of docs/architecture.md); what was never synced is held for a moment while the cloud is there and
 * refused while it is not, never shown as empty (A1). Whether the caller may read it was settled before.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Cache } from '../../../cache/cache.ts'
import type { Scope } from '../../../kube/scope.ts'
import { qualified, type StatusError, tooManyRequests } from '../../../kube/status.ts'
import { humanDuration } from '../../../kube/table/duration.ts'
import type { Contact } from '../../../mirror/contact.ts'
import { interestOf } from '../../../mirror/interest.ts'
import type { Interests } from '../../../mirror/interests.ts'
import { type Mirrored, mirrorLimits } from '../../../mirror/mirror.ts'
import type { MirroredInterest } from '../../../mirror/mirrored.ts'
import type { Identity, Upstream } from '../../../upstream/upstream.ts'
import { neverSynced } from '../../forward/offline.ts'
import { heldOf } from './held.ts'
import { Repeats } from './repeats.ts'

export type Read = {
  readonly verb: 'get' | 'list' | 'watch'
  readonly known: Mirrored
  readonly scope: Scope
  /** Of a GET: the object's key. */
  readonly key?: string
  /** `recent`: no version was given. `continue`: a page of an earlier list. */
  readonly state: 'recent' | 'any' | 'version' | 'continue'
  /** The version asked for, or the one a watch resumes after; 0 for none. */
  readonly version: number
  /** A list at exactly that version. */
  readonly exact?: boolean
  /** Whether a continue token is one of ours. */
  readonly ownToken?: boolean
  /** The same text for every credential of one caller. */
  readonly caller: string
  /** In whose name it is asked for. */
  readonly identity?: Identity
  /** Nothing goes up in its caller's name: what is not mirrored begins to be. */
  readonly isKeptHere?: boolean
  /** How fresh the copy is was asked for this read: it is as fresh as it will be. */
  readonly isAsked?: boolean
  /** Its caller's credential was shown to the hub for it, or could not be in time. */
  readonly isProved?: boolean
  /** Why the API server is not asked to confirm it, where that is so. */
  readonly unasked?: string
}

export type ReadRoute =
  /** The copy answers; `warning` says how old it is where its reader would take it for newer. */
  | {
      readonly kind: 'local'
      readonly cache: Cache
      readonly mirrored: MirroredInterest | undefined
      readonly warning?: string
    }
  /** The cloud is asked first; where it does not answer in time, the copy does. */
  | { readonly kind: 'confirm'; readonly cache: Cache; readonly mirrored: MirroredInterest | undefined }
  | { readonly kind: 'forward' }
  /** The copy may be as new as any; whether it is has to be asked first. */
  | { readonly kind: 'freshen' }
  /** It was not to be had, and the caller's credential may be why it is: the read waits for the hub's word, for a moment. */
  | { readonly kind: 'prove'; readonly judged: Promise<void> }
  /** Not yet synced: the read waits until it is, or for its time. */
  | { readonly kind: 'hold'; readonly mirrored: MirroredInterest }

/** Hears in whose name an interest is asked for: a hub feeds what a caller's credential proves. */
export interface AskedInterests {
  /** Of what was refused without: when the hub has judged this one. */
  asked(interest: string, identity: Identity): Promise<void> | undefined
}

type Parts = {
  readonly interests: Interests
  readonly upstream: Upstream
  readonly clock: Clock
  readonly contact: Pick<Contact, 'ageMsOf'>
  /** None where the edge follows in its own name. */
  readonly proofs?: AskedInterests | undefined
}

export class Front {
  readonly #interests: Interests
  readonly #upstream: Upstream
  readonly #clock: Clock
  readonly #contact: Pick<Contact, 'ageMsOf'>
  readonly #proofs: AskedInterests | undefined
  readonly #repeats: Repeats

  constructor(parts: Parts) {
    this.#interests = parts.interests
    this.#upstream = parts.upstream
    this.#clock = parts.clock
    this.#contact = parts.contact
    this.#proofs = parts.proofs
    this.#repeats = new Repeats(parts.clock)
  }

  /** By which way it is answered now; what is worth mirroring begins to be. */
  route(read: Read): ReadRoute {
    switch (read.verb) {
      case 'get':
        return this.#get(read)
      case 'list':
        return this.#list(read)
      case 'watch':
        return this.#watch(read)
    }
  }

  #get(read: Read): ReadRoute {
    const { scope, key = '', known } = read
    const mirrored = this.#interests.covering(scope)
    void this.#prove(mirrored, read)
    if (mirrored !== undefined) this.#interests.asked(mirrored, read)
    let answering = mirrored
    let cache = mirrored?.readable
    if (cache === undefined) {
      answering = this.#interests.holding(scope, key)
      cache = answering?.readable
    }
    if (cache === undefined) {
      this.#requireCloud(read)
      // It is itself forwarded. A name that its caller asks for again is worth an interest, whether it exists or not.
      const isNew = mirrored === undefined && this.#mayMirror(known, scope)
      const begun = isNew && (read.isKeptHere || this.#isRepeated(read)) ? this.#begin(read) : mirrored
      const isHeld = read.isKeptHere && begun !== undefined && !begun.hopeless
      return isHeld ? { kind: 'hold', mirrored: begun } : { kind: 'forward' }
    }
    // A damaged object is fetched from where it is whole.
    if (cache.isCorrupt(key)) {
      this.#requireCloud(read)
      return { kind: 'forward' }
    }
    if (read.state !== 'recent') return { kind: 'local', cache, mirrored: answering }
    const isReachable = this.#upstream.reachability.state === 'reachable'
    if (isReachable && read.unasked === undefined) return { kind: 'confirm', cache, mirrored: answering }
    const why = isReachable && read.unasked !== undefined ? { why: read.unasked } : {}
    return { kind: 'local', cache, mirrored: answering, warning: this.ageOf(answering, why) }
  }

  /** The cloud had what a forwarded GET asked for: from the next time on the copy knows. */
  found(read: Read): void {
    const { scope, known } = read
    if (this.#mayMirror(known, scope) && this.#interests.covering(scope) === undefined) this.#begin(read)
  }

  #list(read: Read): ReadRoute {
    const { scope, known, state } = read
    const mirrored = this.#interests.covering(scope, state === 'version' ? read.version : 0)
    const judged = this.#prove(mirrored, read)
    if (judged !== undefined) return { kind: 'prove', judged }
    if (mirrored === undefined || mirrored.hopeless) return this.#uncoveredList(read, mirrored)
    this.#interests.asked(mirrored, read)
    const { readable: cache } = mirrored
    if (state === 'continue' && read.ownToken !== true && this.#upstream.reachability.state === 'reachable') {
      return { kind: 'forward' }
    }
    if (cache === undefined) {
      this.#requireCloud(read)
      return state === 'continue' ? { kind: 'forward' } : { kind: 'hold', mirrored }
    }
    if (this.#isBetterThere(cache)) return { kind: 'forward' }
    // The API server may remember more than our history of it.
    const isPast = read.exact === true && read.version < cache.history.floor
    if (isPast && this.#upstream.reachability.state === 'reachable') return { kind: 'forward' }
    if (state !== 'recent') return { kind: 'local', cache, mirrored }
    if (known.resource.verbs.includes('watch') && this.#isFresh(mirrored, read))
      return { kind: 'local', cache, mirrored }
    const { reachability, freshen } = this.#upstream
    if (freshen !== undefined && read.isAsked !== true && reachability.state === 'reachable') return { kind: 'freshen' }
    return { kind: 'local', cache, mirrored, warning: this.ageOf(mirrored) }
  }

  #uncoveredList(read: Read, hopeless: MirroredInterest | undefined): ReadRoute {
    const { scope, known, state } = read
    this.#requireCloud(read)
    if (hopeless !== undefined || !this.#mayMirror(known, scope) || state === 'continue') return { kind: 'forward' }
    if (state === 'recent' && !read.isKeptHere && !this.#isRepeated(read)) return { kind: 'forward' }
    const mirrored = this.#begin(read)
    return mirrored === undefined ? { kind: 'forward' } : { kind: 'hold', mirrored }
  }

  #watch(read: Read): ReadRoute {
    const { scope, known, version } = read
    const mirrored = this.#interests.covering(scope, version)
    const judged = this.#prove(mirrored, read)
    if (judged !== undefined) return { kind: 'prove', judged }
    if (mirrored !== undefined && !mirrored.hopeless) {
      this.#interests.asked(mirrored, read)
      const { readable: cache } = mirrored
      if (cache === undefined) {
        this.#requireCloud(read)
        return { kind: 'hold', mirrored }
      }
      if (read.state !== 'version' && this.#isBetterThere(cache)) return { kind: 'forward' }
      return { kind: 'local', cache, mirrored }
    }
    this.#requireCloud(read)
    if (mirrored !== undefined || !this.#mayMirror(known, scope)) return { kind: 'forward' }
    const begun = this.#begin(read, read.state === 'version' ? version : undefined)
    return begun === undefined ? { kind: 'forward' } : { kind: 'hold', mirrored: begun }
  }

  /** A list that would lack a damaged object is the cloud's to give, until the object is fetched again (D4). */
  #isBetterThere(cache: Cache): boolean {
    return cache.isDamaged && this.#upstream.reachability.state !== 'unreachable'
  }

  /** Throws what is said of things that were never synced while the cloud is away. */
  #requireCloud({ verb, scope, known }: Read): void {
    const { state, why } = this.#upstream.reachability
    if (state !== 'unreachable') return
    const { group, version, resource, namespace } = scope
    const what = qualified(scope)
    const held = verb === 'get' ? '' : heldOf(scope, this.#interests.of(group, version, resource))
    if (held !== '') throw neverSynced(why, `all ${what}`, held)
    // What an option names already only waits for its first list.
    const isHelped = this.#mayMirror(known, scope) && this.#interests.covering(scope)?.record.standing !== true
    const option = `--mirror ${what}${namespace && `@${namespace}`}`
    throw neverSynced(why, what, isHelped ? `for the next time, start the edge with ${option}` : '')
  }

  #mayMirror({ mirrorable, resource }: Mirrored, { namespace }: Scope): boolean {
    if (!mirrorable) return false
    // Every node renews its own every ten seconds: a caller that wants them all asks the cloud.
    const isLeases = resource.group === 'coordination.k8s.io' && resource.resource === 'leases'
    return !(isLeases && (namespace === '' || namespace === 'kube-node-lease'))
  }

  #begin(read: Read, firstVersion?: number): MirroredInterest | undefined {
    const { scope, known, caller, verb, identity } = read
    // Before it is followed.
    if (identity !== undefined) void this.#proofs?.asked(interestOf(scope).name, identity)
    const first = firstVersion === undefined ? {} : { firstVersion }
    return this.#interests.begin(scope, known, { by: [caller], isWatch: verb === 'watch', ...first })
  }

  /**
   * A caller who reads what an interest holds may be why the hub feeds it, or what feeds it. Of what answers nothing meanwhile:
   * when that is judged, since a watch that is passed on stays so until it ends.
   */
  #prove(mirrored: MirroredInterest | undefined, read: Read): Promise<void> | undefined {
    const { identity, verb, known, scope } = read
    if (this.#proofs === undefined || mirrored === undefined || !isShowable(identity)) return undefined
    const { state, interest } = mirrored
    const judged = this.#proofs.asked(state.kind === 'fed' ? state.by : interest.name, identity)
    // The caller may have no right to all of it, which no other proves now: what it asks for is fed by itself.
    if (mirrored.isForbidden && verb !== 'get' && this.#mayMirror(known, scope)) this.#begin(read)
    if (judged === undefined || verb === 'get' || !mirrored.hopeless || read.isProved === true) return undefined
    return within(this.#clock, mirrorLimits.proofMsMax, judged)
  }

  #isRepeated({ scope, caller }: Read): boolean {
    return this.#repeats.note(caller, interestOf(scope).name)
  }

  /** Whether the copy is as new as its watch, and that is alive. */
  #isFresh({ heardAt }: MirroredInterest, { isAsked }: Read): boolean {
    if (this.#upstream.reachability.state !== 'reachable') return false
    return this.#clock.steady() - heardAt <= (isAsked === true ? mirrorLimits.askedFreshMs : mirrorLimits.freshMs)
  }

  /** `why` the API server, which is there, has not told a newer state; without it because of the interest's watch. */
  ageOf(mirrored: MirroredInterest | undefined, there: { readonly why?: string } = {}): string {
    const { state, why } = this.#upstream.reachability
    const ageMs = mirrored === undefined ? undefined : this.#contact.ageMsOf(mirrored)
    const age = ageMs === undefined ? 'from before the last start' : `${ageText(ageMs)} old`
    const reason =
      state === 'reachable' ? (there.why ?? silenceOf(mirrored, why)) : `the API server cannot be asked: ${why}`
    return `served from the local copy, ${age} (${reason})`
  }
}

/** Exact for as long as a person counts seconds. */
function ageText(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 1000)} s` : humanDuration(ms)
}

/** Why nothing comes of a watch while the API server is there; `why` says so of the edge's credential. */
function silenceOf(mirrored: MirroredInterest | undefined, why: string): string {
  const now = mirrored?.watch
  // A retry that breaks off takes back nothing that the API server has said.
  const watch = now?.kind === 'waiting' ? (mirrored?.refusal ?? now) : now
  if (watch === undefined || !('why' in watch) || watch.why === '') return 'its watch is silent'
  if (watch.kind !== 'refused') return `its watch is interrupted: ${watch.why}`
  return `its watch is refused: ${watch.code === 401 && why !== '' ? why : watch.why}`
}

/** Held, and then told to come again: nothing empty is ever shown for what is not known yet. */
export function notSynced(resource: string): StatusError {
  return tooManyRequests(`${resource} are being synced for the first time, please try again later`, 1)
}

/** Whichever comes first. */
async function within(clock: Clock, ms: number, settled: Promise<void>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const cancel = clock.setTimer(ms, resolve)
  await Promise.race([settled, promise])
  cancel()
}

/** Whether a hub can be shown who asks. */
function isShowable(identity: Identity | undefined): identity is Identity {
  return identity?.kind === 'token' || (identity?.kind === 'named' && identity.chain !== undefined)
}
