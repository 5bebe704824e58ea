import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { LinkFault } from '../../link/frames/bytes.ts'
import { interestBytesMax } from '../../link/frames/frames.ts'
import { decodeProof, decodeProofAnswer, encodeProof, encodeProofAnswer, type ProofAnswer, takeProof } from './proof.ts'

test('[L10, L24] a proof and its answer are read as they were written', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 100 })
  fc.assert(fc.property(text, (interest) => assert.equal(decodeProof(encodeProof(interest)), interest)))
  const verdict = fc.constantFrom<ProofAnswer['verdict']>('unknown', 'allowed', 'refused')
  const answers = fc.record(
    { verdict, forMs: fc.maxSafeNat(), sentence: text, denied: fc.nat(1) },
    { noNullPrototype: true },
  )
  fc.assert(fc.property(answers, (answer) => assert.deepEqual(decodeProofAnswer(encodeProofAnswer(answer)), answer)))
})

test('[L11, L24] hostile bytes are a proof or a fault, and a verdict that is not known is none', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (found) => {
      for (const decode of [decodeProof, decodeProofAnswer])
        try {
          decode(Buffer.from(found))
        } catch (error) {
          assert.ok(error instanceof LinkFault, String(error))
        }
    }),
    { numRuns: 2_000 },
  )
  const answer = encodeProofAnswer({ verdict: 'refused', forMs: 1, sentence: '', denied: 0 })
  answer[0] = 9
  assert.equal(decodeProofAnswer(answer).verdict, 'unknown')
})

test('[L8, L24] no more is taken than a proof can be', async () => {
  const longest = 'a'.repeat(interestBytesMax)
  const stream = new PassThrough()
  stream.end(encodeProof(longest))
  assert.equal(decodeProof(await takeProof(stream)), longest)
  assert.throws(() => encodeProof(`${longest}a`), LinkFault)
  const endless = new PassThrough()
  endless.write(Buffer.alloc(2 * interestBytesMax))
  await assert.rejects(takeProof(endless), LinkFault)
  assert.equal(endless.destroyed, false)
})
