/**
 * An edge with a copy that survives it: commits in order and in its own time, and checks what a reader of each interest sees. A version
 * never goes back but after a loss, no event comes twice, another object of a key is told as a deletion first, and wherever the edge claims
 * a version its copy is exactly what the cluster had then.
 */
import assert from 'node:assert/strict'
import { DigestTree } from '../digest/digest.ts'
import { EdgeSession } from './edge.ts'
import type { InterestHeld } from './edgeinterest.ts'
import { identify, type SimulatedCluster, selects } from './hubmodel.test-support.ts'
import type { SessionLimits } from './limits.ts'
import { digestEntry, type EdgeEffect, type InterestWish, type PartialSnapshot, type StagedChange } from './session.ts'

type Copied = { readonly version: number; readonly bytes: Buffer }

class EdgeCopy {
  readonly name: string
  version = 0
  wish: InterestWish = 'resume'
  objects = new Map<string, Copied>()
  /** What was put aside, durable as well. */
  staged: StagedChange[] = []
  partial: PartialSnapshot | undefined
  /** What its reader was told last. */
  told = 0

  constructor(name: string) {
    this.name = name
  }
}

/** Of one link: the copy, and what it will be when everything that was handed over is committed. */
type Subscribed = { readonly copy: EdgeCopy; ahead: Map<string, Buffer>; aheadStaged: StagedChange[] }

export class SimulatedEdge {
  readonly name: string
  readonly limits: SessionLimits
  cluster = ''
  epoch = 0
  readonly copies = new Map<string, EdgeCopy>()
  session: EdgeSession | undefined
  readonly figures = {
    astray: 0,
    unequal: 0,
    snapshots: 0,
    resumed: 0,
    differences: 0,
    waits: 0,
    replays: 0,
    losses: 0,
    ownLosses: 0,
  }
  #subscribed = new Map<number, Subscribed>()
  #digestKey: Buffer = Buffer.alloc(0)
  #queue: EdgeEffect[] = []

  constructor(name: string, interests: readonly string[], limits: SessionLimits) {
    this.name = name
    this.limits = limits
    for (const interest of interests) this.copies.set(interest, new EdgeCopy(interest))
  }

  get hasWork(): boolean {
    return this.#queue.length > 0
  }

  connect(now: number): void {
    const { name: edge, cluster, epoch, limits } = this
    this.#queue = []
    this.#subscribed = new Map()
    const held = (interest: number, key: string) => this.#subscribed.get(interest)?.ahead.get(key)
    this.session = new EdgeSession({ edge, release: '1', cluster, epoch, keepaliveMs: 30_000, held, now, limits })
    for (const copy of this.copies.values()) this.#subscribe(copy)
  }

  /** The process ends: what is not committed is gone. */
  crash(): void {
    this.session = undefined
    this.#queue = []
    this.#subscribed = new Map()
  }

  /** Everything of one cluster goes when another one answers in its place. */
  forgetCluster(): void {
    this.cluster = ''
    this.epoch = 0
    for (const name of [...this.copies.keys()]) this.copies.set(name, new EdgeCopy(name))
  }

  /** Looks after an interest at leisure (L6), or asks for all of it. */
  recheck(name: string, wish?: InterestWish): void {
    for (const [number, { copy }] of this.#subscribed)
      if (copy.name === name && !this.hasWork) {
        copy.wish = wish ?? copy.wish
        this.#restart(number)
        return
      }
  }

  /** Something is lost or set back on the disk, and the edge does not notice. */
  damage(name: string, key: string, old: Copied | undefined): void {
    const copy = this.copies.get(name) as EdgeCopy
    if (this.hasWork || !copy.objects.has(key)) return
    if (old === undefined) copy.objects.delete(key)
    else copy.objects.set(key, old)
    for (const subscribed of this.#subscribed.values()) if (subscribed.copy === copy) subscribed.ahead = aheadOf(copy)
  }

  /** What the session says: taken over at once for later bases, done when `work` comes to it. */
  note(effect: EdgeEffect): void {
    if (effect.effect === 'welcomed') {
      this.#digestKey = effect.digestKey
      if (this.cluster === '') {
        this.cluster = effect.cluster
        this.epoch = effect.epoch
      }
      return
    }
    this.#queue.push(effect)
    if (effect.effect === 'commit') {
      for (const change of effect.changes) apply(this.#subscribed.get(change.interest)?.ahead, [change])
      return
    }
    const subscribed = 'interest' in effect ? this.#subscribed.get(effect.interest) : undefined
    if (subscribed === undefined) return
    if (effect.effect === 'begins' && !effect.resumes) subscribed.aheadStaged = []
    if (effect.effect === 'stage') subscribed.aheadStaged.push(...effect.changes)
    if (effect.effect === 'whole') {
      if (effect.of === 'snapshot') subscribed.ahead = new Map()
      for (const key of effect.gone) subscribed.ahead.delete(key)
      apply(subscribed.ahead, subscribed.aheadStaged)
      subscribed.aheadStaged = []
    }
  }

  /** Does one thing that waits. */
  work(cluster: SimulatedCluster): void {
    const effect = this.#queue.shift()
    if (effect === undefined) return
    if (effect.effect === 'commit') {
      for (const change of effect.changes) {
        const copy = this.#subscribed.get(change.interest)?.copy
        if (copy !== undefined) this.#change(copy, change)
      }
      this.session?.committed(effect.position)
    } else if (effect.effect === 'lost') this.#lose(effect)
    else if ('interest' in effect) this.#do(effect, cluster)
  }

  #do(effect: Extract<EdgeEffect, { interest: number }>, cluster: SimulatedCluster): void {
    const { interest } = effect
    const copy = this.#subscribed.get(interest)?.copy
    if (copy === undefined) return
    if (effect.effect === 'begins') this.#begins(copy, effect)
    else if (effect.effect === 'stage') {
      copy.staged.push(...effect.changes)
      copy.partial = effect.resume
    } else if (effect.effect === 'synced') {
      this.#tell(copy, effect.version)
      this.#compare(copy, cluster)
    } else if (effect.effect === 'check') {
      if (this.#tree(copy.objects).root !== effect.root) this.#unequal(interest)
      else {
        this.#tell(copy, effect.version)
        this.#compare(copy, cluster)
      }
    } else if (effect.effect === 'compare') this.session?.walk(interest, effect.comparison, this.#tree(copy.objects))
    else if (effect.effect === 'whole') this.#whole(copy, effect, cluster)
    else if (effect.effect === 'astray') {
      this.figures.astray++
      copy.wish = 'compare'
      this.#restart(interest)
    }
  }

  #begins(copy: EdgeCopy, { start, resumes }: Extract<EdgeEffect, { effect: 'begins' }>): void {
    if (start === 'wait') this.figures.waits++
    if (start === 'replay') this.figures.replays++
    if (resumes && start === 'snapshot') this.figures.resumed++
    if (resumes) return
    copy.staged = []
    copy.partial = undefined
  }

  #whole(copy: EdgeCopy, effect: Extract<EdgeEffect, { effect: 'whole' }>, cluster: SimulatedCluster): void {
    const { of, version, root, gone, interest } = effect
    const next = of === 'snapshot' ? new Map<string, Copied>() : new Map(copy.objects)
    for (const key of gone) next.delete(key)
    for (const change of copy.staged)
      if (change.type === 'remove') next.delete(change.key)
      else next.set(change.key, change)
    copy.staged = []
    copy.partial = undefined
    if (this.#tree(next).root !== root) {
      this.#unequal(interest)
      return
    }
    this.figures[of === 'snapshot' ? 'snapshots' : 'differences']++
    copy.wish = 'resume'
    copy.objects = next
    this.#tell(copy, version)
    this.#compare(copy, cluster)
  }

  #change(copy: EdgeCopy, change: StagedChange): void {
    const { key, version } = change
    const before = copy.objects.get(key)
    this.#tell(copy, version)
    if (change.type === 'remove') {
      copy.objects.delete(key)
      return
    }
    if (before !== undefined) {
      assert.ok(
        before.version < version,
        `${this.name} ${copy.name}: ${key} came twice, ${before.version} and ${version}`,
      )
      const [was, is] = [identify(before.bytes).uid, identify(change.bytes).uid]
      if (!this.isDamaged) assert.equal(is, was, `${this.name} ${copy.name}: another ${key} without a deletion`)
    }
    copy.objects.set(key, change)
  }

  #tell(copy: EdgeCopy, version: number): void {
    assert.ok(version >= copy.told, `${this.name} ${copy.name}: from ${copy.told} back to ${version}`)
    copy.told = version
    copy.version = version
  }

  /** What is claimed is true. */
  #compare(copy: EdgeCopy, cluster: SimulatedCluster): void {
    if (cluster.uid !== this.cluster || cluster.epoch !== this.epoch || this.isDamaged) return
    const { source, matches } = selects(copy.name)
    const expected = [...cluster.at(source, copy.version).values()].filter(matches)
    const [found, wanted] = [spell(copy.objects.entries()), spell(expected.map((item) => [item.key, item]))]
    assert.equal(found, wanted, `${this.name} ${copy.name} at ${copy.version}`)
  }

  /** Copies were damaged on purpose, and not all are known to be whole again. */
  isDamaged = false

  #lose({ epoch, interest }: Extract<EdgeEffect, { effect: 'lost' }>): void {
    this.figures[interest === 0 ? 'losses' : 'ownLosses']++
    this.epoch = epoch
    const one = this.#subscribed.get(interest)?.copy
    for (const copy of interest === 0 ? this.copies.values() : one === undefined ? [] : [one])
      Object.assign(copy, { version: 0, told: 0, wish: 'compare', partial: undefined })
  }

  #unequal(interest: number): void {
    this.figures.unequal++
    const { copy } = this.#subscribed.get(interest) as Subscribed
    copy.wish = 'compare'
    this.#restart(interest)
  }

  #restart(interest: number): void {
    const { copy } = this.#subscribed.get(interest) as Subscribed
    this.#subscribed.delete(interest)
    const number = this.session?.restart(interest, this.#heldOf(copy)) as number
    this.#subscribed.set(number, { copy, ahead: aheadOf(copy), aheadStaged: [...copy.staged] })
  }

  #subscribe(copy: EdgeCopy): void {
    const number = (this.session as EdgeSession).subscribe(copy.name, this.#heldOf(copy))
    this.#subscribed.set(number, { copy, ahead: aheadOf(copy), aheadStaged: [...copy.staged] })
  }

  #heldOf({ version, wish, partial }: EdgeCopy): InterestHeld {
    return { epoch: this.epoch, version, wish, partial }
  }

  #tree(objects: ReadonlyMap<string, Copied>): DigestTree {
    const tree = new DigestTree(this.#digestKey)
    for (const [key, { version, bytes }] of objects)
      tree.put(digestEntry({ key, uid: identify(bytes).uid, version, bytes }))
    return tree
  }
}

function aheadOf(copy: EdgeCopy): Map<string, Buffer> {
  return new Map([...copy.objects].map(([key, { bytes }]) => [key, bytes]))
}

function apply(to: Map<string, Buffer> | undefined, changes: readonly StagedChange[]): void {
  for (const change of changes)
    if (change.type === 'remove') to?.delete(change.key)
    else to?.set(change.key, change.bytes)
}

function spell(objects: Iterable<readonly [string, Copied]>): string {
  return [...objects]
    .map(([key, { bytes }]) => `${key} ${bytes.toString('latin1', 0, 60)} ${bytes.length}`)
    .sort()
    .join('\n')
}
