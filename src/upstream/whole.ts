/** An answer's body in one piece, for the small ones: unpacked, and refused beyond a limit. */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Unreachable, type UpstreamResponse } from './upstream.ts'

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
    return await promisify(gunzip)(whole, { maxOutputLength: bytesMax })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw new AnswerTooLarge(bytesMax)
    throw new Unreachable('the answer cannot be unpacked', true)
  }
}
