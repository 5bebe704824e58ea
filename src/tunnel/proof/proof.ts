/**
 * A proof as a stream of a link: an edge shows the credential of a caller who asked it for something, and names the interest that
 * holds that. The credential goes beside the stream, by number, as with requests; the stream bears nothing but the name, and the answer.
 */
import type { Readable } from 'node:stream'
import { ByteReader, ByteWriter, LinkFault } from '../../link/frames/bytes.ts'
import { interestBytesMax } from '../../link/frames/frames.ts'
import { count, type Layout, later, oneOf, record, text, type ValueOf } from '../../link/frames/layouts.ts'

export const proofPurpose = 'proof'

/** As a reset of a stream has it at most (`tunnel/frames`). */
const sentenceBytesMax = 1_024

/** What either side says in such a stream, with room for what later releases add. */
const proofBytesMax = interestBytesMax + sentenceBytesMax

/**
 * `allowed`: the hub feeds the interest for `forMs`, unless it is proved again meanwhile. `refused`: this caller may not, which may be
 * asked again after `forMs`. `unknown`: it cannot be told now, with the same. What an older edge does not know is `unknown`.
 */
const verdict = oneOf(['unknown', 'allowed', 'refused'], 'unknown')

const proofHead = record({ interest: text(interestBytesMax) })
/**
 * `denied`, of what is refused. `byRights`: the API server says that the caller may not; where no credential was shown, that neither policies nor its
 * node give it to the edge. `unspoken`: the hub does not speak for the caller of this certificate, so that it proves nothing here. Else the credential does not count.
 */
export const proofDenied = { not: 0, byRights: 1, unspoken: 2 } as const
const proofAnswer = record({ verdict, forMs: count, sentence: text(sentenceBytesMax), denied: later(count, 0) })

export type ProofAnswer = ValueOf<typeof proofAnswer>

export const encodeProof = (interest: string): Buffer => encode(proofHead, { interest })
export const decodeProof = (bytes: Buffer): string => proofHead.read(new ByteReader(bytes)).interest
export const encodeProofAnswer = (answer: ProofAnswer): Buffer => encode(proofAnswer, answer)
export const decodeProofAnswer = (bytes: Buffer): ProofAnswer => proofAnswer.read(new ByteReader(bytes))

function encode<Value>(layout: Layout<Value>, value: Value): Buffer {
  const to = new ByteWriter(proofBytesMax)
  layout.write(to, value)
  return to.whole()
}

/** All that the other side says. Throws `LinkFault` where that is too much, and what broke the stream where that breaks off. */
export async function takeProof(stream: Readable): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += piece.length
    if (length > proofBytesMax) throw new LinkFault(`a proof of more than ${proofBytesMax} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
