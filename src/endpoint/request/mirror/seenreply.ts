/**
 * The API server's replies to reads of a caller who sees otherwise (`endpoint/views`): asked for as JSON, seen, and spelled
 * in the form that the caller wants. Without it the caller would see what is passed on as it is, and what is mirrored not.
 */
import { type Item, itemOfScan } from '../../../cache/item.ts'
import { FrameReader } from '../../../kube/frames.ts'
import { parseJson, printJson } from '../../../kube/json/json.ts'
import { listItemForm, readListPage } from '../../../kube/listpage.ts'
import { scanObject } from '../../../kube/object.ts'
import { internalError, type Status } from '../../../kube/status.ts'
import { piecesOf } from '../../answer/pieces.ts'
import { formOf, listResponse, readyFor } from '../../answer/transform.ts'
import type { Call } from '../../call.ts'
import type { ReadParts, Response, Served } from '../../endpoint.ts'
import type { ClassView } from '../../views/view.ts'
import { getItem } from '../get.ts'
import { errorFrameOf, watchHeaders } from '../watch.ts'

/** What is asked for in place of the caller's wish. */
export const asJson = { accept: 'application/json' }

/** All endpoint slices of a large cluster; a list without a limit is mirrored, and not passed on, unless the edge may not read it. */
const replyBytesMax = 64 * 1024 * 1024

type Viewed = Served & { readonly view: ClassView }

export async function seenReply(parts: ReadParts, served: Viewed, call: Call, reply: Response): Promise<Response> {
  // A refusal is not of an object.
  if (reply.status !== 200) return reply
  await readyFor(call.formOf(served))
  switch (call.api.verb) {
    case 'list':
      return await seenList(parts, served, call, await wholeOf(reply))
    case 'watch':
      return seenWatch(parts, served, call, reply)
    default:
      return await getItem(parts, served, itemOf(await wholeOf(reply)), call)
  }
}

async function seenList(parts: ReadParts, served: Viewed, call: Call, bytes: Buffer): Promise<Response> {
  const { version, continueToken, remaining, items } = readListPage(bytes)
  const seen = items.flatMap((item) => served.view.see(itemOf(item)) ?? [])
  const meta = { version, remaining, continueToken: continueToken === '' ? undefined : continueToken }
  const { request, api } = call
  const list = { meta, media: call.formOf(served), query: api.query, nowMs: parts.clock.now(), request }
  return await listResponse(200, served, seen, list)
}

function seenWatch(parts: ReadParts, served: Viewed, call: Call, reply: Response): Response {
  const media = call.formOf(served)
  const form = served.view.form(formOf(media, served, call.api.query, () => parts.clock.now()))
  const errorFrame = errorFrameOf(media)
  const frameOf = ({ type, object }: ReturnType<FrameReader['push']>[number]): Buffer[] => {
    if (type === 'ERROR') return [errorFrame(JSON.parse(object.toString()) as Status)]
    const item = itemOf(object)
    if (type === 'BOOKMARK') return [form.bookmark(item.version, object.includes('"k8s.io/initial-events-end"'))]
    return served.view.see(item) === undefined ? [] : [form.frame(type, item)]
  }
  async function* frames(): AsyncGenerator<Buffer, void, void> {
    const reader = new FrameReader()
    for await (const chunk of bodyOf(reply)) {
      for (const frame of reader.push(chunk)) yield* frameOf(frame)
    }
  }
  return { status: 200, headers: watchHeaders(media), body: frames(), passedThrough: true, cutCleanly: true }
}

/** As lists hold it; a person's client may be sent it indented. */
function itemOf(object: Buffer): Item {
  const isIndented = object[1] === 0x0a
  const end = object.at(-1) === 0x0a ? object.length - 1 : object.length
  const form = listItemForm(isIndented ? Buffer.from(printJson(parseJson(object))) : object.subarray(0, end), false)
  const scan = scanObject(form)
  return itemOfScan(scan, form, Number(scan.resourceVersion), 0)
}

async function wholeOf(reply: Response): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of bodyOf(reply)) {
    chunks.push(chunk)
    size += chunk.length
    if (size > replyBytesMax) throw internalError(`the API server's answer is larger than ${replyBytesMax} bytes`)
  }
  return Buffer.concat(chunks)
}

async function* bodyOf({ body }: Response): AsyncGenerator<Buffer, void, void> {
  const pieces = piecesOf(body)
  try {
    for (;;) {
      const { value, done } = await pieces.next()
      if (done === true) return
      yield value
    }
  } finally {
    await pieces.return?.()
  }
}
