/** The head of a frame as bytes: numbers, texts, and the shorter forms of both where there are many of them. */

const samePrefixMax = 0xff

/** Where each head is written, one at a time. Few are longer: one of some hundred changes. */
const desk = Buffer.allocUnsafeSlow(32 * 1024)
/**
 * Where they are kept, in memory that nothing else lies in: the log holds them until they are synced, and in Node's pool of
 * small buffers each would hold the frames of watches that were made beside it.
 */
const slabBytes = 16 * 1024
let slab = Buffer.alloc(0)
let slabUsed = 0

/** Grows as it is written to. One at a time. */
export class HeadWriter {
  #bytes = desk
  #at: number

  /** Leaves so many bytes at its beginning to its caller. */
  constructor(start: number) {
    this.#at = start
  }

  whole(): Buffer {
    if (this.#bytes !== desk) return this.#bytes.subarray(0, this.#at)
    const kept = room(this.#at)
    desk.copy(kept, 0, 0, this.#at)
    return kept
  }

  /** Where the next so many bytes go. */
  #take(length: number): number {
    const at = this.#at
    this.#at += length
    if (this.#at > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(this.#at * 2)
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

  /** Seven bits in each byte, the lowest first. */
  short(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is no version or position`)
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.uint8((rest % 0x80) | 0x80)
    this.uint8(rest)
  }

  difference(value: number): void {
    this.short(value < 0 ? -2 * value - 1 : 2 * value)
  }

  /** Without what it has in common with the one before it. */
  textAfter(before: string, value: string): void {
    let same = 0
    while (same < samePrefixMax && same < value.length && value[same] === before[same]) same++
    // Half a character cannot be written.
    if (same > 0 && isHighSurrogate(value, same - 1)) same--
    const rest = value.slice(same)
    const length = Buffer.byteLength(rest)
    this.uint8(same)
    this.short(length)
    const at = this.#take(length)
    this.#bytes.write(rest, at)
  }
}

function room(length: number): Buffer {
  if (length > slabBytes / 4) return Buffer.allocUnsafeSlow(length)
  if (slabUsed + length > slab.length) {
    slab = Buffer.allocUnsafeSlow(slabBytes)
    slabUsed = 0
  }
  const start = slabUsed
  slabUsed += length
  return slab.subarray(start, slabUsed)
}

function isHighSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800
}

/** Throws `RangeError` beyond the end, and for a number that no writer gives. */
export class HeadReader {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes
    this.#at = start
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#at++)
  }

  uint32(): number {
    this.#at += 4
    return this.#bytes.readUInt32LE(this.#at - 4)
  }

  number(): number {
    this.#at += 8
    const value = this.#bytes.readDoubleLE(this.#at - 8)
    if (!Number.isSafeInteger(value)) throw new RangeError('no version or position')
    return value
  }

  short(): number {
    let value = 0
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.uint8()
      value += (byte & 0x7f) * unit
      if (byte < 0x80) break
    }
    if (!Number.isSafeInteger(value)) throw new RangeError('no version or position')
    return value
  }

  difference(): number {
    const value = this.short()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  text(length = this.uint32()): string {
    const start = this.#at
    this.#at += length
    if (this.#at > this.#bytes.length) throw new RangeError('a text beyond the end')
    return this.#bytes.toString('utf8', start, this.#at)
  }
}
