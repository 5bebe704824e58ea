/**
 * What a hub and an edge say to each other about certificates, as streams of a link. `authorities`: the edge says which of the hub it
 * knows, and the answer, which comes once they are others, has them all. `client-authorities`: the same of those by which the cluster knows clients. `renewal`: the edge shows the public half of a key that
 * it made and that it has the other half; the answer is a certificate of the link's own node, or why there is none.
 */
import { createHash, type KeyObject, sign, verify, type X509Certificate } from 'node:crypto'
import type { Readable } from 'node:stream'
import { ByteReader, ByteWriter, LinkFault } from '../../link/frames/bytes.ts'
import { bytes, count, type Layout, list, record, text, type ValueOf } from '../../link/frames/layouts.ts'

export const authoritiesPurpose = 'authorities'
export const clientAuthoritiesPurpose = 'client-authorities'
export const renewalPurpose = 'renewal'

/** One that signs, one that will, and those before it; of the cluster's as many as a hub reads. */
const authoritiesMax = 16
/** Of a certificate in DER: ours take some 450 bytes. */
const certificateBytesMax = 4 * 1024
const keyBytesMax = 256
const digestBytes = 32
const sentenceBytesMax = 1_024
/** Of what either side says, with room for what later releases add. */
const saidBytesMax = (authoritiesMax + 1) * certificateBytesMax + sentenceBytesMax

const knownAuthorities = record({ digest: bytes(digestBytes) })
const toldAuthorities = record({
  authorities: list(bytes(certificateBytesMax), { entriesMax: authoritiesMax, bytesMax: certificateBytesMax + 8 }),
})
const renewalWish = record({ key: bytes(keyBytesMax), proof: bytes(keyBytesMax) })
/** An empty certificate: there is none, for the reason in the sentence, and may be after so many milliseconds. */
const renewalAnswer = record({
  certificate: bytes(certificateBytesMax),
  retryAfterMs: count,
  sentence: text(sentenceBytesMax),
})

export type RenewalWish = ValueOf<typeof renewalWish>
export type RenewalAnswer = ValueOf<typeof renewalAnswer>

export const encodeKnown = (digest: Buffer): Buffer => encode(knownAuthorities, { digest })
export const decodeKnown = (from: Buffer): Buffer => knownAuthorities.read(new ByteReader(from)).digest
export const encodeAuthorities = (authorities: readonly Buffer[]): Buffer => encode(toldAuthorities, { authorities })
export const decodeAuthorities = (from: Buffer): readonly Buffer[] =>
  toldAuthorities.read(new ByteReader(from)).authorities
export const encodeRenewal = (wish: RenewalWish): Buffer => encode(renewalWish, wish)
export const decodeRenewal = (from: Buffer): RenewalWish => renewalWish.read(new ByteReader(from))
export const encodeRenewalAnswer = (answer: RenewalAnswer): Buffer => encode(renewalAnswer, answer)
export const decodeRenewalAnswer = (from: Buffer): RenewalAnswer => renewalAnswer.read(new ByteReader(from))

/** Of authorities in their order: the one that signs is the first. */
export function digestOfAuthorities(authorities: readonly Pick<X509Certificate, 'raw'>[]): Buffer {
  const hash = createHash('sha256')
  for (const { raw } of authorities) hash.update(createHash('sha256').update(raw).digest())
  return hash.digest()
}

/** That the key is at hand where it is shown, and was meant for this. */
export function proofOf(key: Buffer, node: string, privateKey: KeyObject): Buffer {
  return sign('sha256', meant(key, node), privateKey)
}

export function isProof(proof: Buffer, key: Buffer, node: string, publicKey: KeyObject): boolean {
  return verify('sha256', meant(key, node), publicKey, proof)
}

function meant(key: Buffer, node: string): Buffer {
  return Buffer.concat([Buffer.from(`ake renewal of ${node}\0`), key])
}

function encode<Value>(layout: Layout<Value>, value: Value): Buffer {
  const to = new ByteWriter(saidBytesMax)
  layout.write(to, value)
  return to.whole()
}

/** All that the other side says. Throws `LinkFault` where that is too much, and what broke the stream where that breaks off. */
export async function takeSaid(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > saidBytesMax) throw new LinkFault(`more than ${saidBytesMax} bytes about certificates`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
