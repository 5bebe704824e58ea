/**
 * A batch as it lies in the log: one frame, a head that describes every change and then the bodies as they are. The
 * head's checksum covers the lengths and checksums of the bodies, so a frame is whole exactly when all of them hold.
 *
 * A shared body is named after the frame it lies in; a later change refers to it by that name, in a few bytes: a second
 * interest with the same objects is not much more than their keys. Which of the two a change does is settled when the
 * frame gets its number, in the order of the log: what it refers to lies before it.
 */
import { crc32 } from 'node:zlib'
import { HeadReader, HeadWriter } from './headbytes.ts'
import { objectPlace, recordPlace, type Seal } from './seal.ts'
import { type Batch, type Change, type InterestChange, type SharedBody, StoreRefused } from './store.ts'

/** Checksum of what follows in the head; length of the head without this; length of all bodies; sequence. */
const headAt = 4
const bodiesAt = 8
const sequenceAt = 12
export const prefixBytes = 20
const countsBytes = 12
/** Far above what one batch holds, and what a length in a damaged prefix may claim before it is believed. */
const headBytesMax = 256 * 1024 * 1024
const bodiesBytesMax = 1024 * 1024 * 1024

/**
 * What a change takes at least, in the head alone: so many of them may have been in bytes that cannot be read. References
 * take less, but bring no version that was not given out before.
 */
export const changeBytesMin = 21

/** A kind is written as its place in this row. */
const kinds: readonly Change['kind'][] = ['put', 'delete', 'gap', 'seed']
const kindBits = 0x0f
const withBody = 0x80
const sameInterest = 0x40
/** The body may be referred to. Behind its length and checksum stands 0 or, if it lies in this frame before, its name. */
const isShared = 0x20
/** The body lies in an earlier frame: what is said of it is shortened by what was said of the change before. */
const isReference = 0x10
/** A name is the number of the frame and that of the change in it. Bodies of changes beyond these are not shared. */
const namesPerFrame = 2 ** 14
const said = { forgotten: 0, synced: 1, floor: 2 }
/** Besides: whatever was doubted of it is known again. */
const sound = 0x10

/** Where a body lies, counted from the beginning of its frame. */
export type Piece = { readonly start: number; readonly length: number; readonly checksum: number }

/** `name`: its body is shared under it. One that lies elsewhere has no beginning here, and perhaps no more than its name. */
export type FrameChange = Omit<Change, 'body' | 'shared'> & { readonly body: Piece | undefined; readonly name?: number }

/** Where a body that lies elsewhere begins. */
export const elsewhere = -1
/** Should there be none of this name it is lost: no bytes have this checksum. */
const referred: Piece = { start: elsewhere, length: 0, checksum: 1 }
type FrameRecord = { readonly kind: string; readonly key: string; readonly value: Piece | undefined }

export type Frame = {
  readonly changes: readonly FrameChange[]
  readonly interests: readonly InterestChange[]
  readonly records: readonly FrameRecord[]
  /** Every body and value, in order. */
  readonly pieces: readonly Piece[]
  /** Whether everything before it was known to be on the disk when it was written: then damage there is no torn end. */
  readonly follows: boolean
}

/** A frame that only lacks its sequence. The bodies are the caller's own buffers: nothing is copied. */
export type Draft = {
  readonly batch: Batch
  readonly head: Buffer
  readonly bodies: readonly Buffer[]
  readonly bytes: number
  readonly shares: readonly Share[]
  readonly seal: Seal | undefined
  /** What got its name with this frame. */
  named: readonly SharedBody[]
}

/** A shared body of a draft: the name it had then, which change it is of, and where it says whether it gets one. */
type Share = { readonly shared: SharedBody; readonly name: number; readonly change: number; readonly at: number }

const noShares: readonly Share[] = []
const nothingNamed: readonly SharedBody[] = []

/** With a seal its bodies are sealed. */
export function draftFrame(batch: Batch, seal?: Seal): Draft {
  const { changes, interests = [], records = [] } = batch
  const head = new HeadWriter(prefixBytes)
  const bodies: Buffer[] = []
  let shares = noShares as Share[]
  let bytes = 0
  /** What this frame brings that may be referred to, where more than one change could. */
  const brought = changes.length > 1 ? new Map<SharedBody, Buffer>() : undefined
  const place = (body: Buffer, isHere = true) => {
    if (isHere) {
      bodies.push(body)
      bytes += body.length
    }
    head.uint32(body.length)
    head.uint32(crc32(body))
  }
  for (const { length } of [changes, interests, records]) head.uint32(length)
  let [last, lastKey, lastName] = ['', '', 0]
  let index = -1
  for (const { interest, position, version, key, kind, body, shared } of changes) {
    index++
    const same = index > 0 && interest === last
    const name = body === undefined ? 0 : (shared?.name ?? 0)
    const sharing = body === undefined || shared === undefined ? 0 : name === 0 ? isShared : isReference
    head.uint8(kinds.indexOf(kind) | (body === undefined ? 0 : withBody) | (same ? sameInterest : 0) | sharing)
    if (name === 0) head.number(version)
    else head.short(version)
    // Of a seed it means nothing: where interests overlap there are many of them.
    if (sharing === 0 || kind !== 'seed') head.number(position)
    if (!same) head.text(interest)
    let at = 0
    if (name !== 0) {
      head.textAfter(lastKey, key)
      head.difference(name - lastName)
      lastName = name
    } else {
      head.text(key)
      if (body !== undefined) {
        const there = shared === undefined ? undefined : brought?.get(shared)
        const stored = there ?? (seal === undefined ? body : seal.seal(body, objectPlace(key, version)))
        place(stored, there === undefined)
        if (shared !== undefined && index < namesPerFrame) brought?.set(shared, stored)
      }
      if (sharing !== 0) at = head.number(0)
    }
    if (sharing !== 0) {
      if (shares.length === 0) shares = []
      shares.push({ shared: shared as SharedBody, name, change: index, at })
    }
    last = interest
    lastKey = key
  }
  for (const change of interests) {
    const forgets = 'forget' in change
    const what = forgets ? said.forgotten : change.floor === undefined ? said.synced : said.floor
    head.uint8(what | (!forgets && change.sound === true ? sound : 0))
    head.text(change.interest)
    if (forgets) continue
    head.number(change.synced)
    if (change.floor !== undefined) head.number(change.floor)
  }
  for (const { kind, key, value } of records) {
    head.uint8(value === undefined ? 0 : withBody)
    head.text(kind)
    head.text(key)
    if (value !== undefined) place(seal === undefined ? value : seal.seal(value, recordPlace(kind, key)))
  }
  const whole = head.whole()
  if (bytes > bodiesBytesMax || whole.length > headBytesMax) throw new StoreRefused('a batch is too large', false)
  whole.writeUInt32LE(whole.length - prefixBytes, headAt)
  whole.writeUInt32LE(bytes, bodiesAt)
  return { batch, head: whole, bodies, bytes: bytes + whole.length, shares, seal, named: nothingNamed }
}

/** Gives the draft its place in the log. That everything before it is on the disk is told by the sign. */
export function numberFrame(draft: Draft, sequence: number, follows = false): void {
  if (draft.shares.length > 0) settleShares(draft, sequence)
  const { head } = draft
  head.writeDoubleLE(follows ? -sequence : sequence, sequenceAt)
  head.writeUInt32LE(crc32(head.subarray(headAt)), 0)
}

/** What lies elsewhere is referred to, what does not gets a name. */
function settleShares(draft: Draft, sequence: number): void {
  // Meanwhile one may have got its name with a frame before this one, or lost it with one that was refused.
  if (draft.shares.some(({ shared, name }) => shared.name !== name)) {
    Object.assign(draft, draftFrame(draft.batch, draft.seal))
  }
  const named: SharedBody[] = []
  for (const { shared, name, change, at } of draft.shares) {
    if (name !== 0) continue
    if (shared.name !== 0) draft.head.writeDoubleLE(shared.name, at)
    else if (change < namesPerFrame) {
      shared.name = nameOf(sequence, change)
      named.push(shared)
    }
  }
  draft.named = named
}

function nameOf(sequence: number, change: number): number {
  return sequence * namesPerFrame + change
}

/** The frame was not written: nothing can refer to what it holds. */
export function takeBackNames(draft: Draft): void {
  for (const shared of draft.named) shared.name = 0
  draft.named = nothingNamed
}

/** How long the head and the bodies of a frame are; undefined for a prefix that cannot be one. */
export function frameLengths(prefix: Buffer): { head: number; bodies: number } | undefined {
  if (prefix.length < prefixBytes) return undefined
  const head = prefix.readUInt32LE(headAt)
  const bodies = prefix.readUInt32LE(bodiesAt)
  if (head < countsBytes || head > headBytesMax || bodies > bodiesBytesMax) return undefined
  return { head: prefixBytes + head, bodies }
}

/** The sequence that a prefix claims, at this place. */
export function claimedSequence(bytes: Buffer, at = 0): number {
  return Math.abs(bytes.readDoubleLE(at + sequenceAt))
}

/** Reads a head with its prefix; undefined unless it is whole and the one with this sequence. Bodies are not looked at. */
export function parseFrame(head: Buffer, sequence: number): Frame | undefined {
  const lengths = frameLengths(head)
  if (lengths === undefined || lengths.head !== head.length) return undefined
  if (crc32(head.subarray(headAt)) !== head.readUInt32LE(0) || claimedSequence(head) !== sequence) return undefined
  try {
    return { ...new BatchReader(head, lengths.bodies).frame(sequence), follows: head.readDoubleLE(sequenceAt) < 0 }
  } catch (error) {
    // A read beyond the end, or a number that no writer gives.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

class BatchReader extends HeadReader {
  readonly #end: number
  readonly #pieces: Piece[] = []
  #bodyAt: number
  /** Of the change before, from which the next one is shortened. */
  #last = { interest: '', key: '' }
  #lastName = 0

  constructor(bytes: Buffer, bodies: number) {
    super(bytes, prefixBytes)
    this.#bodyAt = bytes.length
    this.#end = bytes.length + bodies
  }

  frame(sequence: number): Omit<Frame, 'follows'> {
    const [changeCount, interestCount, recordCount] = [this.uint32(), this.uint32(), this.uint32()]
    const changes = this.#several(changeCount, (index) => {
      const change = this.#change(sequence, index)
      this.#last = change
      return change
    })
    const interests = this.#several(interestCount, () => this.#interest())
    const records = this.#several(recordCount, () => this.#record())
    if (!this.isAtEnd || this.#bodyAt !== this.#end) throw new RangeError('lengths do not add up')
    return { changes, interests, records, pieces: this.#pieces }
  }

  /** A count is believed one by one: a false one runs into the end of the head. */
  #several<One>(count: number, read: (index: number) => One): One[] {
    const found: One[] = []
    for (let i = 0; i < count; i++) found.push(read(i))
    return found
  }

  #change(sequence: number, index: number): FrameChange {
    const flags = this.uint8()
    const kind = kinds[flags & kindBits]
    if (kind === undefined) throw new RangeError('no such kind')
    const isReferring = (flags & isReference) !== 0
    const version = isReferring ? this.short() : this.number()
    const position = (flags & (isShared | isReference)) !== 0 && kind === 'seed' ? 0 : this.number()
    const interest = (flags & sameInterest) === 0 ? this.text() : this.#last.interest
    if (isReferring) {
      const key = this.#last.key.slice(0, this.uint8()) + this.text(this.short())
      this.#lastName += this.difference()
      return { interest, position, version, key, kind, body: referred, name: this.#lastName }
    }
    const key = this.text()
    if ((flags & isShared) === 0) return { interest, position, version, key, kind, body: this.#piece(flags) }
    const [length, checksum, other] = [this.uint32(), this.uint32(), this.number()]
    const body = other === 0 ? this.#placed(length, checksum) : { start: elsewhere, length, checksum }
    const own = index < namesPerFrame ? { name: nameOf(sequence, index) } : {}
    return { interest, position, version, key, kind, body, ...(other === 0 ? own : { name: other }) }
  }

  #interest(): InterestChange {
    const flags = this.uint8()
    const what = flags & kindBits
    const interest = this.text()
    if (what === said.forgotten) return { interest, forget: true }
    const synced = this.number()
    const isSound = (flags & sound) === 0 ? {} : { sound: true as const }
    return what === said.floor
      ? { interest, synced, floor: this.number(), ...isSound }
      : { interest, synced, ...isSound }
  }

  #record(): FrameRecord {
    const flags = this.uint8()
    return { kind: this.text(), key: this.text(), value: this.#piece(flags) }
  }

  #piece(flags: number): Piece | undefined {
    if ((flags & withBody) === 0) return undefined
    return this.#placed(this.uint32(), this.uint32())
  }

  #placed(length: number, checksum: number): Piece {
    const piece = { start: this.#bodyAt, length, checksum }
    this.#bodyAt += length
    this.#pieces.push(piece)
    return piece
  }
}
