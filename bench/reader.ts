/**
 * Many watches on one HTTP/2 connection, read as cheaply as can be: frames are walked and newlines counted, because a
 * full client at 100,000 events a second would use the cores that the server under measurement needs.
 */

import { connect, type TLSSocket } from 'node:tls'
import type { Address } from './bench.ts'
import { connectionWindowBytes, streamWindowBytes, tlsOptions } from './client.ts'
import { stampKey, stampWidth } from './fixture.ts'

const frameHeaderBytes = 9
const newline = 10
const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const
const flag = { ack: 1, endStream: 1, endHeaders: 4 } as const

/** The HPACK byte of the indexed field `:status: 200`, which every server sends first. */
const status200 = 0x88

/** Windows are given back in steps: smaller ones would be traffic of their own. */
const windowStepBytes = 1024 * 1024

export type Watching = {
  /** Resolved when every stream has its 200. */
  readonly opened: Promise<void>
  close(): void
}

export type Watch = {
  readonly at: Address
  readonly path: string
  readonly streams: number
  /** The form that is asked for: events in protobuf are counted by their lengths, and tell no latency. */
  readonly form?: 'json' | 'protobuf'
  /** Called with the number of whole events in what arrived. */
  readonly events: (count: number) => void
  /** Of one stream per connection: how long ago the update behind an event was sent. */
  readonly latency: (ms: number) => void
  readonly failed: (why: string) => void
}

export function watchMany(watch: Watch): Watching {
  const { hostname, port, host } = new URL(watch.at.url)
  const socket = connect({ host: hostname, port: Number(port), ALPNProtocols: ['h2'], ...tlsOptions(watch.at.tls) })
  const ids = Array.from({ length: watch.streams }, (_, index) => 2 * index + 1)
  let closed = false
  const fail = (why: string) => {
    if (!closed) watch.failed(why)
  }
  socket.setNoDelay(true)
  socket.once('secureConnect', () => socket.write(opening(ids, host, watch)))
  socket.on('error', (error) => fail(error.message))
  socket.on('close', () => fail('the connection was closed'))
  const opened = new Promise<void>((resolve) => {
    let waiting = watch.streams
    const onOpen = () => {
      waiting -= 1
      if (waiting === 0) resolve()
    }
    socket.on('data', frameWalker({ socket, onOpen, fail, watch }))
  })
  return {
    opened,
    close: () => {
      closed = true
      socket.destroy()
    },
  }
}

type Walk = {
  readonly socket: TLSSocket
  readonly watch: Watch
  readonly onOpen: () => void
  readonly fail: (why: string) => void
}

/** A function of chunks: keeps what is left of a frame that is not complete yet. */
function frameWalker({ socket, watch, onOpen, fail }: Walk): (chunk: Buffer) => void {
  const isProtobuf = watch.form === 'protobuf'
  const stamps = isProtobuf ? () => {} : stampFinder(watch.latency)
  const messages = messageCounter()
  const consumed = new Map<number, number>()
  let rest: Buffer = Buffer.alloc(0)
  const giveBack = (stream: number, bytes: number) => {
    const sum = (consumed.get(stream) ?? 0) + bytes
    consumed.set(stream, sum < windowStepBytes ? sum : 0)
    if (sum >= windowStepBytes) socket.write(windowUpdate(stream, sum))
  }
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let at = 0
    let count = 0
    while (bytes.length - at >= frameHeaderBytes) {
      const length = bytes.readUIntBE(at, 3)
      const end = at + frameHeaderBytes + length
      if (end > bytes.length) break
      const type = bytes[at + 3]
      const flags = bytes[at + 4]!
      const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff
      const payload = at + frameHeaderBytes
      if (type === frame.data) {
        if ((flags & flag.endStream) !== 0) fail('a watch ended')
        if (isProtobuf) count += messages(stream, bytes, payload, end)
        for (
          let next = isProtobuf ? -1 : bytes.indexOf(newline, payload);
          next >= 0 && next < end;
          next = bytes.indexOf(newline, next + 1)
        ) {
          count += 1
        }
        if (stream === 1) stamps(bytes.subarray(payload, end))
        giveBack(stream, length)
        giveBack(0, length)
      } else if (type === frame.headers) {
        if (bytes[payload] === status200) onOpen()
        else fail('a watch was not answered with 200')
      } else if (type === frame.settings && (flags & flag.ack) === 0) {
        socket.write(makeFrame(frame.settings, flag.ack, 0))
      } else if (type === frame.ping && (flags & flag.ack) === 0) {
        socket.write(makeFrame(frame.ping, flag.ack, 0, Buffer.from(bytes.subarray(payload, end))))
      } else if (type === frame.reset || type === frame.goaway) {
        fail(type === frame.reset ? 'a watch was reset' : 'the server said goodbye')
      }
      at = end
    }
    rest = at === bytes.length ? Buffer.alloc(0) : bytes.subarray(at)
    if (count > 0) watch.events(count)
  }
}

const lengthBytes = 4

/** Counts the messages that end between two places, by the lengths they begin with: a few steps, whatever their size. */
function messageCounter(): (stream: number, bytes: Buffer, from: number, to: number) => number {
  /** Of each stream: bytes left of its message, or, negative, bytes left of the length before it. */
  const left = new Map<number, number>()
  const lengths = new Map<number, number>()
  return (stream, bytes, from, to) => {
    let need = left.get(stream) ?? -lengthBytes
    let length = lengths.get(stream) ?? 0
    let count = 0
    for (let at = from; at < to; ) {
      if (need < 0) {
        length = length * 256 + bytes[at++]!
        need += 1
        if (need < 0) continue
        need = length
        length = 0
      }
      const taken = Math.min(need, to - at)
      at += taken
      need -= taken
      if (need > 0) break
      count += 1
      need = -lengthBytes
    }
    left.set(stream, need)
    lengths.set(stream, length)
    return count
  }
}

/** Finds the time of sending in each event of one stream; an event may come in several pieces. */
function stampFinder(latency: (ms: number) => void): (piece: Buffer) => void {
  const mark = Buffer.from(`"${stampKey}":"`)
  let text: Buffer = Buffer.alloc(0)
  return (piece) => {
    text = text.length === 0 ? Buffer.from(piece) : Buffer.concat([text, piece])
    for (let end = text.indexOf(newline); end >= 0; end = text.indexOf(newline)) {
      const found = text.indexOf(mark)
      if (found >= 0 && found < end) {
        const start = found + mark.length
        const sent = BigInt(text.toString('latin1', start, start + stampWidth))
        // The monotonic clock is one for all processes of a machine.
        if (sent > 0n) latency(Number(process.hrtime.bigint() - sent) / 1e6)
      }
      text = text.subarray(end + 1)
    }
  }
}

function opening(ids: readonly number[], authority: string, { path, form }: Watch): Buffer {
  const accept = form === 'protobuf' ? 'application/vnd.kubernetes.protobuf' : 'application/json'
  const settings = Buffer.alloc(12)
  settings.writeUInt16BE(2, 0) // ENABLE_PUSH: 0
  settings.writeUInt16BE(4, 6) // INITIAL_WINDOW_SIZE
  settings.writeUInt32BE(streamWindowBytes, 8)
  const fields = [
    literal(':method', 'GET'),
    literal(':scheme', 'https'),
    literal(':authority', authority),
    literal(':path', path),
    literal('accept', accept),
  ]
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    makeFrame(frame.settings, 0, 0, settings),
    windowUpdate(0, connectionWindowBytes - 65_535),
    ...ids.map((id) => makeFrame(frame.headers, flag.endStream | flag.endHeaders, id, Buffer.concat(fields))),
  ])
}

/** HPACK: a literal field without indexing, both strings plain. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0), plainText(name), plainText(value)])
}

/** Behind its length, which takes a second byte from 127 on and would take a third from 255 on. */
function plainText(text: string): Buffer {
  if (text.length >= 255) throw new Error(`a field of ${text.length} bytes`)
  const length = text.length < 127 ? [text.length] : [127, text.length - 127]
  return Buffer.concat([Buffer.from(length), Buffer.from(text)])
}

function windowUpdate(stream: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(bytes)
  return makeFrame(frame.windowUpdate, 0, stream, payload)
}

function makeFrame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(frameHeaderBytes)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
