/** The body of a watch as WebSocket messages, one for each event: text, or binary where the events are in protobuf. */
import { frameBytesMax } from '../../../kube/frames.ts'
import { piecesOf } from '../../answer/pieces.ts'
import type { Response } from '../../endpoint.ts'
import { closeFrame, frameOf, opcodes } from './frames.ts'

/** Not a generator: a client that leaves must not wait for the next event. */
export class EventMessages implements AsyncIterableIterator<Buffer> {
  readonly #events: AsyncIterator<Buffer>
  readonly #cutter: EventCutter
  readonly #opcode: number
  #over = false

  constructor({ body, headers }: Pick<Response, 'body' | 'headers'>) {
    const isProtobuf = String(headers['content-type']).startsWith('application/vnd.kubernetes.protobuf')
    this.#events = piecesOf(body)
    this.#cutter = new EventCutter(isProtobuf)
    this.#opcode = isProtobuf ? opcodes.binary : opcodes.text
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Buffer>> {
    while (!this.#over) {
      const { value, done } = await this.#events.next()
      if (this.#over) break
      if (done === true) {
        this.#over = true
        return { value: closeFrame(), done: false }
      }
      const messages = this.#cutter.push(value)
      if (messages.length > 0) {
        return { value: Buffer.concat(messages.map((event) => frameOf(this.#opcode, event))), done: false }
      }
    }
    return { value: undefined, done: true }
  }

  async return(): Promise<IteratorResult<Buffer>> {
    this.#over = true
    await this.#events.return?.()
    return { value: undefined, done: true }
  }
}

const newline = 0x0a
const lengthBytes = 4

/** Cuts a watch's stream into its events: lines, each with its end as the real one sends them, or bytes behind their length. */
export class EventCutter {
  readonly #byLength: boolean
  /** The event whose end has not come yet, and how many bytes it takes to go on with it. */
  #begun: Buffer[] = []
  #begunBytes = 0
  #neededBytes = 0

  constructor(byLength: boolean) {
    this.#byLength = byLength
  }

  /** The events that this chunk completes. Throws for one that is too large; the stream is of no more use then. */
  push(chunk: Buffer): Buffer[] {
    let bytes = chunk
    if (this.#begunBytes > 0) {
      this.#begun.push(chunk)
      this.#begunBytes += chunk.length
      const goesOn = this.#byLength ? this.#begunBytes >= this.#neededBytes : chunk.includes(newline)
      if (!goesOn) {
        this.#check(this.#begunBytes)
        return []
      }
      bytes = Buffer.concat(this.#begun)
    }
    this.#begun = []
    this.#begunBytes = 0
    const events: Buffer[] = []
    let at = 0
    for (let end = this.#endOf(bytes, at); end <= bytes.length; end = this.#endOf(bytes, at)) {
      events.push(bytes.subarray(this.#byLength ? at + lengthBytes : at, end))
      at = end
    }
    if (at < bytes.length) {
      this.#begun.push(bytes.subarray(at))
      this.#begunBytes = bytes.length - at
      this.#neededBytes = this.#byLength ? this.#endOf(bytes, at) - at : 0
      this.#check(Math.max(this.#begunBytes, this.#neededBytes))
    }
    return events
  }

  /** Behind the end of the bytes: more are needed, as many as are known to be. */
  #endOf(bytes: Buffer, at: number): number {
    if (this.#byLength) {
      return at + lengthBytes + (bytes.length - at < lengthBytes ? 0 : bytes.readUInt32BE(at))
    }
    const end = bytes.indexOf(newline, at)
    return end < 0 ? bytes.length + 1 : end + 1
  }

  #check(size: number): void {
    if (size > frameBytesMax) throw new Error(`an event of over ${frameBytesMax} bytes`)
  }
}
