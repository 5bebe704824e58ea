/** Bodies as what is pulled, and what becomes of one that has no reader. */
import type { ResponseBody } from '../endpoint.ts'

/** A body that will not be read. */
export function cancel(body: ResponseBody): void {
  if (!Buffer.isBuffer(body) && Symbol.asyncIterator in body) leave(body[Symbol.asyncIterator]())
}

/** A reader that stops listening does not care how the source takes it. */
export function leave(chunks: AsyncIterator<Buffer>): void {
  chunks.return?.().catch(() => {})
}

/** Any body as what is pulled. */
export function piecesOf(body: ResponseBody): AsyncIterator<Buffer> {
  if (!Buffer.isBuffer(body) && Symbol.asyncIterator in body) return body[Symbol.asyncIterator]()
  return (async function* () {
    yield* Buffer.isBuffer(body) ? [body] : body
  })()
}
