/**
 * A refusal that is about the hub and not about the caller it spoke for: the API server does not let the hub be that caller, since the hub's role lacks
 * a part of it (an extra of `kubectl --as-user-extra`, a name where roles name users). To the caller it would read as if a right of its own were
 * missing, in the name of an account it has never heard of.
 */
import type { UpstreamResponse } from '../../upstream/upstream.ts'

/** As kube-apiserver says it, in JSON or within protobuf. It asks for such verbs only about who names another: here that is the hub. */
const refusal = /User \\?"[^"\\]*\\?" cannot (impersonate[a-z:-]*) resource \\?"([^"\\]{1,256})\\?"/
/** A Status is a few hundred bytes. */
const statusBytesMax = 16 * 1024

type Found = { readonly sentence: string } | { readonly body: Buffer | AsyncIterable<Buffer> }

/** The sentence for the caller; or the body as it came, of which nothing is lost. Rejects as the body does. */
export async function refusalOfHub({ body }: Pick<UpstreamResponse, 'body'>): Promise<Found> {
  const chunks: Buffer[] = []
  let size = 0
  for (;;) {
    // Not `for await`, which would end the body that is handed on below.
    const { value, done } = await body.next()
    if (done === true) break
    chunks.push(value)
    size += value.length
    if (size > statusBytesMax) return { body: rest(chunks, body) }
  }
  const bytes = Buffer.concat(chunks)
  const [, verb = '', resource = ''] = refusal.exec(bytes.toString()) ?? []
  if (verb === '') return { body: bytes }
  const sentence = `the API server does not let its hub be that caller: the role of the hub (ake-hub-as-callers of deploy/hub.yaml) lacks ${verb} on ${resource}`
  return { sentence }
}

async function* rest(chunks: readonly Buffer[], body: AsyncIterableIterator<Buffer>): AsyncGenerator<Buffer, void> {
  yield* chunks
  yield* body
}
