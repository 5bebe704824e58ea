import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { UsageError } from '../../base/fault.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { edgePair } from '../../hub/state/certificates.ts'
import { makeState } from '../../hub/state/state.ts'
import { credentialText } from '../../pki/credentialfile.ts'
import { FollowedHubCredential } from './hubcredential.ts'

const state = makeState(Date.now())
const dir = mkdtempSync(join(tmpdir(), 'ake-credential-'))
process.on('exit', () => rmSync(dir, { recursive: true, force: true }))
const textOf = (node: string) =>
  credentialText({ ca: state.ca.cert, pair: edgePair(state, node, Date.now()), title: node })

test('the file is read again when it changes; one that cannot be used leaves the last one, with a sentence', async () => {
  const path = join(dir, 'edge.pem')
  const clock = fakeClock()
  const log = silentLog
  await assert.rejects(FollowedHubCredential.open({ path, clock, log }), UsageError)
  writeFileSync(path, textOf('n1'))
  const credential = await FollowedHubCredential.open({ path, clock, log })
  assert.deepEqual([credential.node, credential.user], ['n1', 'system:node:n1'])
  assert.equal(credential.life.name, 'system:node:n1')
  let renewed = 0
  credential.observe(() => renewed++)
  const ending = new AbortController()
  const running = credential.run(ending.signal)
  const first = credential.current
  const change = async (text: string, isTaken: () => boolean) => {
    writeFileSync(path, text)
    await until(() => {
      clock.advance(10_000)
      return isTaken()
    })
  }
  await change('garbage', () => credential.complaints.length === 1)
  assert.equal(credential.current, first)
  await change(textOf('n2'), () => credential.complaints[0]?.includes('node n2') === true)
  assert.equal(credential.current, first)
  await change(textOf('n1'), () => renewed === 1)
  assert.notEqual(credential.current, first)
  assert.deepEqual(credential.complaints, [])
  ending.abort()
  await running
})
