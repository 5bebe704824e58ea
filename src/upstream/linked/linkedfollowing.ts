/**
 * One interest as it is followed over one link: what the session tells of it becomes steps.
 *
 * - a replay: changes, once the root of what they lead to was compared, or too much waits for that;
 * - a comparison or a snapshot: the difference from what is held, or everything where that does not count;
 * - whatever does not fit: `Expired`, upon which what is held is compared, which is the one way to heal.
 *
 * What is told is taken into account here at once, since the session goes on from it; its steps wait until they are taken.
 */
import type { Clock } from '../../base/clock.ts'
import type { DigestTree } from '../../link/digest/digest.ts'
import { interestBytesMax } from '../../link/frames/frames.ts'
import type { InterestHeld } from '../../link/session/edgeinterest.ts'
import type { ReceivedChange } from '../../link/session/session.ts'
import {
  Busy,
  type CloudChange,
  type Collection,
  Expired,
  type Followed,
  type From,
  TooLarge,
} from '../follow/follow.ts'
import type { ListingLimits } from '../follow/listing.ts'
import { Unreachable, type Upstream } from '../upstream.ts'
import { itemOfChange, PutAside } from './aside.ts'
import { listExactly } from './exactly.ts'
import { entryOf, LinkedCopy } from './linkedcopy.ts'
import { differFromTold, hasFallen } from './linkeddifference.ts'
import type { LinkedMemory } from './linkedmemory.ts'
import type { InterestEffect, InterestListener, LinkedInterest, LiveLink } from './livelink.ts'
import { refusalOf } from './refusalof.ts'
import { FollowSteps } from './steps.ts'

/** In which epoch of the cluster the copy of each interest was last brought to the present: known as long as that copy is. */
export interface CopyEpochs {
  /** Undefined: it was never told over a link. */
  of(interest: string): number | undefined
  /** What was told of it up to here is taken over. */
  reached(interest: string, epoch: number): void
}

export type LinkedFollowingParts = {
  readonly link: LiveLink
  readonly upstream: Upstream
  readonly limits: ListingLimits
  readonly clock: Clock
  readonly collection: Collection
  readonly name: string
  readonly memory: LinkedMemory
  readonly epochs: CopyEpochs
  readonly from: From
  readonly signal: AbortSignal
}

type ChangesStep = Extract<Followed, { kind: 'changes' }>

/** Replayed changes that wait for their root: less than the window, or the hub would send no more. */
const replayBytesMax = 64 * 1024
/** So often a copy that has not become what the hub has is compared again at once. */
const unequalMax = 3
const unequalRetryMs = 60_000
/** A hub that is behind comes after in moments. */
const behindRetryMs = 5_000
const unequal = 'the copy is not what the hub has'

export class LinkedFollowing implements InterestListener {
  readonly #parts: LinkedFollowingParts
  readonly #steps = new FollowSteps()
  #copy: LinkedCopy
  #aside: PutAside
  #tree: DigestTree | undefined
  #interest: LinkedInterest | undefined
  /** Changes of a replay, each with what is to be called when it is taken over. */
  #replayed: { readonly step: ChangesStep; readonly taken: () => void }[] = []
  #replayBytes = 0
  #isLive = false
  #isVerified = false
  /** Something of a past was told, or is held, that does not count any more when the cluster is put back. */
  #hasPast: boolean
  #unequal = 0
  #epoch = 0
  /** The newest that was told. */
  #version = 0
  #askedAtMs = 0
  /** When a change of it last came, which the hub had just heard of. */
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(parts: LinkedFollowingParts) {
    const { from, collection } = parts
    this.#parts = parts
    this.#copy = LinkedCopy.of(from.held)
    this.#aside = new PutAside(collection)
    this.#hasPast = from.held !== undefined && from.start !== 'anew'
    this.#version = this.#hasPast ? (from.held?.version ?? 0) : 0
  }

  async *steps(): AsyncGenerator<Followed> {
    const { memory, signal, name, link, epochs, from } = this.#parts
    if (Buffer.byteLength(name) > interestBytesMax)
      throw new TooLarge('a link carries no name as long as its selectors')
    if (this.#hasPast && (epochs.of(name) ?? link.epoch) !== link.epoch) {
      yield { kind: 'lost' }
      return
    }
    if (await memory.isPutBack(this.#hasPast ? from.held?.version : undefined, this.#parts)) {
      yield { kind: 'lost' }
      return
    }
    const listed = yield* this.#listed()
    const end = () => this.#steps.end()
    signal.addEventListener('abort', end)
    try {
      this.#askedAtMs = this.#parts.clock.steady()
      if (signal.aborted) return
      this.#interest = link.subscribe(name, this.#wanted(link, listed), this)
      for await (const step of this.#steps.all()) {
        // All that came before is taken over now, and not before: a copy is of no epoch that it has not come to.
        if (step.kind === 'live') epochs.reached(name, this.#epoch)
        yield step
      }
    } finally {
      signal.removeEventListener('abort', end)
      this.#interest?.leave()
      this.#steps.end()
      this.#dropReplay()
      memory.leave(this.#copy)
    }
  }

  /** A version in the past, where the API server still has it; 0 where it begins with the present. */
  async *#listed(): AsyncGenerator<Followed, number> {
    const { from, clock } = this.#parts
    const { exactly } = from
    if (from.held !== undefined || exactly === undefined) return 0
    const askedAtMs = clock.steady()
    const listing = await listExactly({ ...this.#parts, exactly })
    if (listing === undefined) return 0
    const { version, listKind, items } = listing
    for (const item of items) this.#copy.set(item.key, item)
    this.#hasPast = true
    this.#version = version
    yield { kind: 'snapshot', items }
    yield { kind: 'complete', version, listKind, askedAtMs }
    return version
  }

  #wanted({ epoch }: LiveLink, listed: number): InterestHeld {
    const { from, memory } = this.#parts
    const { held, start } = from
    if (listed > 0) return { epoch, version: listed, wish: 'resume' }
    if (held === undefined) {
      const { unfinished } = memory
      if (unfinished?.epoch !== epoch) return { epoch, version: 0, wish: 'anew' }
      this.#aside = unfinished.aside
      return { epoch, version: 0, wish: 'anew', partial: unfinished.aside.resume }
    }
    // Nothing of that past counts, but what is the same need not travel.
    if (start === 'anew') return { epoch, version: 0, wish: 'compare' }
    const version = this.#heldVersion
    return { epoch, version, wish: start === 'resume' && version > 0 && !held.isDamaged ? 'resume' : 'compare' }
  }

  /** What is held counts only where it is known to be of this epoch; otherwise its contents are compared. */
  get #heldVersion(): number {
    const { from, epochs, name } = this.#parts
    return this.#hasPast && epochs.of(name) !== undefined ? (from.held?.version ?? 0) : 0
  }

  held(key: string): Buffer | undefined {
    return this.#copy.get(key)?.bytes
  }

  broken(why: string, isOver: boolean): void {
    if (isOver && this.#isLive) {
      this.#steps.push({ kind: 'over' })
      this.#steps.end(true)
    } else this.#steps.fail(new Unreachable(why, true))
  }

  changed(changes: readonly ReceivedChange[], taken: () => void): void {
    this.#toldAt = this.#parts.clock.steady()
    this.#guarded(() => {
      const plan = this.#parts.collection.plan()
      const told = changes.map((change): CloudChange => {
        const { key, version } = change
        this.#version = version
        if (change.type === 'remove') {
          this.#copy.set(key, undefined)
          return { type: 'remove', key, version }
        }
        const item = itemOfChange(change, plan)
        this.#copy.set(key, item)
        this.#replayBytes += item.bytes.length
        return { type: 'put', item }
      })
      const step: ChangesStep = { kind: 'changes', changes: told, plan }
      if (this.#isLive) this.#steps.push(step, taken)
      else this.#keep(step, taken)
    }, taken)
  }

  /** What it says of the present state is told once it was compared, unless it is too much. */
  #keep(step: ChangesStep, taken: () => void): void {
    this.#replayed.push({ step, taken })
    if (this.#replayBytes > replayBytesMax) this.#goLive()
  }

  told(effect: InterestEffect): void {
    this.#guarded(() => this.#take(effect))
  }

  /** Whatever fails here ends this following, and nothing else of the link. */
  #guarded(run: () => void, otherwise?: () => void): void {
    try {
      run()
    } catch (error) {
      this.#steps.fail(error)
      otherwise?.()
    }
  }

  #take(effect: InterestEffect): void {
    switch (effect.effect) {
      case 'begins':
        if (!effect.resumes) this.#aside = new PutAside(this.#parts.collection)
        if (effect.start === 'compare' || effect.start === 'snapshot')
          this.#mayDiffer('the hub no longer has what came since')
        break
      case 'compare':
        this.#tree = this.#copy.tree(this.#secret)
        this.#interest?.walk(effect.comparison, this.#tree)
        break
      case 'stage':
        this.#stage(effect)
        break
      case 'whole':
        this.#whole(effect)
        break
      case 'check':
        this.#check(effect)
        break
      case 'synced':
        this.#reached(effect.version)
        break
      case 'astray':
        this.#compareAgain(effect.sentence)
        break
      case 'lost':
        this.#lost()
        break
      case 'refused':
        throw refusalOf(effect)
    }
  }

  get #secret(): Buffer {
    return this.#parts.link.welcome?.digestKey ?? Buffer.alloc(0)
  }

  /** Throws where the reflector that follows has to be asked first. */
  #mayDiffer(why: string): void {
    const { from } = this.#parts
    if (this.#isLive || (this.#hasPast && from.start === 'resume' && !from.check)) throw new Expired(why, '')
    if (from.held === undefined && this.#hasPast) throw new Expired(why, '')
  }

  #stage({ changes, resume }: Extract<InterestEffect, { effect: 'stage' }>): void {
    const { from, memory, limits, collection } = this.#parts
    this.#aside.add(changes, from.held?.plan ?? collection.plan())
    this.#aside.resume = resume
    if (from.held !== undefined) return
    memory.unfinished = undefined
    this.#aside.limit(limits)
    const { epoch } = this.#parts.link
    if (resume !== undefined) memory.unfinished = { epoch, aside: this.#aside }
  }

  #whole({ of, version, root, gone }: Extract<InterestEffect, { effect: 'whole' }>): void {
    const { memory } = this.#parts
    const { items } = this.#aside
    const isSnapshot = of === 'snapshot'
    const copy = isSnapshot ? new LinkedCopy() : this.#copy
    const tree = isSnapshot || this.#tree === undefined ? copy.tree(this.#secret) : this.#tree
    for (const key of gone) {
      copy.set(key, undefined)
      tree.remove(key)
    }
    for (const [key, item] of items) {
      copy.set(key, item)
      if (item === undefined) tree.remove(key)
      else tree.put(entryOf(key, item))
    }
    this.#copy = copy
    this.#tree = undefined
    this.#version = version
    memory.unfinished = undefined
    if (tree.root === root) this.#tellWhole(version)
    else this.#compareAgain(unequal)
  }

  #tellWhole(version: number): void {
    const { from, collection, epochs, name, memory } = this.#parts
    const { items } = this.#aside
    const { held, start, check } = from
    const isOfUnknownEpoch = epochs.of(name) === undefined
    const whole = { version, listKind: `${collection.kind}List`, askedAtMs: this.#askedAtMs }
    if (held === undefined || start === 'anew') {
      this.#steps.push({ kind: 'snapshot', items: [...this.#copy.all()] })
      this.#steps.push({ kind: 'complete', ...whole })
    } else if (isOfUnknownEpoch && hasFallen(held, items)) {
      this.#lost()
      return
    } else if (hasFallen(held, items) && memory.fell(held.version)) {
      // Put back while no hub ran; or under versions that went on, which is an ordinary gap: the API server tells.
      throw new Expired('objects are older than they were', '')
    } else {
      // Of an unknown epoch: that hub is behind, or the cluster was put back, which only it can tell.
      if (version < held.version) throw new Busy('the hub is not as far as what is held', behindRetryMs)
      if (check) this.#verify()
      this.#steps.push({ kind: 'difference', ...differFromTold(held, { copy: this.#copy, items, start }), ...whole })
    }
    this.#aside = new PutAside(collection)
    this.#goLive()
  }

  #check({ version, root }: Extract<InterestEffect, { effect: 'check' }>): void {
    if (this.#copy.tree(this.#secret).root !== root) this.#compareAgain(unequal)
    else {
      if (!this.#isLive) this.#goLive()
      this.#reached(version)
    }
  }

  #reached(version: number): void {
    const { collection } = this.#parts
    if (!this.#isLive || version <= this.#version) return
    this.#version = version
    const changes: CloudChange[] = [{ type: 'progress', version }]
    this.#steps.push({ kind: 'changes', changes, plan: collection.plan() })
  }

  #goLive(): void {
    const { from, memory, link } = this.#parts
    this.#epoch = link.epoch
    memory.copy = this.#copy
    this.#isLive = true
    this.#hasPast = true
    if (from.held !== undefined && from.check && from.start !== 'anew') this.#verify()
    this.#steps.push({ kind: 'live', heardAt: () => Math.max(this.#interest?.freshAt() ?? this.#toldAt, this.#toldAt) })
    for (const { step, taken } of this.#replayed.splice(0)) this.#steps.push(step, taken)
  }

  #verify(): void {
    if (!this.#isVerified) this.#steps.push({ kind: 'verified' })
    this.#isVerified = true
  }

  /** From what is held: what was told since is not taken over, or this would be live. */
  #compareAgain(why: string): void {
    const { from } = this.#parts
    this.#mayDiffer(why)
    this.#unequal++
    if (this.#unequal > unequalMax) throw new Busy(why, unequalRetryMs)
    this.#dropReplay()
    this.#copy = LinkedCopy.of(from.held)
    const { epoch } = this.#parts.link
    this.#askedAtMs = this.#parts.clock.steady()
    this.#interest?.restart({ epoch, version: this.#heldVersion, wish: 'compare' })
  }

  #dropReplay(): void {
    for (const { taken } of this.#replayed.splice(0)) taken()
    this.#replayBytes = 0
  }

  #lost(): void {
    if (!this.#hasPast) return
    this.#steps.push({ kind: 'lost' })
    this.#steps.end(true)
  }
}
