/**
 * Writes a message from its end to its beginning: when the length of something has to be written, the thing itself is
 * already there. The buffer is used again and again; `done` copies the message out of it.
 */

/** What stays allocated between two messages: most objects are smaller than this. */
const bytesKept = 1 << 16
/** Room for a few tags, lengths and numbers, made before each field. */
const margin = 64
/** From here on a copy by the platform is cheaper than one by hand. */
const copyFrom = 48

export class ProtobufWriter {
  #bytes = Buffer.allocUnsafeSlow(bytesKept)
  /** What is written begins here. */
  #at = bytesKept

  /** How much is written. */
  get size(): number {
    return this.#bytes.length - this.#at
  }

  /** Makes room for `length` bytes and whatever stands around them. */
  room(length: number): void {
    const wanted = length + margin
    if (this.#at >= wanted) return
    const written = this.size
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, written + wanted))
    const at = larger.length - written
    this.#bytes.copy(larger, at, this.#at)
    this.#bytes = larger
    this.#at = at
  }

  byte(value: number): void {
    this.#bytes[--this.#at] = value
  }

  /** Of a field of any message: none has a number that takes more than two bytes. */
  tag(tag: number): void {
    if (tag > 0x7f) {
      this.#bytes[--this.#at] = tag >> 7
      this.#bytes[--this.#at] = (tag & 0x7f) | 0x80
    } else this.#bytes[--this.#at] = tag
  }

  copy(source: Buffer, from: number, to: number): void {
    const length = to - from
    this.room(length)
    const bytes = this.#bytes
    const start = this.#at - length
    if (length < copyFrom) for (let i = 0; i < length; i++) bytes[start + i] = source[from + i] as number
    else source.copy(bytes, start, from, to)
    this.#at = start
  }

  text(text: string): void {
    const length = Buffer.byteLength(text)
    this.room(length)
    this.#at -= length
    this.#bytes.write(text, this.#at, 'utf8')
  }

  /** The length of what was written since so much was. */
  length(before: number): void {
    this.varint(this.#bytes.length - this.#at - before)
  }

  /** An integer that is not negative. */
  varint(value: number): void {
    if (value < 0x80) {
      this.#bytes[--this.#at] = value
      return
    }
    let size = 1
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++
    this.#at -= size
    let at = this.#at
    let rest = value
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[at++] = (rest % 0x80) | 0x80
    this.#bytes[at] = rest
  }

  /** Any of 64 bits, negative ones as their complement. */
  int64(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    const encoded: number[] = []
    for (; rest >= 0x80n; rest >>= 7n) encoded.push(Number(rest & 0x7fn) | 0x80)
    encoded.push(Number(rest))
    for (let i = encoded.length - 1; i >= 0; i--) this.#bytes[--this.#at] = encoded[i] as number
  }

  /** An integer that a number holds exactly. */
  integer(value: number): void {
    if (value >= 0) this.varint(value)
    else this.int64(BigInt(value))
  }

  double(value: number): void {
    this.#at -= 8
    this.#bytes.writeDoubleLE(value, this.#at)
  }

  /** A copy of what was written since so much was. */
  since(before: number): Buffer {
    return Buffer.from(this.#bytes.subarray(this.#at, this.#bytes.length - before))
  }

  /** The message; the writer is as new. */
  done(): Buffer {
    const message = this.since(0)
    this.clear()
    return message
  }

  clear(): void {
    if (this.#bytes.length > bytesKept) this.#bytes = Buffer.allocUnsafeSlow(bytesKept)
    this.#at = this.#bytes.length
  }
}
