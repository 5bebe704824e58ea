/**
 * An interest that a wider one covers needs no watch of its own: what differs when it changes over goes into its history
 * like any difference, and from then on the wider one's changes come through its filter. Its versions, its floor and its
 * history stay what they are, so that nobody who watches it notices.
 */
import type { Clock } from '../base/clock.ts'
import type { Cache } from '../cache/cache.ts'
import { differ } from '../cache/differ.ts'
import type { Event } from '../cache/event.ts'
import { Intake } from '../cache/intake.ts'
import { type Item, makeItem } from '../cache/item.ts'
import type { MirrorCopy } from '../cache/mirrorcopy.ts'
import type { FieldPlan } from '../kube/object.ts'
import type { Interest } from './interest.ts'

/** Changes of the wider interest that wait here: beyond this its state tells what they came to. */
const waitingMax = 100_000
/** How often it looks whether the wider interest is still the one it was, and whether a disk that refused takes writes. */
const lookEveryMs = 1_000

/** An interest as the feed sees it; its cache is another one when it begins anew. */
type Side = {
  readonly interest: Interest
  readonly cache: Cache | undefined
  readonly readable: Cache | undefined
  readonly hopeless: boolean
  readonly heardAt: number
  readonly listKind: string
}

export class Feed {
  readonly wide: Side
  readonly #narrow: Side
  readonly #matches: (item: Item) => boolean
  readonly #copy: MirrorCopy
  readonly #clock: Clock
  #waiting: (Event | number)[] = []
  /** What was heard does not tell it all: the states have to be compared. */
  #behind = true
  #wake: (() => void) | undefined
  #source: Cache | undefined

  constructor(parts: { wide: Side; narrow: Side; matches: (item: Item) => boolean; copy: MirrorCopy; clock: Clock }) {
    this.wide = parts.wide
    this.#narrow = parts.narrow
    this.#matches = parts.matches
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
    const push = (what: Event | number) => this.#hear(what)
    const deaf = [wide.observe(push), wide.progress.observe(push)]
    try {
      while (!isOver()) {
        const turned = await this.#turn(wide, narrow)
        if (isOver() || (turned && this.#waiting.length > 0)) continue
        await this.#pause(signal, turned)
      }
    } finally {
      for (const stop of deaf) stop()
    }
  }

  #hear(what: Event | number): void {
    if (this.#waiting.length >= waitingMax) {
      this.#waiting = []
      this.#behind = true
    }
    this.#waiting.push(what)
    this.#wake?.()
  }

  /** Takes over what has come; false when that has to be tried again later. */
  async #turn(wide: Cache, narrow: Cache): Promise<boolean> {
    // Both at one version: the wider one must not be behind. What is damaged there is no less present here.
    if (wide.cloud.version < narrow.cloud.version || wide.isDamaged) {
      this.#behind = true
      return false
    }
    const intake = new Intake({ copy: this.#copy, cache: narrow })
    const heard = this.#waiting
    this.#waiting = []
    try {
      // A difference of the wider one is a difference here: in one turn with its state, which holds all that was heard.
      if (this.#behind || narrow.isDamaged || heard.some((what) => isDifference(what, wide))) {
        this.#behind = true
        await this.#differ(wide, narrow, intake)
        this.#behind = false
      } else {
        for (const what of heard) this.#take(what, intake, wide)
        await intake.settled()
      }
      return true
    } catch {
      // The disk refuses (D3), which is told elsewhere: the wider one goes on meanwhile.
      this.#behind = true
      return false
    }
  }

  async #differ(wide: Cache, narrow: Cache, intake: Intake): Promise<void> {
    const { plan, cloud } = wide
    const { version } = cloud
    const found = new Map<string, Item>()
    for (const item of cloud.all()) if (this.#matches(item)) found.set(item.key, samePlan(item, plan, narrow))
    const { repaired, ...difference } = differ(narrow.cloud, found, true)
    await intake.repair(repaired)
    await intake.differ({ version, ...difference })
  }

  #take(what: Event | number, intake: Intake, wide: Cache): void {
    if (typeof what === 'number') {
      if (what > wide.cloud.labelled) intake.reach(what)
      return
    }
    const { item, previous, key, version } = what
    // Heard of already, as part of a difference.
    if (version <= intake.version) return
    const is = item !== undefined && this.#matches(item)
    const was = previous !== undefined && this.#matches(previous)
    if (is) intake.put(samePlan(item, wide.plan, intake.cache))
    else if (was) intake.remove(key, version)
  }

  /** Until something is heard, or for a while. */
  #pause(signal: AbortSignal, listening: boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener('abort', end)
        cancel()
        this.#wake = undefined
        resolve()
      }
      const cancel = this.#clock.setTimer(lookEveryMs, end)
      if (listening) this.#wake = end
      signal.addEventListener('abort', end)
      if (signal.aborted) end()
    })
  }
}

/** Told by a list, not by a watch: its deletions bear an old label, and so may what was put back to an older version. */
function isDifference(what: Event | number, { cloud }: Cache): boolean {
  if (typeof what === 'number') return false
  // A label of the wider one's own says nothing about the cloud.
  if (what.version <= cloud.labelled) return true
  return what.gap !== undefined || (what.item !== undefined && what.item.version < what.version)
}

function samePlan(item: Item, plan: FieldPlan, { plan: wanted }: Cache): Item {
  return plan === wanted || plan.paths.join() === wanted.paths.join()
    ? item
    : makeItem(item.bytes, item.version, wanted)
}
