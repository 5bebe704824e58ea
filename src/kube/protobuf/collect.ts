/**
 * Passes over the fields of a message once and notes in a frame where their values stand. Of what can be there once the last
 * counts, as in Go; messages given twice are one, so all their pieces are kept, in a chain; so are the elements of lists and
 * the entries of maps.
 */
import { BOOL, type Field, FLOAT64, INT32, INT64, MANY, MAP, MESSAGE, type Message } from './facts.ts'
import { ProtobufFault } from './fault.ts'
import { Frames } from './frames.ts'
import { WireReader } from './wire.ts'

/** Only schemas hold themselves; as deep as our own JSON reader goes. */
const depthMax = 1000

/** A link of a chain: where the value begins and ends, the next one, and where the message around it ends. */
const LINK = 4
export const NEXT = 2
export const AROUND = 3

/**
 * What the two cells of a value say, the first being 0 where there is none:
 * - strings and bytes: where they begin, plus 1, and where they end;
 * - numbers and booleans: where they begin, plus 1;
 * - everything else, and all that repeats: the first link and the last.
 */
export class Collecting {
  readonly frames = new Frames()
  readonly wire = new WireReader()
  bytes: Buffer = Buffer.alloc(0)
  /** Whether something was passed over, unread, for something that came later. */
  overwritten = false
  #depth = 0

  start(bytes: Buffer): void {
    this.bytes = bytes
    this.wire.bytes = bytes
    this.overwritten = false
    this.#depth = 0
    this.frames.clear()
  }

  /** The frame of a message whose pieces are in a chain; has to be given back. */
  open(message: Message, first: number): number {
    if (++this.#depth > depthMax) throw new ProtobufFault('an object deeper than any that can be stored')
    const frame = this.frames.take(message.slots * 2)
    this.pieces(message, frame, first)
    return frame
  }

  /** Gives a frame back, with all that was noted after it. */
  close(frame: number): void {
    this.frames.used = frame
    this.#depth--
  }

  pieces(message: Message, frame: number, first: number): void {
    for (let piece = first; piece !== 0; piece = this.frames.cells[piece + NEXT] as number) {
      const { cells } = this.frames
      this.fields(message, frame, cells[piece] as number, cells[piece + 1] as number)
    }
  }

  fields(message: Message, frame: number, start: number, end: number): void {
    const { wire } = this
    const { numbered, name } = message
    wire.at = start
    while (wire.at < end) {
      const before = wire.at
      const field = numbered[wire.tag(end, name)]
      if (field === undefined) wire.skip(before, end)
      else this.#take(field, frame + field.slot * 2, end)
    }
  }

  #take(field: Field, cell: number, end: number): void {
    const { kind, shape } = field
    const { frames, wire } = this
    if (kind === BOOL || kind === INT32 || kind === INT64) {
      if (shape === MANY && wire.wireType === 2) {
        this.#packed(cell, end)
        return
      }
      wire.expect(0, field.goName)
      const start = wire.at
      wire.passVarint(end)
      if (shape === MANY) this.#link(cell, start, wire.at, end)
      else frames.cells[cell] = start + 1
    } else if (kind === FLOAT64) {
      wire.expect(1, field.goName)
      frames.cells[cell] = wire.at + 1
      wire.fixed64(end)
    } else {
      wire.expect(2, field.goName)
      const to = wire.length(end)
      if (shape === MANY || shape === MAP || kind >= MESSAGE) this.#link(cell, wire.at, to, end)
      else {
        if (frames.cells[cell] !== 0) this.overwritten = true
        frames.cells[cell] = wire.at + 1
        frames.cells[cell + 1] = to
      }
      wire.at = to
    }
  }

  /** Numbers of a list may stand together, though no Kubernetes client writes them so. */
  #packed(cell: number, end: number): void {
    const { wire } = this
    const to = wire.length(end)
    while (wire.at < to) {
      const start = wire.at
      wire.passVarint(end)
      this.#link(cell, start, wire.at, end)
    }
  }

  #link(cell: number, start: number, end: number, around: number): void {
    const added = this.frames.take(LINK)
    const { cells } = this.frames
    cells[added] = start
    cells[added + 1] = end
    cells[added + AROUND] = around
    const last = cells[cell + 1] as number
    if (last === 0) cells[cell] = added
    else cells[last + NEXT] = added
    cells[cell + 1] = added
  }
}

/** So many bytes hold no more bits than a number, and no sign. */
const exactBytes = 7

/** The bytes at `start` as Go reads them into an integer of so many bits. */
export function integerAt(wire: WireReader, start: number, bits: 32 | 64): number | bigint {
  const { bytes } = wire
  let value = 0
  let weight = 1
  for (let at = start; at < start + exactBytes; at++) {
    const byte = bytes[at] as number
    value += (byte & 0x7f) * weight
    if (byte < 0x80) return bits === 32 ? value | 0 : value
    weight *= 128
  }
  wire.at = start
  return BigInt.asIntN(bits, wire.uint64(bytes.length))
}
