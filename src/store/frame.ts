/**
 * A batch as it lies in the log: one frame, a head that describes every change and then the bodies as they are. The
 * head's checksum covers the lengths and checksums of the bodies, so a frame is whole exactly when all of them hold.
 *
 * A shared body is named after the frame it lies in; a later change refers to it by that name. Which of the two a change
 * does is settled when the frame gets its number, in the order of the log: what it refers to lies before it.
 */
import { crc32 } from 'node:zlib'
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

/** What a change takes at least, in the head alone: so many of them may have been in bytes that cannot be read. */
export const changeBytesMin = 21

/** A kind is written as its place in this row. */
const kinds: readonly Change['kind'][] = ['put', 'delete', 'gap', 'seed']
const kindBits = 0x0f
const withBody = 0x80
const sameInterest = 0x40
/** Behind its length and checksum stands the name of a body that lies elsewhere; 0 where it lies here. */
const isShared = 0x20
/** A name is the number of the frame and that of the change in it. Bodies of changes beyond these are not shared. */
const namesPerFrame = 2 ** 14
const said = { forgotten: 0, synced: 1, floor: 2 }
/** Besides: whatever was doubted of it is known again. */
const sound = 0x10

/** Where a body lies, counted from the beginning of its frame. */
export type Piece = { readonly start: number; readonly length: number; readonly checksum: number }

/** `name`: its body is shared under it. One that lies elsewhere has no beginning here. */
export type FrameChange = Omit<Change, 'body' | 'shared'> & { readonly body: Piece | undefined; readonly name?: number }

/** Where a body that lies elsewhere begins. */
export const elsewhere = -1
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

/**
 * A frame that only lacks its sequence. The bodies are the caller's own buffers: nothing is copied. Those that are
 * shared are in it until it is settled that they lie elsewhere.
 */
export type Draft = {
  readonly head: Buffer
  bodies: readonly Buffer[]
  bytes: number
  readonly shares: readonly Share[]
  /** What got its name with this frame. */
  named: readonly SharedBody[]
}

/** A shared body of a draft: where its name is written, and which change and which of the bodies it is. */
type Share = { readonly shared: SharedBody; readonly at: number; readonly change: number; readonly body: number }

const noShares: readonly Share[] = []
const nothingNamed: readonly SharedBody[] = []

export function draftFrame({ changes, interests = [], records = [] }: Batch): Draft {
  const head = new HeadWriter()
  const bodies: Buffer[] = []
  let shares = noShares as Share[]
  let bytes = 0
  const place = (body: Buffer) => {
    bodies.push(body)
    bytes += body.length
    head.uint32(body.length)
    head.uint32(crc32(body))
  }
  for (const { length } of [changes, interests, records]) head.uint32(length)
  let last: string | undefined
  let index = -1
  for (const { interest, position, version, key, kind, body, shared } of changes) {
    index++
    const same = interest === last
    const sharing = body === undefined || shared === undefined ? 0 : isShared
    head.uint8(kinds.indexOf(kind) | (body === undefined ? 0 : withBody) | (same ? sameInterest : 0) | sharing)
    head.number(version)
    // Of a seed it means nothing: where interests overlap there are many of them.
    if (sharing === 0 || kind !== 'seed') head.number(position)
    if (!same) head.text(interest)
    head.text(key)
    if (body !== undefined) place(body)
    if (sharing !== 0) {
      if (shares.length === 0) shares = []
      shares.push({ shared: shared as SharedBody, at: head.number(0), change: index, body: bodies.length - 1 })
    }
    last = interest
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
    if (value !== undefined) place(value)
  }
  const whole = head.whole()
  if (bytes > bodiesBytesMax || whole.length > headBytesMax) throw new StoreRefused('a batch is too large', false)
  whole.writeUInt32LE(whole.length - prefixBytes, headAt)
  whole.writeUInt32LE(bytes, bodiesAt)
  return { head: whole, bodies, bytes: bytes + whole.length, shares, named: nothingNamed }
}

/** Gives the draft its place in the log. That everything before it is on the disk is told by the sign. */
export function numberFrame(draft: Draft, sequence: number, follows = false): void {
  if (draft.shares.length > 0) settleShares(draft, sequence)
  const { head } = draft
  head.writeDoubleLE(follows ? -sequence : sequence, sequenceAt)
  head.writeUInt32LE(crc32(head.subarray(headAt)), 0)
}

/** What lies elsewhere leaves the draft, by its name; what does not gets one. */
function settleShares(draft: Draft, sequence: number): void {
  const { head, bodies, shares } = draft
  const named: SharedBody[] = []
  const gone = new Set<number>()
  for (const { shared, at, change, body } of shares) {
    if (shared.name !== 0) {
      head.writeDoubleLE(shared.name, at)
      gone.add(body)
    } else if (change < namesPerFrame) {
      shared.name = nameOf(sequence, change)
      named.push(shared)
    }
  }
  draft.named = named
  if (gone.size === 0) return
  draft.bodies = bodies.filter((_, index) => !gone.has(index))
  const bytes = draft.bodies.reduce((sum, { length }) => sum + length, 0)
  head.writeUInt32LE(bytes, bodiesAt)
  draft.bytes = head.length + bytes
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
    return { ...new HeadReader(head, lengths.bodies).frame(sequence), follows: head.readDoubleLE(sequenceAt) < 0 }
  } catch (error) {
    // A read beyond the end, or a number that no writer gives.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** Grows as it is written to: most frames hold one change. */
class HeadWriter {
  #bytes = Buffer.allocUnsafe(prefixBytes + 236)
  #at = prefixBytes

  whole(): Buffer {
    return this.#bytes.subarray(0, this.#at)
  }

  /** Where the next so many bytes go. */
  #take(length: number): number {
    const at = this.#at
    this.#at += length
    if (this.#at > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(this.#at * 2)
      this.#bytes.copy(larger, 0, 0, at)
      this.#bytes = larger
    }
    return at
  }

  uint8(value: number): void {
    const at = this.#take(1)
    this.#bytes[at] = value
  }

  uint32(value: number): void {
    const at = this.#take(4)
    this.#bytes.writeUInt32LE(value, at)
  }

  /** Versions and positions: whatever is written can be applied. Answers where it stands. */
  number(value: number): number {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no version or position`)
    const at = this.#take(8)
    this.#bytes.writeDoubleLE(value, at)
    return at
  }

  text(value: string): void {
    const length = Buffer.byteLength(value)
    this.uint32(length)
    const at = this.#take(length)
    this.#bytes.write(value, at)
  }
}

class HeadReader {
  readonly #bytes: Buffer
  readonly #end: number
  readonly #pieces: Piece[] = []
  #at = prefixBytes
  #bodyAt: number

  constructor(bytes: Buffer, bodies: number) {
    this.#bytes = bytes
    this.#bodyAt = bytes.length
    this.#end = bytes.length + bodies
  }

  frame(sequence: number): Omit<Frame, 'follows'> {
    const [changeCount, interestCount, recordCount] = [this.#uint32(), this.#uint32(), this.#uint32()]
    let last = ''
    const changes = this.#several(changeCount, (index) => {
      const change = this.#change(last, sequence, index)
      last = change.interest
      return change
    })
    const interests = this.#several(interestCount, () => this.#interest())
    const records = this.#several(recordCount, () => this.#record())
    if (this.#at !== this.#bytes.length || this.#bodyAt !== this.#end) throw new RangeError('lengths do not add up')
    return { changes, interests, records, pieces: this.#pieces }
  }

  /** A count is believed one by one: a false one runs into the end of the head. */
  #several<One>(count: number, read: (index: number) => One): One[] {
    const found: One[] = []
    for (let i = 0; i < count; i++) found.push(read(i))
    return found
  }

  #change(last: string, sequence: number, index: number): FrameChange {
    const flags = this.#uint8()
    const kind = kinds[flags & kindBits]
    if (kind === undefined) throw new RangeError('no such kind')
    const version = this.#number()
    const position = (flags & isShared) !== 0 && kind === 'seed' ? 0 : this.#number()
    const interest = (flags & sameInterest) === 0 ? this.#text() : last
    const key = this.#text()
    if ((flags & isShared) === 0) return { interest, position, version, key, kind, body: this.#piece(flags) }
    const [length, checksum, other] = [this.#uint32(), this.#uint32(), this.#number()]
    const body = other === 0 ? this.#placed(length, checksum) : { start: elsewhere, length, checksum }
    const own = index < namesPerFrame ? { name: nameOf(sequence, index) } : {}
    return { interest, position, version, key, kind, body, ...(other === 0 ? own : { name: other }) }
  }

  #interest(): InterestChange {
    const flags = this.#uint8()
    const what = flags & kindBits
    const interest = this.#text()
    if (what === said.forgotten) return { interest, forget: true }
    const synced = this.#number()
    const isSound = (flags & sound) === 0 ? {} : { sound: true as const }
    return what === said.floor
      ? { interest, synced, floor: this.#number(), ...isSound }
      : { interest, synced, ...isSound }
  }

  #record(): FrameRecord {
    const flags = this.#uint8()
    return { kind: this.#text(), key: this.#text(), value: this.#piece(flags) }
  }

  #piece(flags: number): Piece | undefined {
    if ((flags & withBody) === 0) return undefined
    return this.#placed(this.#uint32(), this.#uint32())
  }

  #placed(length: number, checksum: number): Piece {
    const piece = { start: this.#bodyAt, length, checksum }
    this.#bodyAt += length
    this.#pieces.push(piece)
    return piece
  }

  #uint8(): number {
    return this.#bytes.readUInt8(this.#at++)
  }

  #uint32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  #number(): number {
    this.#at += 8
    const value = this.#bytes.readDoubleLE(this.#at - 8)
    if (!Number.isSafeInteger(value)) throw new RangeError('no version or position')
    return value
  }

  #text(): string {
    const length = this.#uint32()
    const start = this.#at
    this.#at += length
    if (this.#at > this.#bytes.length) throw new RangeError('a text beyond the end')
    return this.#bytes.toString('utf8', start, this.#at)
  }
}
