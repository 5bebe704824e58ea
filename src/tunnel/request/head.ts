/** Takes a head from the beginning of a stream and leaves what follows it there. */
import type { Readable } from 'node:stream'
import { LinkFault } from '../../link/frames/bytes.ts'
import { headBytesMax } from './request.ts'

/** The bytes of the head without their length; undefined where the stream ends or breaks off before. Throws `LinkFault`. */
export async function takeHead(stream: Readable): Promise<Buffer | undefined> {
  let come: Buffer = Buffer.alloc(0)
  for (;;) {
    const chunk = stream.read() as Buffer | null
    if (chunk === null) {
      if (stream.readableEnded || stream.destroyed) return undefined
      await news(stream)
      continue
    }
    come = come.length === 0 ? chunk : Buffer.concat([come, chunk])
    const start = lengthOf(come)
    if (start === undefined || come.length < start.at + start.length) continue
    const end = start.at + start.length
    if (come.length > end) stream.unshift(come.subarray(end))
    return come.subarray(start.at, end)
  }
}

/** Where the head begins and how long it is, once enough has come to tell. */
function lengthOf(come: Buffer): { at: number; length: number } | undefined {
  let [length, scale] = [0, 1]
  for (let at = 0; at < Math.min(come.length, 4); at++, scale *= 0x80) {
    const byte = come[at] as number
    length += (byte & 0x7f) * scale
    if (length > headBytesMax) break
    if (byte < 0x80) return { at: at + 1, length }
  }
  if (come.length >= 4 || length > headBytesMax) throw new LinkFault(`a head of more than ${headBytesMax} bytes`)
  return undefined
}

const signs = ['readable', 'end', 'close'] as const

function news(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    const come = () => {
      for (const sign of signs) stream.off(sign, come)
      resolve()
    }
    for (const sign of signs) stream.on(sign, come)
  })
}
