/**
 * What an edge has not been sent of one interest: the newest version of each key, in the order of versions, with what the edge
 * holds of it. A key that changes again moves to the end, so that what was sent up to a version is never less than what a
 * replay behind that version would bring. An object that was deleted and made again is told as both, each in its place.
 */
import { sessionLimits } from './limits.ts'
import type { LinkEvent, LinkObject } from './session.ts'

export type WaitingChange = {
  readonly key: string
  readonly version: number
  /** Undefined for a removal of what the edge has. */
  readonly item: LinkObject | undefined
  /** What the edge has of the key when this comes, as far as it is remembered. */
  readonly held: LinkObject | undefined
  /** The version of the first change that it stands for: none before it was left out. */
  readonly since: number
}

type WaitingEntry = WaitingChange & {
  /** Whether the edge may have something of this key. */
  readonly had: boolean
  readonly heldUid: string
  readonly bytes: number
}

/** Most interests of most edges never have anything waiting: they share this, which stays empty. */
const nothingWaits: Map<string, WaitingEntry> = new Map()

/** Of all interests of a link together. */
export type WaitingTally = { bytes: number }

export class ConflatedQueue {
  readonly #tally: WaitingTally
  /** Each in the order of versions; of one key the removal comes first. */
  #removals: Map<string, WaitingEntry> = nothingWaits
  #puts: Map<string, WaitingEntry> = nothingWaits
  /** What the edge is never told of was there from one version until the other. */
  #hidden: { readonly since: number; readonly until: number } | undefined
  #bytes = 0

  constructor(tally: WaitingTally) {
    this.#tally = tally
  }

  get bytes(): number {
    return this.#bytes
  }

  get size(): number {
    return this.#removals.size + this.#puts.size
  }

  has(key: string): boolean {
    return this.#puts.has(key) || this.#removals.has(key)
  }

  first(): WaitingChange | undefined {
    return this.#first()
  }

  /** Something came and went between versions that no mark may stand at. */
  get isHiding(): boolean {
    return this.#hidden !== undefined
  }

  /** How far a mark may go: not to the oldest change that was not sent, be it left out, nor to where something is hidden. */
  markUpTo(version: number): number {
    let upTo = version
    for (const entries of [this.#removals, this.#puts])
      for (const { since } of entries.values()) upTo = Math.min(upTo, since - 1)
    if (this.#hidden !== undefined && upTo < this.#hidden.until) upTo = Math.min(upTo, this.#hidden.since - 1)
    return upTo
  }

  /** The edge is at this version. */
  reached(version: number): void {
    if (this.#hidden !== undefined && version >= this.#hidden.until) this.#hidden = undefined
  }

  /** `isKnown`: what the edge holds is what the event says was there before. */
  add(event: LinkEvent, isKnown: boolean): void {
    const put = this.#puts.get(event.key)
    if (put !== undefined) this.#drop(this.#puts, put)
    if (event.item === undefined) {
      if (put !== undefined && !put.had) this.#hide(put.since, event.version)
      this.#remove(event, put ?? known(event, isKnown), put?.since)
    } else this.#put(event, event.item, put, isKnown)
  }

  /** An object that the edge does not have, or has in another version. */
  want(item: LinkObject): void {
    const { key, version } = item
    if (!this.has(key)) this.add({ key, version, item, previous: undefined }, false)
  }

  take(): WaitingChange | undefined {
    const entry = this.#first()
    if (entry !== undefined) this.#drop(entry.item === undefined ? this.#removals : this.#puts, entry)
    return entry
  }

  /** Deltas become whole objects, and memory of the edge's past is given back. */
  forgetBases(): void {
    for (const entries of [this.#removals, this.#puts])
      for (const entry of [...entries.values()]) {
        this.#count(-entry.bytes)
        const bytes = costOf(entry.key, undefined)
        entries.set(entry.key, { ...entry, held: undefined, bytes })
        this.#count(bytes)
      }
  }

  clear(): void {
    this.#removals = nothingWaits
    this.#puts = nothingWaits
    this.#hidden = undefined
    this.#count(-this.#bytes)
  }

  #first(): WaitingEntry | undefined {
    const removal: WaitingEntry | undefined = this.#removals.values().next().value
    const put: WaitingEntry | undefined = this.#puts.values().next().value
    return put === undefined || (removal !== undefined && removal.version <= put.version) ? removal : put
  }

  #remove({ key, version }: LinkEvent, { had, held, heldUid }: HeldByEdge, since = version): void {
    // What the edge never had needs no word; what it had may be waiting to be removed already.
    if (!had || this.#removals.has(key)) return
    if (this.#removals === nothingWaits) this.#removals = new Map()
    this.#set(this.#removals, { key, version, item: undefined, had, held, heldUid, since })
  }

  #put({ key, version, previous }: LinkEvent, item: LinkObject, put: WaitingEntry | undefined, isKnown: boolean): void {
    const removal = this.#removals.get(key)
    const before = removal ?? put ?? known({ previous }, isKnown)
    const isAnother = before.heldUid !== '' && before.heldUid !== item.uid
    let since = put?.since ?? version
    if (removal !== undefined && !isAnother) {
      this.#drop(this.#removals, removal)
      since = Math.min(since, removal.since)
    }
    // It became another object without a word of its deletion.
    if (removal === undefined && isAnother)
      this.#remove({ key, version: version - 1, item: undefined, previous }, before)
    const { had, held, heldUid } = isAnother ? nothingHeld : before
    if (this.#puts === nothingWaits) this.#puts = new Map()
    this.#set(this.#puts, { key, version, item, had, held, heldUid, since })
  }

  #hide(since: number, until: number): void {
    this.#hidden = { since: Math.min(since, this.#hidden?.since ?? since), until }
  }

  #set(to: Map<string, WaitingEntry>, entry: Omit<WaitingEntry, 'bytes'>): void {
    const bytes = costOf(entry.key, entry.held)
    to.set(entry.key, { ...entry, bytes })
    this.#count(bytes)
  }

  #drop(from: Map<string, WaitingEntry>, entry: WaitingEntry): void {
    from.delete(entry.key)
    this.#count(-entry.bytes)
    // A map does not get smaller again, and a hub has forty of these for each edge, nearly all of them empty.
    if (from.size > 0) return
    if (from === this.#puts) this.#puts = nothingWaits
    else this.#removals = nothingWaits
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    this.#tally.bytes += bytes
  }
}

type HeldByEdge = Pick<WaitingEntry, 'had' | 'held' | 'heldUid'>

const nothingHeld: HeldByEdge = { had: false, held: undefined, heldUid: '' }

/** What an edge has of which nothing waits. */
function known(
  { previous }: Pick<LinkEvent, 'previous'>,
  isKnown: boolean,
): Pick<WaitingEntry, 'had' | 'held' | 'heldUid'> {
  if (!isKnown) return { had: true, held: undefined, heldUid: '' }
  return previous === undefined ? nothingHeld : { had: true, held: previous, heldUid: previous.uid }
}

function costOf(key: string, held: LinkObject | undefined): number {
  return sessionLimits.waitingOverheadBytes + key.length + (held?.bytes.length ?? 0)
}
