/** Which time `ake hub revoke` writes down. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTime } from '../../kube/table/duration.ts'
import { hubRevoke, sinceOf } from './revoke.ts'

test('now, the time that is given, or all of it; two of these are refused before anything is asked', async () => {
  const now = Date.UTC(2026, 5, 1)
  const none = { since: undefined, forGood: false, undo: false }
  assert.equal(sinceOf(none, now), '2026-06-01T00:00:00.000Z')
  assert.equal(sinceOf({ ...none, since: now + 60_000 }, now), '2026-06-01T00:01:00.000Z')
  const forGood = parseTime(sinceOf({ ...none, forGood: true }, now))
  assert.ok(forGood !== undefined && forGood > Date.UTC(9000, 0, 1), 'as a policy is read')
  const both = { kubeconfig: undefined, forGood: true }
  await assert.rejects(hubRevoke('n1', { ...both, since: now, undo: false }), /leave out --since and --undo/)
  await assert.rejects(hubRevoke('n1', { ...both, since: undefined, undo: true }), /leave out --since and --undo/)
})
