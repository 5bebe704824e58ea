/**
 * A GET of one object that its edge holds at some version: where the API server has the same, the edge hears so in a few bytes and shows
 * its own, which is byte for byte what the answer would have been (A5, A6). The API server was asked as for any other GET, so
 * the answer is as recent, and as much its caller's to see.
 */
import { replyVersion } from '../../kube/replies.ts'
import type { HeldObject, UpstreamResponse } from '../../upstream/upstream.ts'

/**
 * What is read before anything is passed on: nearly all objects are smaller. Each request that is under way may take it while its edge
 * reads slowly; what is larger goes on as it comes.
 */
export const comparedBytesMax = 64 * 1024

/** Undefined where it is the same; else the body, of which nothing is lost. Rejects as the body does. */
export async function unlessSame(
  { status, headers, body }: UpstreamResponse,
  held: HeldObject,
): Promise<Buffer | AsyncIterable<Buffer> | undefined> {
  if (status !== 200 || headers['content-encoding'] !== undefined) return body
  const chunks: Buffer[] = []
  let size = 0
  for (;;) {
    // Not `for await`, which would end the body that is handed on below.
    const { value, done } = await body.next()
    if (done === true) break
    chunks.push(value)
    size += value.length
    if (size > comparedBytesMax) return rest(chunks, body)
  }
  const bytes = Buffer.concat(chunks)
  const found = replyVersion(String(headers['content-type'] ?? ''), bytes)
  const isSame = found !== undefined && found.version === held.version && found.uid === held.uid
  return isSame ? undefined : bytes
}

async function* rest(chunks: readonly Buffer[], body: AsyncIterableIterator<Buffer>): AsyncGenerator<Buffer, void> {
  yield* chunks
  yield* body
}
