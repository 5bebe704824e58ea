/** The steps from one authority of a hub to the next, as an operator takes them. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { hubAuthority } from './authority.ts'
import { hubIssue } from './issue.ts'

const root = mkdtempSync(join(tmpdir(), 'ake-authority-'))
after(() => rmSync(root, { recursive: true, force: true }))

test('each step says what comes next, none is taken before its time unless it is forced, and all hashes are shown', async () => {
  const state = { folder: join(root, 'hub') }
  const take = (step: string, force = false, compromised = false) =>
    hubAuthority(step, { kubeconfig: undefined, state, force, compromised })
  await assert.rejects(take('show'), /there is no hub's state/)
  await hubIssue('edge-1', { kubeconfig: undefined, state, out: join(root, 'edge-1.pem'), force: false })
  await assert.rejects(take('turn'), /"turn" is no step/)
  await assert.rejects(take('switch'), /begin with "ake hub authority rotate"/)
  const before = await take('show')
  assert.match(before, /^current {2}sha256:[0-9a-f]{64} until 20\d\d-/)
  const rotated = await take('rotate')
  assert.match(rotated, /ake hub authority switch/)
  assert.equal(rotated.split('\n').filter((line) => /^(?:current|next) /.test(line)).length, 2)
  assert.ok(rotated.includes(before.trim()))
  await assert.rejects(take('switch'), /edges may not have heard of it: wait ten minutes\. --force/)
  const switched = await take('switch', true)
  assert.match(switched, /^old +sha256:/m)
  await assert.rejects(take('retire'), /would be locked out/)
  const retired = await take('retire', true)
  assert.doesNotMatch(retired, /^old +sha256:/m)
  await assert.rejects(take('retire', false, true), /--compromised goes with "ake hub authority switch"/)
  assert.ok((await take('rotate')).includes(retired.split('\n').at(-2) ?? '?'))
  await assert.rejects(take('switch', false, true), /edges may not have heard of it/)
  const replaced = await take('switch', true, true)
  assert.doesNotMatch(replaced, /^(?:old|next) +sha256:/m)
  assert.match(replaced, /Issue each a new credential.*had not heard of "rotate" keeps the old one.*restart it/)
  assert.ok(!replaced.includes(retired.split('\n').at(-2) ?? '?'))
  assert.doesNotMatch(`${rotated}${switched}${retired}`, /PRIVATE|BEGIN/)
})
