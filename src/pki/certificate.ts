/**
 * X.509 v3 certificates (RFC 5280) with ECDSA P-256 keys: the three kinds this program needs, an authority, a server and
 * a client. Written by hand over `der.ts` because the known library costs 26 packages and 15 MB of memory.
 */
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'
import {
  bitString,
  booleanTrue,
  integer,
  octetString,
  oid,
  sequence,
  set,
  tagged,
  taggedContent,
  time,
  utf8String,
} from './der.ts'

/** PEM texts; the key is PKCS#8. */
export type KeyPair = { readonly cert: string; readonly key: string }

export type CertificateName = { readonly commonName: string; readonly organization?: string }

export type CertificateRequest = {
  readonly subject: CertificateName
  readonly notBefore: number
  readonly notAfter: number
} & ({ readonly use: 'authority' | 'client' } | { readonly use: 'server'; readonly hosts: readonly string[] })

/** Who signs: the name and key of an authority. */
export type Issuer = { readonly name: CertificateName; readonly key: KeyObject }

/** A new key and its certificate, signed by `issuer` or, for an authority, by itself. */
export function issueCertificate(request: CertificateRequest, issuer?: Issuer): KeyPair {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = certify(privateKey, request, issuer ?? { name: request.subject, key: privateKey })
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** The certificate (PEM) of a P-256 key that exists. */
export function certify(privateKey: KeyObject, request: CertificateRequest, signer: Issuer): string {
  const publicKey = createPublicKey(privateKey)
  const body = sequence(
    tagged(0, integer(Uint8Array.of(2))), // version 3
    integer(serialNumber()),
    ecdsaWithSha256,
    distinguishedName(signer.name),
    sequence(time(request.notBefore), time(request.notAfter)),
    distinguishedName(request.subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(3, sequence(...extensions(request, keyId(publicKey), keyId(createPublicKey(signer.key))))),
  )
  return pem(sequence(body, ecdsaWithSha256, bitString(sign('sha256', body, signer.key))))
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))
const uses = { server: oid('1.3.6.1.5.5.7.3.1'), client: oid('1.3.6.1.5.5.7.3.2') }

/** 127 random bits: unique without a register, and positive and not zero as the standard wants. */
function serialNumber(): Buffer {
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  return serial
}

/** Organization before common name, the order in which Go and OpenSSL print subjects. */
function distinguishedName({ commonName, organization }: CertificateName): Buffer {
  const part = (type: string, text: string) => set(sequence(oid(type), utf8String(text)))
  const parts = [part('2.5.4.3', commonName)]
  if (organization !== undefined) parts.unshift(part('2.5.4.10', organization))
  return sequence(...parts)
}

/** RFC 5280 4.2.1.2 method 1: SHA-1 of the public key's bits; an identifier, not a protection. */
function keyId(publicKey: KeyObject): Buffer {
  const point = publicKey.export({ type: 'spki', format: 'der' }).subarray(-65) // a P-256 point, uncompressed
  return createHash('sha1').update(point).digest()
}

function extensions(request: CertificateRequest, subjectKeyId: Buffer, issuerKeyId: Buffer): Buffer[] {
  const list = [
    extension('2.5.29.14', octetString(subjectKeyId)),
    extension('2.5.29.35', sequence(taggedContent(0, issuerKeyId))),
  ]
  if (request.use === 'authority') {
    list.push(critical('2.5.29.19', sequence(booleanTrue()))) // basic constraints: a CA
    list.push(critical('2.5.29.15', bitString(Uint8Array.of(0b0000_0110), 1))) // key usage: sign certificates, sign CRLs
    return list
  }
  list.push(critical('2.5.29.19', sequence())) // not a CA
  list.push(critical('2.5.29.15', bitString(Uint8Array.of(0b1000_0000), 7))) // key usage: digital signature
  list.push(extension('2.5.29.37', sequence(uses[request.use])))
  if (request.use === 'server') list.push(extension('2.5.29.17', sequence(...request.hosts.map(generalName))))
  return list
}

const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), octetString(value))
const critical = (id: string, value: Buffer): Buffer => sequence(oid(id), booleanTrue(), octetString(value))

/** A subject alternative name: an address by its bytes, anything else as a DNS name. */
function generalName(host: string): Buffer {
  return isIP(host) === 0 ? taggedContent(2, Buffer.from(host, 'ascii')) : taggedContent(7, addressBytes(host))
}

/** 4 or 16 bytes of an IP address. */
function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number))
  // The URL parser spells any IPv6 form as groups of hexadecimal digits, at most one run of zeros left out.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}
