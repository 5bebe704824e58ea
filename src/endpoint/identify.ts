/** In whose name a request goes, as far as its connection and its head tell. */
import { certificateCaller } from '../access/authenticate/certificatecaller.ts'
import { unauthorized } from '../kube/status.ts'
import type { Identity } from '../upstream/upstream.ts'
import type { Request } from './endpoint.ts'

type Certificate = NonNullable<Request['peer']['certificate']>

/** The caller that a certificate of an authority which we were told to trust stands for. */
export type CertificateStanding =
  /** The caller of a credential, in whose name requests go up. */
  | 'credential'
  /** The caller it names, in whose name nothing goes up. */
  | 'named'
  /** None: it bears the name of a credential's caller, and another authority signed it. */
  | 'stranger'

const anonymous: Identity = { kind: 'anonymous' }
const edge: Identity = { kind: 'edge' }

export function identityOf(
  { peer, headers }: Pick<Request, 'peer' | 'headers'>,
  parts: { standingOf: (certificate: Certificate) => CertificateStanding; nowMs: () => number },
): Identity {
  const { certificate } = peer
  // A certificate that has expired on an open connection proves nothing any more; our own outlives a wrong clock.
  if (certificate?.issuedBy === 'own') return edge
  if (certificate === undefined) return uncertifiedIdentity(peer, headers)
  if (certificate.expiresMs <= parts.nowMs()) return uncertifiedIdentity({ ...peer, unverified: true }, headers)
  const standing = parts.standingOf(certificate)
  if (standing === 'credential') return identitiesOf(certificate).credential
  const shown = bearerIdentity(peer, headers)
  // A token can go up, and goes before a certificate that cannot.
  return shown === anonymous && standing === 'named' ? identitiesOf(certificate).named : shown
}

/** The requests of a connection have one identity. */
const identities = new WeakMap<Certificate, { readonly credential: Identity; readonly named: Identity }>()

function identitiesOf(certificate: Certificate): { readonly credential: Identity; readonly named: Identity } {
  const before = identities.get(certificate)
  if (before !== undefined) return before
  const caller = certificateCaller(certificate)
  const credential: Identity = { kind: 'certificate', name: certificate.name, ...(caller && { caller }) }
  const { chain } = certificate
  const shown = chain === undefined ? {} : { chain: chain.map((one) => one.toString('base64url')).join('.') }
  const named: Identity = caller === undefined ? anonymous : { kind: 'named', caller, ...shown }
  const made = { credential, named }
  identities.set(certificate, made)
  return made
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

/** The same; as at kube-apiserver, one that shows a certificate which proves nothing, and no token, is not even anonymous. */
export function uncertifiedIdentity(peer: Request['peer'], headers: Request['headers']): Identity {
  const identity = bearerIdentity(peer, headers)
  if (identity === anonymous && peer.unverified === true) throw unauthorized()
  return identity
}

/** By any header of the kind: without a user they make no sense, and the API server says so. */
export function impersonates({ headers, rawHeaders }: Pick<Request, 'headers' | 'rawHeaders'>): boolean {
  if (rawHeaders === undefined) return Object.keys(headers).some(isImpersonation)
  // Each read of a mirror comes by here, and a list is looked through faster than the names of an object.
  for (let at = 0; at < rawHeaders.length; at += 2) if (isImpersonation(rawHeaders[at] as string)) return true
  return false
}

/** Names and values in turn. */
export function headerLines({ headers, rawHeaders }: Pick<Request, 'headers' | 'rawHeaders'>): readonly string[] {
  return rawHeaders ?? Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
}

function isImpersonation(name: string): boolean {
  const first = name.charCodeAt(0)
  return (first === 0x69 || first === 0x49) && name.toLowerCase().startsWith('impersonate-')
}

/** As kube-apiserver reads it: the scheme in any case, the token after one space; whatever follows is not looked at. */
function bearerOf(header: string | undefined): string | undefined {
  const [scheme, token = ''] = (header ?? '').trim().split(' ', 2)
  return scheme?.toLowerCase() === 'bearer' && token !== '' ? token : undefined
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
