/** Requests that recorded peers sent each other, one after the other. They made the recording, and lead the replay: they are only added to. */
import type { RequestHead } from './request/request.ts'
import type { TunnelledReply, TunnelledRequest } from './request/serve.ts'

type Asked = Pick<RequestHead, 'method' | 'path' | 'actor'> & { readonly token?: string; readonly body?: string }

const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1'
const renewed = (at: number) => `{"kind":"Lease","spec":{"holderIdentity":"n1","renewTime":"${at}"}}`

export const recordedRequests: readonly Asked[] = [
  { method: 'GET', path: '/api/v1/namespaces/a/pods/p', actor: 'token', token: 'token-one' },
  { method: 'PUT', path: lease, actor: 'node', body: renewed(1) },
  { method: 'PUT', path: lease, actor: 'node', body: renewed(2) },
  { method: 'PUT', path: lease, actor: 'node', body: renewed(3) },
  { method: 'GET', path: '/api/v1/namespaces/a/pods/p', actor: 'token', token: 'token-one' },
  { method: 'GET', path: '/api/v1/namespaces/a/pods/q', actor: 'token', token: 'token-two' },
  { method: 'GET', path: '/large', actor: 'anonymous' },
]

/** Small, so that few bytes need credit. */
export const recordedLimits = { windowBytes: 512, windowBytesMax: 512 }

export function headOf({ method, path, actor, body }: Asked): RequestHead {
  const headers = body === undefined ? [] : [{ name: 'content-length', value: String(body.length) }]
  // Today's asker says what it holds, which an older hub passes over.
  const held = method === 'GET' && actor === 'token' ? { version: 7, uid: 'u' } : { version: 0, uid: '' }
  return { method, path, actor, hasBody: body === undefined ? 0 : 1, headers, ...held }
}

/** What the API server behind the hub says. */
export async function answerTo({ method, path, identity, body }: TunnelledRequest): Promise<TunnelledReply> {
  let sent = ''
  for await (const piece of body ?? []) sent += piece
  const who = identity.kind === 'token' ? identity.token : identity.kind
  const large = path === '/large' ? Array.from({ length: 80 }, (_, at) => `line ${at} of many`).join('\n') : ''
  const text = `${who} asked ${method} ${path} ${sent}${large}`
  const headers = [
    { name: 'content-type', value: 'text/plain' },
    { name: 'content-length', value: String(text.length) },
  ]
  return { status: 200, headers, body: Buffer.from(text) }
}
