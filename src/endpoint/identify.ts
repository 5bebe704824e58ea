/** In whose name a request goes, as far as its connection and its head tell. */
import type { Identity } from '../upstream/upstream.ts'
import type { Request } from './endpoint.ts'

type Certificate = NonNullable<Request['peer']['certificate']>

const anonymous: Identity = { kind: 'anonymous' }
const edge: Identity = { kind: 'edge' }

export function identityOf(
  { peer, headers }: Pick<Request, 'peer' | 'headers'>,
  parts: { isMapped: (certificate: Certificate) => boolean; nowMs: () => number },
): Identity {
  const { certificate } = peer
  // A certificate that has expired on an open connection names no caller any more; our own outlives a wrong clock.
  if (certificate?.issuedBy === 'own') return edge
  if (certificate !== undefined && certificate.expiresMs > parts.nowMs() && parts.isMapped(certificate)) {
    return { kind: 'certificate', name: certificate.name }
  }
  return bearerIdentity(peer, headers)
}

/**
 * The requests of a connection mostly show the same token: then they have one identity, and what is worked out for it once
 * (its digest) need not be again for each of them.
 */
const shown = new WeakMap<Request['peer'], { readonly header: string; readonly identity: Identity }>()

/** Of a client that shows no certificate that counts. */
export function bearerIdentity(peer: Request['peer'], headers: Request['headers']): Identity {
  const header = headers.authorization
  const last = header === undefined ? undefined : shown.get(peer)
  if (last !== undefined && last.header === header) return last.identity
  const token = bearerOf(header)
  const other = token ?? browserTokenOf(headers['sec-websocket-protocol'])
  if (other === undefined) return anonymous
  const identity: Identity = { kind: 'token', token: other }
  if (header !== undefined && token !== undefined) shown.set(peer, { header, identity })
  return identity
}

/** By any header of the kind: without a user they make no sense, and the API server says so. */
export function impersonates(headers: Request['headers']): boolean {
  for (const name in headers) if (name.startsWith('impersonate-')) return true
  return false
}

/** As kube-apiserver reads it: the scheme in any case, one token after it. */
function bearerOf(header: string | undefined): string | undefined {
  const [scheme, token, ...rest] = (header ?? '').trim().split(' ')
  return scheme?.toLowerCase() === 'bearer' && token !== undefined && token !== '' && rest.length === 0
    ? token
    : undefined
}

const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

export function isBrowserToken(protocol: string): boolean {
  return protocol.startsWith(tokenProtocol)
}

/** A browser can set no header on a WebSocket: its token comes among the subprotocols, as kube-apiserver takes it too. */
export function browserTokenOf(header: string | undefined): string | undefined {
  const found = header?.split(',').find((one) => isBrowserToken(one.trim()))
  const token = Buffer.from(found?.trim().slice(tokenProtocol.length) ?? '', 'base64url').toString()
  // It goes on in a header: what cannot stand in one is no token.
  return /^[\x21-\x7e]+$/.test(token) ? token : undefined
}
