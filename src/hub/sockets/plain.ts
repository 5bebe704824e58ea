/**
 * Plain requests at the address of a hub, as machines have to send them that have no certificate yet. One to a connection, whose time is that of any
 * arrival, so that neither a slow body nor a connection that is kept costs more than a silent one.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

export type PlainRequest = {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly body: Buffer
  /** The address that it comes from. */
  readonly from: string
  /** The node that a certificate proved, where a good one was shown. */
  readonly node: string | undefined
  /** That of one which has only ended since: it proves nothing but who asks. */
  readonly endedNode: string | undefined
}

/** What a certificate says of who asks. */
export type PlainAsker = Pick<PlainRequest, 'node' | 'endedNode'>

export type PlainAnswer = { readonly status: number; readonly content: object; readonly retryAfterMs?: number }

/** Longer than a request for a certificate in JSON. */
const bodyBytesMax = 8 * 1024

export async function answerPlain(
  request: IncomingMessage,
  response: ServerResponse,
  by: { readonly asker: () => PlainAsker; readonly answer: (asked: PlainRequest) => Promise<PlainAnswer> },
): Promise<void> {
  const body = await bodyOf(request)
  if (body === undefined)
    return send(response, { status: 413, content: { sentence: `more than ${bodyBytesMax} bytes` } })
  const { method = '', url = '', headers, socket } = request
  const asked = { method, path: url, authorization: headers.authorization, body, from: socket.remoteAddress ?? '' }
  send(response, await by.answer({ ...asked, ...by.asker() }))
}

function send(response: ServerResponse, { status, content, retryAfterMs }: PlainAnswer): void {
  const body = Buffer.from(JSON.stringify(content))
  if (retryAfterMs !== undefined) response.setHeader('retry-after', Math.ceil(retryAfterMs / 1_000))
  response
    .writeHead(status, {
      ...{ 'content-type': 'application/json', 'content-length': body.length, 'cache-control': 'no-store' },
      connection: 'close',
    })
    .end(body)
}

/** Undefined: it is too long, and the rest of it is not waited for. */
async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bodyBytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
