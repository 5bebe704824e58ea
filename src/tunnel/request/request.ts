/**
 * A request as a stream of a link: a head (method, path, headers, in whose name), then its body; back come a head (status,
 * headers) and a body, and after a 101 bytes both ways. Each head stands behind its length among the bytes of the stream, so
 * that a small request is one frame and a long one goes by credit like anything else. A side that wants no more resets the
 * stream. This file is what both ends agree on; the hub's end is `serve.ts`, the edge's is `upstream/linked`.
 *
 * In whose name: a bearer token, or the certificate that a caller has shown the edge, goes beside the head, by number. The head itself
 * bears no name: what is neither is the link's own node, which the hub knows by the link's certificate, the edge's administrator,
 * or anonymous. Whether the hub acts for any of them is the hub's to decide.
 */
import { parseRequest } from '../../kube/request.ts'
import { ByteReader, ByteWriter } from '../../link/frames/bytes.ts'
import { count, type Layout, later, list, oneOf, record, text, type ValueOf } from '../../link/frames/layouts.ts'
import type { StreamContext } from '../contexts.ts'
import { keptFrameBytesMax } from '../limits.ts'

/** What streams are opened for. An upgrade has no body of its own, and its answer may be bytes both ways. */
export const requestPurpose = 'request'
export const upgradePurpose = 'upgrade'

/**
 * Of a head: what a server of ours takes of one (64 KiB), with room for how it is written here. While it comes it is held
 * beside what the stream's window counts.
 */
export const headBytesMax = 96 * 1024

/** Of an object's uid: Kubernetes makes them of 36, and takes no longer than a name. */
const uidBytesMax = 253

/** More fit into no head: each takes at least 4 bytes. */
const headersMax = 4_096

/** An older hub takes for anonymous what it does not know. */
const actor = oneOf(['anonymous', 'token', 'node', 'administrator', 'certificate'], 'anonymous')
export type TunnelledActor = ValueOf<typeof actor>

const header = record({ name: text(headBytesMax), value: text(headBytesMax) })
const headers = list(header, { entriesMax: headersMax, bytesMax: headBytesMax })
/** `version` and `uid`: of a GET, the object as its asker holds it (0 and '': it says nothing of that). `same`: it is that. */
const requestHead = record({
  ...{ method: text(64), path: text(headBytesMax), actor, hasBody: count, headers },
  ...{ version: later(count, 0), uid: later(text(uidBytesMax), '') },
})
/** `unspoken`: the hub itself refuses to speak for the caller, whose certificate it was shown, and the API server was not asked. */
const replyHead = record({ status: count, headers, same: later(count, 0), unspoken: later(count, 0) })

export type RequestHead = ValueOf<typeof requestHead>
export type ReplyHead = ValueOf<typeof replyHead>
/** Lower-case, in order; one that comes several times stands there several times. */
export type HeaderLines = ReplyHead['headers']

export const encodeRequestHead = (head: RequestHead): Buffer => encode(requestHead, head)
export const decodeRequestHead = (bytes: Buffer): RequestHead => requestHead.read(new ByteReader(bytes))
export const encodeReplyHead = (head: ReplyHead): Buffer => encode(replyHead, head)
export const decodeReplyHead = (bytes: Buffer): ReplyHead => replyHead.read(new ByteReader(bytes))

/** Behind its length. Throws `LinkFault` where it is too long. */
function encode<Value>(layout: Layout<Value>, value: Value): Buffer {
  const to = new ByteWriter(headBytesMax)
  to.sized(() => layout.write(to, value))
  return to.whole()
}

/**
 * What a request, or its answer, is like (L25): the same caller's question before about the same object, where its path names one. Any
 * other body may be of another object, as what is created, or of another caller, as a token that is to be reviewed: of these the
 * heads alone are compared. A caller that speaks for others by one token is as many callers. What follows the path is left out, as a
 * timeout is of no weight.
 */
export function likenessOf(head: RequestHead, credential: string | undefined, headBytes: number): StreamContext {
  const { method, path, actor, headers } = head
  const spokenFor = headers.filter(({ name }) => name.toLowerCase().startsWith('impersonate-'))
  const caller = JSON.stringify([actor, credential, ...spokenFor.map(({ name, value }) => [name, value])])
  const isWhole = method !== 'POST' && namesObject(method, path)
  return { caller, subject: isWhole ? `${method} ${path.split('?', 1)[0]}` : method, headBytes, isWhole }
}

function namesObject(method: string, path: string): boolean {
  try {
    const { isResource, name } = parseRequest(method, path)
    return isResource && name !== ''
  } catch {
    // One that is none is the API server's to refuse.
    return false
  }
}

/** Whether its body says that it is small: then its head waits for it, so that both are one frame. */
export function isSmall(headers: HeaderLines): boolean {
  const length = headers.find(({ name }) => name === 'content-length')?.value
  return length !== undefined && Number(length) <= keptFrameBytesMax
}

export function headerLines(headers: Readonly<Record<string, string | readonly string[] | undefined>>): HeaderLines {
  return Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [value].flat().map((one) => ({ name, value: one })),
  )
}

/** By name; one that comes several times becomes an array. */
export function headersByName(lines: HeaderLines): Record<string, string | readonly string[]> {
  const found: Record<string, string | string[]> = {}
  for (const { name, value } of lines) {
    // Also `__proto__` is nothing but a name.
    const before = Object.hasOwn(found, name) ? found[name] : undefined
    const next = before === undefined ? value : [before, value].flat()
    Object.defineProperty(found, name, { value: next, enumerable: true, writable: true, configurable: true })
  }
  return found
}
