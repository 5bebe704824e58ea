/**
 * One question in JSON whose answer is read whole: what a hub, an edge or a command wants from the API server for itself. What a client
 * sent is passed on byte for byte instead, and does not come here.
 */
import type { Upstream, UpstreamRequest } from './upstream.ts'
import { readWhole } from './whole.ts'

type JsonQuestion = Pick<UpstreamRequest, 'method' | 'path' | 'byStranger'> & {
  /** In whose name; without it the process's own. */
  readonly identity?: UpstreamRequest['identity']
  readonly content?: object | undefined
  /** How long the head of the answer may take, and how large the answer may be. */
  readonly headMsMax: number
  readonly bytesMax: number
}

export type JsonAnswer = { readonly status: number; readonly text: string }

/** Whatever the status is. Rejects with `Unreachable` or `AnswerTooLarge`. */
export async function askJson(
  upstream: Pick<Upstream, 'ask'>,
  { content, bytesMax, identity = { kind: 'edge' }, ...asked }: JsonQuestion,
): Promise<JsonAnswer> {
  const accept = 'application/json'
  const answer = await upstream.ask({
    ...{ ...asked, identity },
    ...(content === undefined
      ? { headers: { accept } }
      : { headers: { accept, 'content-type': accept }, body: Buffer.from(JSON.stringify(content)) }),
  })
  return { status: answer.status, text: (await readWhole(answer, bytesMax)).toString() }
}
