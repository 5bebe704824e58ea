import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LinkProofs } from './linkproofs.ts'
import { type ProofLimits, proofLimits } from './prooflimits.ts'

function proof(interest: string, caller: string, token = caller) {
  return { interest, caller, credential: { kind: 'token', token } } as const
}

const opened = (limits: Partial<ProofLimits> = {}) => new LinkProofs({ ...proofLimits, ...limits })
const callersOf = (proofs: LinkProofs, interest: string, now = 0) =>
  proofs.of(interest, now).map(({ caller }) => caller)

test('[L24] who proved last is first, once for each caller, and a few of an interest', () => {
  const proofs = opened({ perInterestMax: 3 })
  for (const caller of ['a', 'b', 'c', 'a']) assert.equal(proofs.hold(proof('pods', caller), 0), undefined)
  assert.deepEqual(callersOf(proofs, 'pods'), ['a', 'c', 'b'])
  proofs.hold(proof('pods', 'd'), 0)
  assert.deepEqual(callersOf(proofs, 'pods'), ['d', 'a', 'c'])
  assert.deepEqual(callersOf(proofs, 'services'), [])
  assert.equal(proofs.size, 3)
})

test('[L24] a proof ends with its time, unless it is proved again', () => {
  const proofs = opened({ lifeMs: 100 })
  proofs.hold(proof('pods', 'a'), 0)
  proofs.hold(proof('pods', 'b'), 0)
  proofs.hold(proof('pods', 'a'), 60)
  assert.deepEqual(callersOf(proofs, 'pods', 99), ['a', 'b'])
  assert.deepEqual(callersOf(proofs, 'pods', 100), ['a'])
  assert.deepEqual(callersOf(proofs, 'pods', 160), [])
  assert.equal(proofs.size, 0)
})

test('[L24] one that is found to be none goes, and not what its caller has shown since', () => {
  const proofs = opened()
  const [old, next] = [proof('pods', 'a', 'old'), proof('pods', 'a', 'next')]
  proofs.hold(old, 0)
  proofs.hold(next, 0)
  proofs.end(old)
  assert.deepEqual(callersOf(proofs, 'pods'), ['a'])
  proofs.end(next)
  assert.deepEqual(callersOf(proofs, 'pods'), [])
})

test('[L8, L24] what one edge proves is bounded in proofs, callers and names; what has ended makes room', () => {
  const proofs = opened({ proofsMax: 4, callersMax: 2, nameBytesMax: 20, lifeMs: 100 })
  for (const interest of ['1', '2', '3']) assert.equal(proofs.hold(proof(interest, 'a'), 0), undefined)
  assert.match(proofs.hold(proof('a-name-of-some-length', 'a'), 0) ?? '', /as much as a hub holds/)
  assert.equal(proofs.hold(proof('1', 'b'), 50), undefined)
  assert.match(proofs.hold(proof('4', 'a'), 50) ?? '', /as much as a hub holds/)
  assert.equal(proofs.hold(proof('1', 'a'), 50), undefined)
  // Two of the first have ended.
  assert.equal(proofs.hold(proof('4', 'a'), 120), undefined)
  assert.match(proofs.hold(proof('1', 'c'), 120) ?? '', /2 callers/)
  assert.equal(proofs.size, 3)
})
