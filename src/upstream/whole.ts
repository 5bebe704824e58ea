/** An answer's body in one piece, for the small ones: unpacked, and refused beyond a limit. */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Unreachable, type UpstreamResponse } from './upstream.ts'

/** The head and the end of gzip with nothing in between. */
const gzipBytesMin = 18
/** Deflate packs no better. */
const ratioMax = 1_032
/** The smallest piece that zlib takes. */
const bytesMin = 64

export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'

  constructor(bytesMax: number) {
    super(`the answer is larger than ${bytesMax} bytes`)
  }
}

/** The limit holds for what came and for what it unpacks to. */
export async function readWhole(answer: Pick<UpstreamResponse, 'headers' | 'body'>, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new AnswerTooLarge(bytesMax) // leaving the loop calls `return()`
    chunks.push(chunk)
  }
  const whole = Buffer.concat(chunks, bytes)
  if (answer.headers['content-encoding'] !== 'gzip' || bytes === 0) return whole
  try {
    return await promisify(gunzip)(whole, { maxOutputLength: bytesMax, chunkSize: unpackedBytes(whole, bytesMax) + 1 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw new AnswerTooLarge(bytesMax)
    throw new Unreachable('the answer cannot be unpacked', true)
  }
}

/**
 * What gzip says at its end: a piece that large takes all of it, and there is nothing to put together out of small ones. An
 * answer that lies gets several pieces, or one as large as so many packed bytes could have needed.
 */
function unpackedBytes(packed: Buffer, bytesMax: number): number {
  if (packed.length < gzipBytesMin) return bytesMin
  const said = packed.readUInt32LE(packed.length - 4)
  return Math.max(bytesMin, Math.min(said, bytesMax, packed.length * ratioMax))
}
