/** Whose certificate was taken back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forGood, revocationOf, unjudgeable } from './revocation.ts'

const since = Date.UTC(2026, 5, 1, 12)
const policies = {
  revokedSince: (node: string) => (node === 'n1' ? { sinceMs: since, by: 'policy/lost spec.revoked[0]' } : undefined),
}
const shown = (name: string, signer: 'hub' | 'cluster', vouchedAtMs: number) => {
  const times = { vouchedAtMs, issuedAtMs: since + 1e8, endsAtMs: since + 1e9 }
  const certificate = { serial: '1', fingerprint: 'aa', authority: '', signer, ...times }
  return revocationOf({ name, certificate }, policies)
}

test('what was issued before counts no more, what was issued then or later does, and no other name is concerned', () => {
  for (const signer of ['hub', 'cluster'] as const) {
    assert.match(
      shown('n1', signer, since - 1) ?? '',
      /"n1" before 2026-06-01T12:00:00\.000Z was revoked \(policy\/lost/,
    )
    assert.equal(shown('n1', signer, since), undefined)
    assert.equal(shown('n2', signer, 0), undefined)
  }
  assert.match(shown('n1', 'hub', 0) ?? '', /: issue a new credential with "ake hub issue"$/)
  assert.match(shown('n1', 'cluster', 0) ?? '', /: join again with --replace after 2026-06-01T12:05:00\.000Z/)
})

test('a name that was revoked for good, or since a time that could not be read, is kept out whatever is issued to it', () => {
  for (const sinceMs of [Date.parse(forGood), Number.POSITIVE_INFINITY, 8.64e15]) {
    const forEver = { revokedSince: () => ({ sinceMs, by: 'policy/lost spec.revoked[0]' }) }
    for (const signer of ['hub', 'cluster'] as const) {
      const times = { vouchedAtMs: since, issuedAtMs: since, endsAtMs: since }
      const certificate = { serial: '1', fingerprint: 'aa', authority: '', signer, ...times }
      assert.match(revocationOf({ name: 'n1', certificate }, forEver) ?? '', /^the name "n1" was revoked for good/)
    }
  }
})

test('nobody is judged before policies were read, or are known not to exist', () => {
  assert.match(unjudgeable({ isKnown: false, why: 'no answer' }) ?? '', /cannot tell yet.*no answer/)
  assert.equal(unjudgeable({ isKnown: true, why: '' }), undefined)
})
