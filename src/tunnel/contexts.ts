/**
 * What both sides of a link remember of the first frames of streams, in each direction, so that the next one like them travels as a
 * difference: the head and the body of a renewed lease, or of its answer, are those of the one before but for some bytes. The side
 * that sends chooses what is remembered and by which number, when it hands the frame to the link; frames come in order, so both
 * sides hold the same whatever becomes of the streams. Beyond the limit the one that was not used for longest is forgotten.
 *
 * An eavesdropper on the line sees sizes. So what one caller sent or was answered is never compared with another caller's bytes, and a
 * body only with what the same caller's same question brought before (L25): no caller can try out bytes against a secret
 * of another, and no pod against those of other pods that its kubelet is answered with.
 */
import { LinkFault } from '../link/frames/bytes.ts'
import { decodeDifference, encodeDifference } from './difference.ts'
import type { CarriedFrame, TunnelFrame } from './frames.ts'
import { carriedBytesMax, contextsMax, keptFrameBytesMax } from './limits.ts'

/** What a first frame is like. */
export type StreamContext = {
  /** In whose name: nothing of another caller is ever a base. */
  readonly caller: string
  /** What is asked, and of what: a body is compared with one of the same subject alone. */
  readonly subject: string
  /** Whether all of it may be compared with the next of its subject: else its beginning alone is kept. */
  readonly isWhole: boolean
  /** Of its beginning, which other subjects of its caller resemble too. */
  readonly headBytes: number
}

type PackedFrame = TunnelFrame & { readonly kind: 'packed' }

type Kept = { readonly bytes: Buffer }

/** By number, the one that was used longest ago first. */
class ContextTable<Entry extends Kept> {
  readonly #bytesMax: number
  readonly #entries = new Map<number, Entry>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytesMax(): number {
    return this.#bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The one used last first. */
  entries(): [number, Entry][] {
    return [...this.#entries].reverse()
  }

  /** As one that was used now. */
  use(number: number): Entry | undefined {
    const entry = this.#entries.get(number)
    if (entry === undefined) return undefined
    this.#entries.delete(number)
    this.#entries.set(number, entry)
    return entry
  }

  hold(number: number, entry: Entry): void {
    this.#drop(number)
    this.#entries.set(number, entry)
    this.#bytes += entry.bytes.length
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#bytesMax) return
      this.#drop(oldest)
    }
  }

  /** A number that stands for nothing, or for what was not used for longest. */
  free(): number {
    for (let number = 0; number < contextsMax; number++) if (!this.#entries.has(number)) return number
    return this.#entries.keys().next().value as number
  }

  clear(): void {
    this.#entries.clear()
    this.#bytes = 0
  }

  #drop(number: number): void {
    this.#bytes -= this.#entries.get(number)?.bytes.length ?? 0
    this.#entries.delete(number)
  }
}

type Sent = Kept & StreamContext
type Found = readonly [number: number, entry: Sent]
type TravellingBytes = Pick<PackedFrame, 'bytes' | 'base' | 'share'>

/** Those that bring bytes of a stream: open, data, end. */
const packable: ReadonlySet<number> = new Set([0x82, 0x83, 0x84])

export class SentContexts {
  readonly #table: ContextTable<Sent>

  /** What the other side keeps. */
  constructor(bytesMax: number) {
    this.#table = new ContextTable(bytesMax)
  }

  get bytes(): number {
    return this.#table.bytes
  }

  /**
   * A frame that is sent now, before any other, as the difference from one that is kept, and to be kept itself; undefined where it
   * goes as it is.
   */
  pack(context: StreamContext, { type, payload }: CarriedFrame): PackedFrame | undefined {
    const table = this.#table
    const { caller, subject } = context
    const own = table.entries().filter(([, entry]) => entry.caller === caller)
    const same = own.find(([, entry]) => entry.subject === subject)
    const { bytes, base, share } = against(payload, same, own[0])
    if (base > 0) table.use(base - 1)
    const headBytes = Math.min(context.headBytes, payload.length)
    const kept = context.isWhole ? 0 : headBytes
    const remembered = kept === 0 ? payload : payload.subarray(0, kept)
    const isKept =
      (context.isWhole || headBytes > 0) && remembered.length <= Math.min(keptFrameBytesMax, table.bytesMax)
    if (!isKept && base === 0) return undefined
    if (!isKept) return { kind: 'packed', type, bytes, keep: 0, base, share, kept: 0 }
    const number = same?.[0] ?? table.free()
    table.hold(number, { ...context, headBytes, bytes: alone(remembered) })
    return { kind: 'packed', type, bytes, keep: number + 1, base, share, kept }
  }

  forget(): void {
    this.#table.clear()
  }
}

export class HeldContexts {
  readonly #table: ContextTable<Kept>

  constructor(bytesMax: number) {
    this.#table = new ContextTable(bytesMax)
  }

  get bytes(): number {
    return this.#table.bytes
  }

  /** The frame that came as this one, in its turn, whatever becomes of its stream. Throws `LinkFault`. */
  unpack({ type, bytes, keep, base, share, kept }: PackedFrame): CarriedFrame {
    if (!packable.has(type)) throw new LinkFault(`a frame of type ${type} is never packed`)
    const payload = base === 0 ? bytes : decodeDifference(bytes, this.#base(base - 1, share), carriedBytesMax)
    if (kept > payload.length) throw new LinkFault(`${kept} bytes to be kept of ${payload.length}`)
    if (keep > 0) this.#keep(keep - 1, kept === 0 ? payload : payload.subarray(0, kept))
    return { kind: 'tunnel', type, payload }
  }

  forget(): void {
    this.#table.clear()
  }

  #base(number: number, share: number): Buffer {
    const entry = this.#table.use(number)
    if (entry === undefined) throw new LinkFault(`a difference from ${number}, which is not kept`)
    if (share > entry.bytes.length) throw new LinkFault(`${share} bytes where ${entry.bytes.length} are kept`)
    return share === 0 ? entry.bytes : entry.bytes.subarray(0, share)
  }

  #keep(number: number, bytes: Buffer): void {
    const { bytesMax } = this.#table
    if (number >= contextsMax) throw new LinkFault(`a frame to be kept as ${number} where ${contextsMax} are kept`)
    if (bytes.length > bytesMax) throw new LinkFault(`${bytes.length} bytes to be kept where ${bytesMax} are`)
    this.#table.hold(number, { bytes: alone(bytes) })
  }
}

/** As it is where a difference would not be smaller. */
function against(payload: Buffer, same: Found | undefined, like: Found | undefined): TravellingBytes {
  const found = same ?? like
  const whole = { bytes: payload, base: 0, share: 0 }
  if (found === undefined) return whole
  const [number, { bytes: kept, headBytes }] = found
  const share = same === undefined ? headBytes : 0
  const difference = encodeDifference(payload, share === 0 ? kept : kept.subarray(0, share))
  return difference.length < payload.length ? { bytes: difference, base: number + 1, share } : whole
}

/** A copy that keeps nothing else in memory. */
function alone(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
