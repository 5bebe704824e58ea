/**
 * X.509 v3 certificates (RFC 5280) with ECDSA P-256 keys: the three kinds this program needs, an authority, a server and
 * a client. Written by hand over `der.ts` because the known library costs 26 packages and 15 MB of memory.
 */
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'
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
  /** Put into the serial number, for certificates that begin in 1970: see `issuedAtOf`. */
  readonly issuedAt?: number
  /** Of a certificate that continues another: when an operator vouched for the first of them, put beside `issuedAt` (see `vouchedAtOf`). */
  readonly vouchedAt?: number
} & ({ readonly use: 'authority' | 'client' } | { readonly use: 'server'; readonly hosts: readonly string[] })

/** What signs: the name and key of an authority. */
export type Issuer = { readonly name: CertificateName; readonly key: KeyObject }

/** A new key and its certificate, signed by `issuer` or, for an authority, by itself. */
export function issueCertificate(request: CertificateRequest, issuer?: Issuer): KeyPair {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = certify(privateKey, request, issuer ?? { name: request.subject, key: privateKey })
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** The certificate (PEM) of a P-256 key that exists; of a key that another process holds, its public half. */
export function certify(key: KeyObject, request: CertificateRequest, signer: Issuer): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  const body = sequence(
    tagged(0, integer(Uint8Array.of(2))), // version 3
    integer(request.issuedAt === undefined ? serialNumber() : datedSerialNumber(request.issuedAt, request.vouchedAt)),
    ecdsaWithSha256,
    distinguishedName(signer.name),
    sequence(time(request.notBefore), time(request.notAfter)),
    distinguishedName(request.subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(3, sequence(...extensions(request, keyId(publicKey), keyId(createPublicKey(signer.key))))),
  )
  return pem(sequence(body, ecdsaWithSha256, bitString(sign('sha256', body, signer.key))))
}

export const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))
const uses = { server: oid('1.3.6.1.5.5.7.3.1'), client: oid('1.3.6.1.5.5.7.3.2') }

/** 127 random bits: unique without a register, and positive and not zero as the standard wants. */
function serialNumber(): Buffer {
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  return serial
}

/**
 * As long as a serial number may be, and longer than those without a date: 0x01, milliseconds since 1970, 104 random bits. Of one that continues
 * another: 0x02, that time, the time when the first was vouched for, 56 random bits.
 */
function datedSerialNumber(issuedAt: number, vouchedAt?: number): Buffer {
  const serial = randomBytes(datedSerialBytes)
  const times = vouchedAt === undefined ? [issuedAt] : [issuedAt, vouchedAt]
  serial[0] = times.length
  for (const [at, ms] of times.entries()) serial.writeUIntBE(Math.max(0, Math.floor(ms)), 1 + at * timeBytes, timeBytes)
  return serial
}

const datedSerialBytes = 20
const timeBytes = 6

/** When a certificate was issued, by its serial number (as Node spells it); undefined where that has no date. Only its authority's word. */
export function issuedAtOf(serial: string): number | undefined {
  return timesIn(serial)[0]
}

/** When an operator vouched for its bearer: of a certificate that was renewed, when the first one was issued. */
export function vouchedAtOf(serial: string): number | undefined {
  return timesIn(serial).at(-1)
}

function timesIn(serial: string): readonly number[] {
  const bytes = Buffer.from(serial.padStart(datedSerialBytes * 2, '0'), 'hex')
  if (bytes.length !== datedSerialBytes) return []
  const times = bytes[0] === 1 || bytes[0] === 2 ? bytes[0] : 0
  return Array.from({ length: times }, (_, at) => bytes.readUIntBE(1 + at * timeBytes, timeBytes))
}

/** Each certificate of a text, with the line behind it. */
export function pemsIn(text: string): string[] {
  return (text.match(pemForm) ?? []).map((one) => `${one}\n`)
}

const pemForm = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** Organization before common name, the order in which Go and OpenSSL print subjects. */
export function distinguishedName({ commonName, organization }: CertificateName): Buffer {
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

export const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), octetString(value))
const critical = (id: string, value: Buffer): Buffer => sequence(oid(id), booleanTrue(), octetString(value))

/**
 * A subject alternative name: an address by its bytes, anything else as a DNS name, which has no colon. Node's expression for
 * IPv6 is not asked: compiling it was a twentieth of a start.
 */
export function generalName(host: string): Buffer {
  const isAddress = isIPv4(host) || host.includes(':')
  return isAddress ? taggedContent(7, addressBytes(host)) : taggedContent(2, Buffer.from(host, 'ascii'))
}

/** 4 or 16 bytes of an IP address. */
function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  // The URL parser spells any IPv6 form as groups of hexadecimal digits, at most one run of zeros left out.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all = [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

/** `label`: what it is, as it stands between the dashes. */
export function pem(der: Buffer, label = 'CERTIFICATE'): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n')
}
