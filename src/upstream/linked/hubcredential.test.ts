import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import fs, { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { UsageError } from '../../base/fault.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { authoritiesOf, withNext } from '../../hub/state/authorities.ts'
import { edgePair } from '../../hub/state/certificates.ts'
import { makeState } from '../../hub/state/state.ts'
import { credentialText, nodeNamedBy, parseCredential } from '../../pki/credentialfile.ts'
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

test('authorities and a certificate that are kept at once are both kept, beside what another process wrote a moment before', async () => {
  const path = join(dir, 'kept.pem')
  writeFileSync(path, textOf('n1'))
  const credential = await FollowedHubCredential.open({ path, clock: fakeClock(), log: silentLog })
  const announced = withNext(state, Date.now())
  const ca = authoritiesOf(announced)
    .map(({ pem }) => pem)
    .join('')
  const there = () => parseCredential(readFileSync(path, 'utf8'), path)
  for (const pairFirst of [true, false]) {
    const pair = edgePair(state, 'n1', Date.now())
    const told = [{ pair }, { ca: pairFirst ? ca : state.ca.cert }]
    await Promise.all((pairFirst ? told : told.reverse()).map((one) => credential.keep(one)))
    assert.equal(there().certificate.fingerprint256, new X509Certificate(pair.cert).fingerprint256)
    assert.equal(there().authorities.length, pairFirst ? 2 : 1)
    assert.equal(credential.current.certificate.fingerprint256, there().certificate.fingerprint256)
  }
  // As "ake join" does, before the file is looked at again.
  const joined = edgePair(state, 'n1', Date.now())
  writeFileSync(path, credentialText({ ca: state.ca.cert, pair: joined, title: '' }))
  await assert.rejects(credential.keep({ pair: edgePair(state, 'n1', Date.now()) }), /that one counts/)
  await credential.keep({ ca })
  assert.equal(there().certificate.fingerprint256, new X509Certificate(joined.cert).fingerprint256)
  assert.equal(there().authorities.length, 2)
  writeFileSync(path, textOf('n2'))
  await assert.rejects(credential.keep({ ca }), /is the credential of node n2 now/)
  assert.equal(nodeNamedBy(there().certificate), 'n2')
})

test('what a hub told and cannot be written down is complained of until it can, and does not count', async () => {
  const path = join(dir, 'mounted', 'edge.pem')
  mkdirSync(join(dir, 'mounted'))
  writeFileSync(path, textOf('n1'))
  const credential = await FollowedHubCredential.open({ path, clock: fakeClock(), log: silentLog })
  const { pair } = credential.current
  const told = { pair: edgePair(state, 'n1', Date.now()) }
  const refuse = () => {
    throw Object.assign(new Error('read-only file system'), { code: 'EROFS' })
  }
  const { promises } = fs
  const real = { open: promises.open, writeFile: promises.writeFile }
  Object.assign(promises, { open: refuse, writeFile: refuse })
  syncBuiltinESMExports()
  try {
    await assert.rejects(credential.keep(told), /cannot write .*edge\.pem \(read-only file system\)/)
  } finally {
    Object.assign(promises, real)
    syncBuiltinESMExports()
  }
  assert.match(
    credential.complaints.join(),
    /cannot write .*: check the folder's owner .*; what the hub tells counts once it is written there/,
  )
  assert.equal(credential.current.pair.cert, pair.cert)
  await credential.keep(told)
  assert.deepEqual(credential.complaints, [])
  assert.equal(credential.current.pair.cert, told.pair.cert)
})
