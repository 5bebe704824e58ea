/** Bodies in batches: joined for the stream, compressed, their buffers used again. */
import { createGzip, type Gzip } from 'node:zlib'
import type { ResponseBody } from '../endpoint.ts'

/** Speed over ratio, as kube-apiserver chooses too. */
const gzipLevel = 1

/** What is written to a stream at once: few system calls, and no list blocks its neighbours for long. */
export const batchBytes = 128 * 1024

/** The pieces joined into buffers of about `batchBytes`. */
function* batches(pieces: readonly Buffer[]): Iterable<Buffer> {
  const packer = new Packer(pieces)
  while (!packer.done) yield packer.fill(Buffer.allocUnsafeSlow(batchBytes))
}

/** Copies pieces one after the other into whatever buffer it is given; a piece may continue in the next. */
export class Packer {
  readonly #pieces: readonly Buffer[]
  #next = 0
  #offset = 0

  constructor(pieces: readonly Buffer[]) {
    this.#pieces = pieces
  }

  get done(): boolean {
    return this.#next >= this.#pieces.length
  }

  /** The part of `target` that was filled. */
  fill(target: Buffer): Buffer {
    const pieces = this.#pieces
    const size = target.length
    let at = 0
    let next = this.#next
    let offset = this.#offset
    while (next < pieces.length && at < size) {
      const piece = pieces[next] as Buffer
      const left = piece.length - offset
      if (left <= size - at) {
        target.set(offset === 0 ? piece : piece.subarray(offset), at)
        at += left
        next++
        offset = 0
      } else {
        target.set(piece.subarray(offset, offset + size - at), at)
        offset += size - at
        at = size
      }
    }
    this.#next = next
    this.#offset = offset
    return at === size ? target : target.subarray(0, at)
  }
}

/** Buffers for batches under way, used again and again: fresh ones for every list would keep the collector busy. */
export class BatchPool {
  readonly #free: Buffer[] = []

  take(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(batchBytes)
  }

  /** 32 of them, 4 MiB, are kept: more lists than that at once are rare, and they get fresh ones. */
  give(buffer: Buffer): void {
    if (this.#free.length < 32) this.#free.push(buffer)
  }
}

/** Compression runs in the thread pool, fed no faster than it is drained. */
export async function* compressed(body: ResponseBody): AsyncIterable<Buffer> {
  const gzip = createGzip({ level: gzipLevel })
  // A body that breaks off in the middle must not look whole.
  feed(body, gzip).catch((why: unknown) => gzip.destroy(why as Error))
  try {
    for await (const chunk of gzip) yield chunk as Buffer
  } finally {
    gzip.destroy()
  }
}

async function feed(body: ResponseBody, gzip: Gzip): Promise<void> {
  const isMade = !Buffer.isBuffer(body) && Symbol.asyncIterator in body
  const pieces = isMade ? body : batches(Buffer.isBuffer(body) ? [body] : body)
  for await (const batch of pieces) {
    if (!gzip.write(batch)) await drained(gzip)
    if (gzip.destroyed) return
  }
  gzip.end()
}

function drained(gzip: Gzip): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      gzip.removeListener('drain', settle)
      gzip.removeListener('close', settle)
      resolve()
    }
    gzip.once('drain', settle)
    gzip.once('close', settle)
  })
}
