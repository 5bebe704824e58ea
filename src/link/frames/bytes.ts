/**
 * The bytes that frames are made of: numbers of seven bits a byte, texts and bytes behind their length. The reader believes
 * no length: what it returns are views of bytes that have arrived, so that a claim can cost no memory (L11).
 */
import { isUtf8 } from 'node:buffer'

/** What the other side of a link sent is not what `docs/link.md` allows, or what we were to send is not. Closes a link. */
export class LinkFault extends Error {
  override readonly name = 'LinkFault'
}

/** What a writer begins with: most frames are smaller, and it doubles. */
const writerBytes = 256

/** Eight bytes of seven bits hold every safe integer. */
const numberBytesMax = 8

export class ByteWriter {
  readonly #max: number
  #bytes = Buffer.allocUnsafe(writerBytes)
  #at = 0

  /** To write more than `max` bytes is a fault. */
  constructor(max: number) {
    this.#max = max
  }

  byte(value: number): void {
    // First the room: making it may replace the bytes.
    const at = this.#room(1)
    this.#bytes[at] = value
  }

  number(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new LinkFault(`${value} is no number of a frame`)
    let at = this.#room(numberBytesMax)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[at++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[at++] = rest
    this.#at = at
  }

  /** Without a length: for what has one elsewhere. */
  raw(bytes: Uint8Array): void {
    const at = this.#room(bytes.length)
    this.#bytes.set(bytes, at)
  }

  bytes(bytes: Uint8Array): void {
    this.number(bytes.length)
    this.raw(bytes)
  }

  /** Writes its content behind its length, which is known only afterwards. */
  sized(write: () => void): void {
    const start = this.#at
    write()
    const length = this.#at - start
    const head = lengthBytes(length)
    this.#room(head)
    this.#bytes.copyWithin(start + head, start, start + length)
    this.#at = start
    this.number(length)
    this.#at = start + head + length
  }

  /** A view of what was written; the writer is not used any more. */
  whole(): Buffer {
    if (this.#at > this.#max) throw new LinkFault(`${this.#at} bytes are more than ${this.#max}`)
    return this.#bytes.subarray(0, this.#at)
  }

  /** Where `count` bytes can be written; they count as written. A number takes back what it did not need. */
  #room(count: number): number {
    const at = this.#at
    this.#at += count
    if (this.#at > this.#bytes.length) {
      // A number reserves more than it may need: only `whole` knows whether there is too much.
      if (this.#at > this.#max + numberBytesMax) throw new LinkFault(`more than ${this.#max} bytes`)
      const grown = Buffer.allocUnsafe(Math.max(this.#at, this.#bytes.length * 2))
      this.#bytes.copy(grown, 0, 0, at)
      this.#bytes = grown
    }
    return at
  }
}

function lengthBytes(value: number): number {
  let count = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) count++
  return count
}

export class ByteReader {
  readonly #bytes: Buffer
  #at: number
  readonly #end: number

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  get isAtEnd(): boolean {
    return this.#at === this.#end
  }

  byte(): number {
    if (this.#at === this.#end) throw new LinkFault('ends too early')
    return this.#bytes[this.#at++] as number
  }

  /** The shortest form is the only one: no two spellings of a frame. */
  number(): number {
    let value = 0
    let scale = 1
    for (let count = 0; count < numberBytesMax; count++) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte >= 0x80) {
        scale *= 0x80
        continue
      }
      if (byte === 0 && count > 0) throw new LinkFault('a number is longer than it needs to be')
      if (value > Number.MAX_SAFE_INTEGER) break
      return value
    }
    throw new LinkFault('a number is too large')
  }

  /** A view. */
  bytes(max: number): Buffer {
    return this.raw(this.#length(max))
  }

  /** So many bytes, as a view. */
  raw(length: number): Buffer {
    if (length > this.#end - this.#at) throw new LinkFault('ends too early')
    const start = this.#at
    this.#at += length
    return this.#bytes.subarray(start, this.#at)
  }

  /** Everything that is left, as a view. */
  rest(): Buffer {
    const start = this.#at
    this.#at = this.#end
    return this.#bytes.subarray(start, this.#end)
  }

  /** A reader of the next piece alone, which this one passes. */
  part(max: number): ByteReader {
    const length = this.#length(max)
    const start = this.#at
    if (length > this.#end - start) throw new LinkFault('ends too early')
    this.#at += length
    return new ByteReader(this.#bytes, start, this.#at)
  }

  #length(max: number): number {
    const length = this.number()
    if (length > max) throw new LinkFault(`${length} bytes where ${max} are allowed`)
    return length
  }
}

/** What is no UTF-8 is no text: replaced characters would be another key. */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new LinkFault('a text is not UTF-8')
  return bytes.toString('utf8')
}
