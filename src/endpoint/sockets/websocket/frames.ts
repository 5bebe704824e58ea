/**
 * The server's side of RFC 6455, as much of it as a watch takes: the opening handshake, frames going out, and of what comes
 * in only the control frames. Messages of a client mean nothing here and are thrown away as they come, without being kept.
 *
 * Not `ws`, which the link has: that collects, unmasks and checks each message before it can be thrown away, ends connections for what
 * kube-apiserver passes over (a long ping, text that is no UTF-8, pieces out of order), answers a handshake in words of its own, and would queue what it
 * sends behind the back of the sender that bounds every other answer by what its reader takes (`endpoint/sockets/sender`).
 */
import { createHash } from 'node:crypto'

export const opcodes = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** What a client's frames ask of us; the rest of what they carry is ignored, as kube-apiserver does. */
export type Heard =
  | { readonly kind: 'ping'; readonly payload: Buffer }
  | { readonly kind: 'close'; readonly code: number }

const closeNormal = 1000
const closeProtocolError = 1002
/** The most a control frame may carry; of a longer ping kube-apiserver, too, answers with the beginning. */
const controlBytesMax = 125
/** kube-apiserver's limit: a client that sends more at once is not waiting for events. Nothing of it is kept in any case. */
const frameBytesMax = 32 * 1024 * 1024
/** Two bytes, a length of up to eight, a masking key of four. */
const headBytesMax = 14

const accepting = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

/** The answer to a client's key. */
export function acceptOf(key: string): string {
  return createHash('sha1').update(key).update(accepting).digest('base64')
}

/** One whole message as one frame, unmasked as a server's are. */
export function frameOf(opcode: number, payload: Buffer): Buffer {
  const { length } = payload
  const headBytes = length <= controlBytesMax ? 2 : length < 0x1_0000 ? 4 : 10
  const frame = Buffer.allocUnsafe(headBytes + length)
  frame[0] = 0x80 | opcode
  if (headBytes === 2) frame[1] = length
  else if (headBytes === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeUInt32BE(0, 2)
    frame.writeUInt32BE(length, 6)
  }
  payload.copy(frame, headBytes)
  return frame
}

export function closeFrame(code = closeNormal): Buffer {
  return frameOf(opcodes.close, Buffer.from([code >> 8, code & 0xff]))
}

/** Reads a client's frames, however they are cut. After a close it is of no more use. */
export class ClientFrames {
  readonly #head = Buffer.alloc(headBytesMax)
  #headBytes = 0
  #closed = false
  /** Of the frame whose head is complete: how much of it is still to come, and what of it a ping has to be answered with. */
  #left = 0
  #ping: Buffer | undefined
  #pingBytes = 0
  #offset = 0

  push(chunk: Buffer): readonly Heard[] {
    const heard: Heard[] = []
    let at = 0
    while (at < chunk.length && !this.#closed) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, chunk.length - at)
        this.#take(chunk.subarray(at, at + taken))
        at += taken
        if (this.#left === 0) this.#finish(heard)
      } else {
        this.#head[this.#headBytes++] = chunk[at++] as number
        if (this.#headBytes === this.#headLength()) this.#begin(heard)
      }
    }
    return heard
  }

  /** As far as the bytes that are there tell. */
  #headLength(): number {
    if (this.#headBytes < 2) return headBytesMax
    const second = this.#head[1] as number
    const length = second & 0x7f
    return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + (second & 0x80 ? 4 : 0)
  }

  #begin(heard: Heard[]): void {
    const [first, second] = this.#head as unknown as [number, number]
    const opcode = first & 0x0f
    const short = second & 0x7f
    const left =
      short === 127 ? Number(this.#head.readBigUInt64BE(2)) : short === 126 ? this.#head.readUInt16BE(2) : short
    const isMasked = (second & 0x80) !== 0
    if (!isMasked || opcode === opcodes.close || left > frameBytesMax) {
      this.#closed = true
      heard.push({ kind: 'close', code: isMasked ? closeNormal : closeProtocolError })
      return
    }
    this.#left = left
    this.#offset = 0
    this.#pingBytes = 0
    this.#ping = opcode === opcodes.ping ? Buffer.alloc(Math.min(left, controlBytesMax)) : undefined
    if (left === 0) this.#finish(heard)
  }

  #take(part: Buffer): void {
    const key = this.#headBytes - 4
    if (this.#ping !== undefined) {
      const mirrored = Math.min(part.length, this.#ping.length - this.#pingBytes)
      for (let i = 0; i < mirrored; i++) {
        const mask = this.#head[key + ((this.#offset + i) & 3)] as number
        this.#ping[this.#pingBytes++] = (part[i] as number) ^ mask
      }
    }
    this.#offset += part.length
    this.#left -= part.length
  }

  #finish(heard: Heard[]): void {
    if (this.#ping !== undefined) heard.push({ kind: 'ping', payload: this.#ping })
    this.#ping = undefined
    this.#headBytes = 0
  }
}
