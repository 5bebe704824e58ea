/**
 * An interest that a wider one covers needs no watch of its own: the wider one's changes come through its filter, from the
 * version on that its own watch has brought it to. Where the wider one's history does not reach back to that, what differs
 * goes into its history like any difference. Its versions, its floor and its history stay what they are, so that none of its
 * watchers notices.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Cache } from '../cache/cache.ts'
import type { CloudState } from '../cache/cloudstate.ts'
import { differ } from '../cache/differ.ts'
import type { Filter } from '../cache/filter.ts'
import { Intake } from '../cache/intake.ts'
import { type Item, makeItem } from '../cache/item.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import type { StreamEvent, StreamStart } from '../cache/subscription.ts'
import type { FieldPlan } from '../kube/object.ts'
import type { Interest } from './interest.ts'
import type { ReflectorState } from './reflector.ts'

/** How often it looks whether the wider interest is still the one it was, and whether a disk that refused takes writes. */
const lookEveryMs = 1_000

/** An interest as the feed sees it; its cache is another one when it begins anew. */
type Side = {
  readonly interest: Interest
  readonly cache: Cache | undefined
  readonly readable: Cache | undefined
  readonly hopeless: boolean
  readonly heardAt: number
  readonly lastHeardAt: number
  readonly watch: ReflectorState | undefined
  readonly listKind: string
}

export class Feed {
  readonly wide: Side
  readonly #narrow: Side
  readonly #filter: (plan: FieldPlan) => Filter
  readonly #copy: MirrorCopy
  readonly #clock: Clock
  #source: Cache | undefined

  /** `filter`: what the narrow interest wants, of objects read by this plan; it throws while the fields are unknown. */
  constructor(parts: {
    wide: Side
    narrow: Side
    filter: (plan: FieldPlan) => Filter
    copy: MirrorCopy
    clock: Clock
  }) {
    this.wide = parts.wide
    this.#narrow = parts.narrow
    this.#filter = parts.filter
    this.#copy = parts.copy
    this.#clock = parts.clock
  }

  /** Whether what feeds may itself be read, and is what it was. */
  get isSound(): boolean {
    return this.#source === undefined || this.wide.readable === this.#source
  }

  /** Until the signal, or until the wider interest is no longer what it was. */
  async run(signal: AbortSignal): Promise<void> {
    const wide = this.wide.cache
    const narrow = this.#narrow.cache
    if (wide === undefined || narrow === undefined) return
    this.#source = wide
    const isOver = () => signal.aborted || this.wide.cache !== wide || this.#narrow.cache !== narrow
    let isFirst = true
    while (!isOver()) {
      // Both at one version: the wider one must not be behind.
      await this.#reached(wide, narrow.cloud.version, signal)
      if (isOver() || wide.cloud.version < narrow.cloud.version) continue
      const isCompared = !isFirst || !reachesBack(wide, narrow)
      isFirst = false
      // The disk refuses (D3), which is told elsewhere: the wider one goes on meanwhile.
      const again = await this.#follow(wide, narrow, isCompared, isOver, signal).catch(() => false)
      if (!again && !isOver()) await sleep(this.#clock, lookEveryMs, signal)
    }
  }

  /** Until the wider one has come as far, or it is time to look whether it is still the one it was. */
  async #reached({ cloud }: Cache, version: number, signal: AbortSignal): Promise<void> {
    if (cloud.version >= version) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const stopWaiting = cloud.progress.whenReached(version, resolve)
    await Promise.race([promise, sleep(this.#clock, lookEveryMs, signal)])
    stopWaiting()
  }

  /**
   * Copies what comes, after the states are compared or from the version on that the narrow one is at; true when they have
   * to be compared again, false when that has to wait.
   */
  async #follow(
    wide: Cache,
    narrow: Cache,
    isCompared: boolean,
    isOver: () => boolean,
    signal: AbortSignal,
  ): Promise<boolean> {
    // What is damaged there is no less present here.
    if (isCompared && wide.isDamaged) return false
    const { plan, cloud } = wide
    const filter = this.#filter(plan)
    const asHere = (item: Item) => samePlan(item, plan, narrow)
    const intake = new Intake({ copy: this.#copy, cache: narrow })
    // In one turn with the state that is compared: what is published next is not in it, and not missed.
    const start: StreamStart = isCompared ? { kind: 'now' } : { kind: 'after', version: narrow.cloud.version }
    const stream = wide.stream({ filter, start, bookmarks: true })
    const look = () => {
      if (isOver()) void stream.return()
      else cancel = this.#clock.setTimer(lookEveryMs, look)
    }
    let cancel = this.#clock.setTimer(lookEveryMs, look)
    signal.addEventListener('abort', look)
    try {
      if (isCompared) {
        const found = cloud.all().flatMap((item): [string, Item][] => {
          return filter.matches(item) ? [[item.key, asHere(item)]] : []
        })
        await takeOver(new Map(found), cloud.version, intake)
      }
      for await (const batch of stream) {
        const isWhole = batch.every((event) => take(event, cloud, intake, asHere))
        await intake.settled()
        if (!isWhole || isOver()) break
      }
      return true
    } finally {
      cancel()
      signal.removeEventListener('abort', look)
      void stream.return()
    }
  }
}

/**
 * Whether all that has happened since the narrow one's version can be told: by a past that both have, without damage. Of what
 * came and went within a gap the wider one never knew.
 */
function reachesBack({ history, isDamaged, isDoubted }: Cache, narrow: Cache): boolean {
  if (isDamaged || isDoubted || narrow.isDamaged || narrow.isDoubted) return false
  return narrow.cloud.version >= history.floor && history.gapAt(narrow.cloud.version) === undefined
}

/** Brings the narrow interest to the state of the wider one, as a difference in its own history. */
async function takeOver(found: ReadonlyMap<string, Item>, version: number, intake: Intake): Promise<void> {
  const { repaired, ...difference } = differ(intake.cache.cloud, found, true)
  await intake.repair(repaired)
  await intake.differ({ version, ...difference })
}

/**
 * False for what a list told the wider interest and not a watch: a difference there is a difference here. So is what was told
 * under a label of its own, which says nothing about the cloud.
 */
function take(event: StreamEvent, { labelled }: CloudState, intake: Intake, asHere: (item: Item) => Item): boolean {
  const isLabel = event.version <= labelled
  if (event.type === 'BOOKMARK') {
    if (!isLabel) intake.reach(event.version)
  } else if (isLabel) return false
  else if (event.isRelabelled || event.version <= intake.version) return false
  else if (event.type === 'DELETED') intake.remove(event.item.key, event.version)
  else intake.put(asHere(event.item))
  return true
}

function samePlan(item: Item, plan: FieldPlan, { plan: wanted }: Cache): Item {
  return plan === wanted || plan.paths.join() === wanted.paths.join()
    ? item
    : makeItem(item.bytes, item.version, wanted)
}
