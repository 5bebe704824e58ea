/**
 * A whole list of an interest, page by page, at one version. The watch is opened at the first page's version before further
 * pages are read, so that nothing happens unseen meanwhile: its frames are held and folded in. A page that breaks off is
 * asked for again; a token that expires is followed by the inconsistent one the API server offers, as long as that watch
 * lives, because what changed in between comes with it.
 */
import { backoff } from '../../base/backoff.ts'
import { type Clock, sleep } from '../../base/clock.ts'
import { isSame } from '../../cache/differ.ts'
import { type Item, itemOfScan } from '../../cache/item.ts'
import type { WatchFrame } from '../../kube/frames.ts'
import { isListItemForm, type ListPage, listItemForm } from '../../kube/listpage.ts'
import { type FieldPlan, type Scan, scanObject, uidAt } from '../../kube/object.ts'
import { objectKey } from '../../kube/resource.ts'
import { Unreachable } from '../upstream.ts'
import { Busy, type Collection, Expired, TooLarge } from './follow.ts'
import { HeldWatch } from './heldwatch.ts'
import type { ListingTurn } from './listingturns.ts'
import { errorOf, type Source, statusCode, versionOf, type WatchStream } from './source.ts'

/** One page is asked for this often before the list as a whole is given up. */
const pageTriesMax = 8
const pageRetryMsMin = 500
const pageRetryMsMax = 4_000
/** A server that asks for a longer pause than this ends the list: its token would be too old by then. */
const pageAskedMsMax = 10_000
/** Watches that are opened while one list is read: each page may find that the last one broke off. */
const watchesMax = 8
/** Pages of two versions are brought to one by the watch; kube-apiserver sends a bookmark every minute. */
const foldMsMax = 150_000
/** Pages that bring nothing new, in one list: kube-apiserver sends none, so more of them is a list without an end. */
const idlePagesMax = 10
/** So often what fits of a list that did not fit is read, to see how large its objects are: they may have become smaller. */
const measuredMsMax = 86_400_000
/** A buffer of this size has memory of its own: those that Node shares are smaller by far. */
const ownMemoryBytesMin = 256 * 1024

export type ListingLimits = { readonly objects: number; readonly bytes: number }

export type CloudListing = {
  readonly version: number
  readonly listKind: string
  /** By key. An object that the copy holds in this very version already is only named. */
  readonly objects: ReadonlyMap<string, Item | 'same'>
  /** Open since the version above, with the frames that came before they were read. */
  readonly watch: WatchStream | undefined
}

/** How large the objects of a list were that did not fit, in the mean, and when that was seen. */
export type Measured = { objectBytes: number; atMs: number }

export type ListingParts = {
  readonly source: Source
  readonly custom: boolean
  readonly plan: FieldPlan
  /** What the copy holds under a key, if it is whole. */
  readonly standing: (key: string) => Pick<Item, 'uid' | 'version'> | undefined
  readonly known?: Collection['known'] | undefined
  /** Left by the caller. */
  readonly turn?: ListingTurn | undefined
  readonly limits: ListingLimits
  /** What earlier readings of the same list have left for the next one. */
  readonly measured?: Measured
  readonly clock: Clock
  readonly signal: AbortSignal
  /** The version of the list, where it must be a certain one. */
  readonly exactly?: number
}

export async function readListing(parts: ListingParts): Promise<CloudListing> {
  return await new Reading(parts).read()
}

class Reading {
  readonly #parts: ListingParts
  readonly #objects = new Map<string, Item | 'same'>()
  readonly #aborting = new AbortController()
  #bytes = 0
  #newest = 0
  #watches = 0
  #watch: HeldWatch | undefined

  constructor(parts: ListingParts) {
    this.#parts = parts
  }

  async read(): Promise<CloudListing> {
    const { signal } = this.#parts
    const abort = () => this.#aborting.abort()
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
    try {
      const first = await this.#first()
      this.#take(first)
      this.#foresee(first)
      release(first)
      let page = first
      let consistent = true
      let idlePages = 0
      while (page.continueToken !== '') {
        const before = this.#objects.size
        const next = await this.#next(page.continueToken, first.version, consistent)
        consistent = next.consistent
        page = next.page
        this.#take(page)
        release(page)
        if (this.#objects.size === before && ++idlePages > idlePagesMax) {
          throw new Busy(`a list of which ${idlePages} pages bring nothing new`, 0)
        }
      }
      let { version } = first
      if (!consistent && this.#watch !== undefined) version = await this.#foldUpTo(this.#watch, version)
      return { version, listKind: first.kind, objects: this.#objects, watch: this.#watch?.handOver() }
    } catch (error) {
      this.#watch?.close()
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** One that is not all waits for its turn without being held, and is then asked for again. */
  #first(): Promise<ListPage> {
    const { source, exactly, turn } = this.#parts
    const { signal } = this.#aborting
    const ask = () => source.page(exactly === undefined ? {} : { exactly }, signal)
    return ask().then((page) => {
      return turn === undefined || page.continueToken === '' || turn.join() ? page : turn.wait(signal).then(ask)
    })
  }

  /**
   * Whether it will fit, as far as its first page tells: how many objects follow (kube-apiserver says so where nothing is
   * selected), and how large they were when it did not fit. So that it may fit now is noticed at the price of a page.
   */
  #foresee({ items, remaining = 0 }: ListPage): void {
    const { limits, measured, clock } = this.#parts
    const objects = items.length + remaining
    if (objects > limits.objects) throw new TooLarge(`more than ${limits.objects} objects`, true)
    if (measured === undefined || clock.steady() - measured.atMs >= measuredMsMax) return
    if (objects * measured.objectBytes > limits.bytes) throw new TooLarge(`more than ${limits.bytes} bytes`, true)
  }

  /** The next page, however often it breaks off. */
  async #next(token: string, from: number, before: boolean): Promise<{ page: ListPage; consistent: boolean }> {
    const { source, clock } = this.#parts
    let continueToken = token
    let consistent = before
    const waits = backoff({ firstMs: pageRetryMsMin, maxMs: pageRetryMsMax })
    for (let tries = 1; ; tries++) {
      let askedMs = 0
      // Without the watch that was there from the start, a list at two versions cannot be put right.
      if (!consistent) this.#watch?.check()
      try {
        if (consistent) await this.#keepWatch(from)
        return { page: await source.page({ continueToken }, this.#aborting.signal), consistent }
      } catch (error) {
        if (error instanceof Expired && error.continueToken !== '') {
          continueToken = error.continueToken
          consistent = false
        } else if (error instanceof Busy) askedMs = error.retryMs
        else if (!(error instanceof Unreachable)) throw error
        if (tries >= pageTriesMax || askedMs > pageAskedMsMax || this.#aborting.signal.aborted) throw error
      }
      await sleep(clock, askedMs + waits.next(), this.#aborting.signal)
    }
  }

  /** All pages at one version need no watch but for what comes after them: one that broke off is followed by another. */
  async #keepWatch(version: number): Promise<void> {
    if (this.#watch?.isOver === true) {
      this.#watch.close()
      this.#watch = undefined
    }
    if (this.#watch !== undefined) return
    if (++this.#watches > watchesMax) throw new Expired('every watch ends while the list is read', '')
    this.#watch = new HeldWatch(await this.#parts.source.watch(version, this.#parts.signal))
  }

  #take({ items }: ListPage): void {
    const { source, custom, plan, standing, known, limits, measured, clock } = this.#parts
    for (const bytes of items) {
      const scan = scanObject(bytes, plan)
      source.check(bytes, scan)
      const version = versionOf(scan.resourceVersion)
      const key = objectKey(scan.namespace, scan.name)
      this.#newest = Math.max(this.#newest, version)
      this.#bytes += bytes.length
      const held = standing(key)
      if (held !== undefined && isSame(held, uidAt(bytes, scan.uidStart), version)) {
        this.#objects.set(key, 'same')
        continue
      }
      const other = known?.(key, version, plan)
      const isKnown = other !== undefined && isListItemForm(other.bytes, bytes, custom)
      this.#objects.set(key, isKnown ? other : listItemOf(bytes, scan, { custom, version }))
    }
    if (this.#objects.size > limits.objects) throw new TooLarge(`more than ${limits.objects} objects`)
    if (this.#bytes <= limits.bytes) return
    if (measured !== undefined)
      Object.assign(measured, { objectBytes: this.#bytes / this.#objects.size, atMs: clock.steady() })
    throw new TooLarge(`more than ${limits.bytes} bytes`)
  }

  /** Later pages were newer than the first: the watch brings everything to one version beyond them all. */
  async #foldUpTo(watch: HeldWatch, from: number): Promise<number> {
    const { clock } = this.#parts
    const silent = new Busy('the watch is silent while the list is read', 0)
    const cancel = clock.setTimer(foldMsMax, () => watch.fail(silent))
    try {
      let version = from
      while (version < this.#newest) for (const frame of await watch.take()) version = this.#fold(frame, version)
      return version
    } finally {
      cancel()
    }
  }

  #fold(frame: WatchFrame, version: number): number {
    const { source, custom, plan, standing } = this.#parts
    if (frame.type === 'ERROR') throw errorOf(statusCode(frame.object), frame.object)
    const scan = scanObject(frame.object, plan)
    const at = versionOf(scan.resourceVersion)
    const reached = Math.max(version, at)
    if (frame.type === 'BOOKMARK') return reached
    source.check(frame.object, scan)
    const key = objectKey(scan.namespace, scan.name)
    const known = this.#objects.get(key)
    const knownAt = known === undefined ? 0 : known === 'same' ? (standing(key)?.version ?? 0) : known.version
    if (at <= knownAt) return reached
    if (frame.type === 'DELETED') this.#objects.delete(key)
    else this.#objects.set(key, listItemOf(frame.object, scan, { custom, version: at }))
    return reached
  }
}

/**
 * What is kept of a page is copied, so its memory goes at once: an edge that has read its lists allocates little, and V8
 * would leave their pages where they are for minutes. Small ones may lie in memory that Node shares among buffers.
 */
function release({ items: [item] }: ListPage): void {
  const memory = item?.buffer
  if (memory instanceof ArrayBuffer && memory.byteLength >= ownMemoryBytesMin) memory.transfer(0)
}

/** An object as it came, in the form in which it is kept; scanned once, with the plan of its interest. */
export function listItemOf(
  object: Buffer,
  scan: Scan,
  { custom, version }: { custom: boolean; version: number },
): Item {
  const form = listItemForm(object, custom)
  return itemOfScan(scan, form, version, object.length - form.length)
}
