/**
 * Requests for certificates (PKCS#10, RFC 2986) with P-256 keys: as a joining or renewing edge writes one for the cluster's CSR API,
 * and as a hub reads it before it passes it on.
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { type CertificateName, distinguishedName, ecdsaWithSha256, extension, generalName, pem } from './certificate.ts'
import { bitString, integer, oid, sequence, set, tagged } from './der.ts'
import { contentOf, DerFault, derTags, elementsOf, within } from './derreader.ts'

export type SigningWish = {
  readonly subject: CertificateName
  /** What a serving certificate is to answer to; of a client's nothing. */
  readonly hosts?: readonly string[]
}

/** PEM. */
export function signingRequest({ subject, hosts = [] }: SigningWish, privateKey: KeyObject): string {
  const publicKey = createPublicKey(privateKey)
  const names = extension('2.5.29.17', sequence(...hosts.map(generalName)))
  const wanted = hosts.length === 0 ? [] : [sequence(oid('1.2.840.113549.1.9.14'), set(sequence(names)))]
  const info = sequence(
    integer(Uint8Array.of(0)),
    distinguishedName(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0, Buffer.concat(wanted)),
  )
  return pem(sequence(info, ecdsaWithSha256, bitString(sign('sha256', info, privateKey))), label)
}

export type ReadSigningRequest = {
  /** Of each part of the subject, by the dotted number of its type, in their order. */
  readonly subject: readonly { readonly type: string; readonly text: string }[]
  /** SubjectPublicKeyInfo, in DER. */
  readonly publicKey: Buffer
  /** It asks for more than a subject: names, usages, or whatever else. */
  readonly hasAttributes: boolean
}

/** Longer than any with a P-256 key and a subject, names of a dozen hosts included. */
const signingRequestBytesMax = 4 * 1024

/** Undefined: it is none that is signed by its own P-256 key. */
export function readSigningRequest(text: string): ReadSigningRequest | undefined {
  const [, base64] = pemForm.exec(text) ?? []
  if (text.length > signingRequestBytesMax || base64 === undefined) return undefined
  try {
    const [request, ...more] = elementsOf(Buffer.from(base64, 'base64'))
    const [info, algorithm, signature, ...others] = within(request, derTags.sequence)
    const [version, subject, key, attributes, ...rest] = within(info, derTags.sequence)
    if (more.length + others.length + rest.length > 0 || algorithm?.whole.equals(ecdsaWithSha256) !== true)
      return undefined
    if (!contentOf(version, derTags.integer).equals(zero) || key === undefined || info === undefined) return undefined
    const publicKey = createPublicKey({ key: key.whole, type: 'spki', format: 'der' })
    if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return undefined
    const bits = contentOf(signature, derTags.bitString)
    if (bits[0] !== 0 || !verify('sha256', info.whole, publicKey, bits.subarray(1))) return undefined
    return {
      subject: within(subject, derTags.sequence).map(partOf),
      publicKey: Buffer.from(key.whole),
      hasAttributes: contentOf(attributes, derTags.first).length > 0,
    }
  } catch (error) {
    if (error instanceof DerFault || isOfCrypto(error)) return undefined
    throw error
  }
}

const label = 'CERTIFICATE REQUEST'
const pemForm = /^\s*-----BEGIN CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE REQUEST-----\s*$/
const zero = Buffer.of(0)

/** One type and one text; a part that has several is one that no Kubernetes makes. */
function partOf(part: Parameters<typeof within>[0]): { type: string; text: string } {
  const [pair, ...others] = within(part, derTags.set)
  const [type, value, ...rest] = within(pair, derTags.sequence)
  if (value === undefined || others.length + rest.length > 0) throw new DerFault('a part of a subject that is none')
  if (value.tag !== derTags.utf8 && value.tag !== derTags.printable) throw new DerFault('a text of another kind')
  return { type: dotted(contentOf(type, derTags.oid)), text: new TextDecoder('utf-8').decode(value.content) }
}

function dotted(bytes: Buffer): string {
  const arcs: number[] = []
  let arc = 0
  for (const [at, byte] of bytes.entries()) {
    if (arc > 0xff_ffff) throw new DerFault('a number that is too large')
    arc = arc * 128 + (byte & 0x7f)
    if (byte & 0x80) continue
    if (at === 0) arcs.push(Math.floor(arc / 40), arc % 40)
    else arcs.push(arc)
    arc = 0
  }
  return arcs.join('.')
}

function isOfCrypto(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return code.startsWith('ERR_OSSL') || code.startsWith('ERR_CRYPTO')
}
