/**
 * One interest as its cloud has it: what is asked upstream, compared with a list, a digest or a witness, or fed on. What
 * clients are shown may stand above it, under a *label* that never falls (docs/architecture.md, decision 18): a local write
 * takes a label of its own, and the cloud's changes that are not above the label yet are shown under the next one. What lies
 * beneath is kept for those objects alone; for all others both are the same item.
 */
import type { FieldPlan } from '../kube/object.ts'
import type { Gap, RecordChange } from '../store/store.ts'
import { type Item, makeItem, relabel } from './item.ts'
import type { Progress } from './progress.ts'

/** Where the two numbers differ both are written down; the store's own number is the label. */
export const labelRecordKind = 'label'

/** `synced` only while the label is ahead of it; `beneath` are the cloud's versions of objects shown under another. */
export type LabelRecord = { readonly synced?: number; readonly beneath: Readonly<Record<string, number>> }

/** A change of the cloud at its place in the history, and how it is shown. */
export type Labelled = {
  readonly position: number
  readonly key: string
  readonly version: number
  /** As the cloud has it; undefined when it is gone. */
  readonly item: Item | undefined
  readonly label: number
  readonly shown: Item | undefined
  /** The fields that were read from the item. */
  readonly plan: FieldPlan
  readonly gap?: Gap
}

/** The cache above it. */
type Shown = {
  readonly interest: string
  readonly version: number
  readonly size: number
  readonly bytes: number
  readonly plan: FieldPlan
  readonly corrupt: Iterable<string>
  readonly isDamaged: boolean
  isCorrupt(key: string): boolean
  peek(key: string): Item | undefined
  all(): Item[]
}

export class CloudState {
  readonly #cache: Shown
  /** How far the cloud's changes are in. */
  readonly progress: Progress
  readonly #beneath = new Map<string, Item>()
  #isRecorded: boolean
  #isOver = false
  /** The newest label that is no version of the cloud. */
  labelled = 0

  constructor(cache: Shown, progress: Progress, record: LabelRecord | undefined) {
    this.#cache = cache
    this.progress = progress
    this.#isRecorded = record !== undefined
    for (const [key, version] of Object.entries(record?.beneath ?? {})) {
      const item = cache.isCorrupt(key) ? undefined : cache.peek(key)
      if (item !== undefined) this.#beneath.set(key, relabel(item, version))
    }
  }

  /** The version up to which everything of the cloud is in. */
  get version(): number {
    return this.progress.version
  }

  get size(): number {
    return this.#cache.size
  }

  get bytes(): number {
    return this.#cache.bytes
  }

  get plan(): FieldPlan {
    return this.#cache.plan
  }

  get corrupt(): Iterable<string> {
    return this.#cache.corrupt
  }

  get isDamaged(): boolean {
    return this.#cache.isDamaged
  }

  isCorrupt(key: string): boolean {
    return this.#cache.isCorrupt(key)
  }

  peek(key: string): Item | undefined {
    return this.#beneath.get(key) ?? this.#cache.peek(key)
  }

  all(): Item[] {
    const items = this.#cache.all()
    return this.#beneath.size === 0 ? items : items.map((item) => this.#beneath.get(item.key) ?? item)
  }

  /** Gives the changes of one commit their labels. */
  labels(): VersionLabels {
    return new VersionLabels(this.#cache.version, this.version)
  }

  /** A committed change is about to be published. */
  note({ key, version, item, label, shown }: Omit<Labelled, 'position' | 'plan'>): void {
    if (item !== shown || (item === undefined && label > version)) this.labelled = Math.max(this.labelled, label)
    if (item !== undefined && item !== shown && item === this.#beneath.get(key)) return
    if (this.#beneath.size > 0) this.#drop(key)
    if (item === undefined || item === shown) return
    if (this.#isOver) item.shared?.letGo()
    else this.#beneath.set(key, item)
  }

  #drop(key: string): void {
    this.#beneath.get(key)?.shared?.letGo()
    this.#beneath.delete(key)
  }

  /** What is held beneath. */
  held(tell: (item: Item) => void): void {
    for (const item of this.#beneath.values()) tell(item)
  }

  /** The interest is over, and what it held is let go. */
  letGo(): void {
    this.#isOver = true
    this.#beneath.clear()
  }

  /** Whether something is written down, which the next change has to bring up to date or take back. */
  get isRecorded(): boolean {
    return this.#isRecorded
  }

  /** What has to be written down besides, once these changes are in, and everything up to `synced`, under the label. */
  records(
    changes: readonly Pick<Labelled, 'key' | 'item' | 'shown'>[],
    synced: number,
    label: number,
  ): readonly RecordChange[] {
    const isAhead = label > synced
    const isPlain = !isAhead && this.#beneath.size === 0 && changes.every(({ item, shown }) => item === shown)
    if (isPlain && !this.#isRecorded) return none
    const beneath: Record<string, number> = {}
    for (const [key, { version }] of this.#beneath) beneath[key] = version
    for (const { key, item, shown } of changes) {
      if (item !== undefined && item !== shown) beneath[key] = item.version
      else delete beneath[key]
    }
    const record: LabelRecord = isAhead ? { synced, beneath } : { beneath }
    const isNeeded = isAhead || Object.keys(beneath).length > 0
    const value = isNeeded ? Buffer.from(JSON.stringify(record)) : undefined
    return [{ kind: labelRecordKind, key: this.#cache.interest, value }]
  }

  /** What goes with the interest. */
  forgotten(): readonly RecordChange[] {
    return this.#isRecorded ? [{ kind: labelRecordKind, key: this.#cache.interest, value: undefined }] : none
  }

  replan(plan: FieldPlan): void {
    for (const [key, { bytes, version, shared }] of this.#beneath) {
      this.#beneath.set(key, shared?.readBy(plan) ?? makeItem(bytes, version, plan))
    }
  }

  /** They are committed. */
  wrote(records: readonly RecordChange[]): void {
    for (const { value } of records) this.#isRecorded = value !== undefined
  }
}

const none: readonly RecordChange[] = []

/**
 * The labels of one commit. A version above the label is its own. Any other is shown under the next label: where clients
 * were shown labels that the cloud does not know, its object is spelled with that, so that no client's version falls. Where
 * they were not, the object was put back by a restore that let versions go on, and keeps the spelling that the cloud knows.
 */
export class VersionLabels {
  readonly #from: number
  readonly #isAhead: boolean
  /** The newest one given, or the one before the first. */
  newest: number

  constructor(label: number, synced: number) {
    this.#from = this.newest = label
    this.#isAhead = label > synced
  }

  of(change: Omit<Labelled, 'label' | 'shown'>): Labelled {
    const { position, key, version, item, plan } = change
    const isOwn = version > (this.#isAhead ? this.newest : this.#from)
    const label = isOwn ? version : this.#isAhead ? this.newest + 1 : this.#from + 1
    this.newest = Math.max(this.newest, label)
    const shown = isOwn || !this.#isAhead || item === undefined ? item : relabel(item, label)
    return { position, key, version, item, label, shown, plan }
  }
}
