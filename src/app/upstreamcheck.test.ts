import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Contact } from '../mirror/contact.ts'
import { answersWell, type Reachability } from '../upstream/upstream.ts'
import { upstreamCheck } from './upstreamcheck.ts'

test('an API server that is away, or refuses the credential of the edge, is no check that is ok', () => {
  const verdict = (state: string, why: string) => {
    const reachability = { state, why, sinceMs: 0 } as Reachability
    const { run, note, warning } = upstreamCheck(reachability, { lastMs: 0 } as Contact)
    assert.equal(run(), undefined, 'the edge is ready all the same')
    return warning?.() ?? `ok: ${note?.()}`
  }
  const since = 'since 1970-01-01T00:00:00.000Z'
  const refused = "the API server answers, but refuses the edge's credential (401)"
  assert.equal(verdict('reachable', answersWell), `ok: reachable ${since}, ${answersWell}`)
  assert.equal(verdict('reachable', refused), `reachable ${since}, ${refused}`)
  assert.equal(verdict('unreachable', 'connection refused'), `unreachable ${since}, connection refused`)
})
