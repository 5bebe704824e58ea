/** Which authorities of clients a cluster publishes, as a hub follows them. */
import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import type { InterestView, LinkObject } from '../../link/session/session.ts'
import type { Interest } from '../../mirror/interest.ts'
import { certify, issueCertificate } from '../../pki/certificate.ts'
import type { SourceReader } from '../sources/view.ts'
import { ClusterAuthorities } from './clusterauthorities.ts'

const dates = { notBefore: 0, notAfter: Date.UTC(2040, 0, 1) }
const authority = (commonName: string) => issueCertificate({ ...dates, use: 'authority', subject: { commonName } }).cert
const key = 'kube-system/extension-apiserver-authentication'

function published(file: string): LinkObject {
  const bytes = Buffer.from(JSON.stringify({ metadata: {}, data: { 'client-ca-file': file } }))
  return { key, uid: 'u', version: 1, bytes }
}

/** Of one authority as it was made, and made anew for the same key. */
function renewedAuthority(commonName: string) {
  const first = issueCertificate({ ...dates, use: 'authority', subject: { commonName } })
  const key = createPrivateKey(first.key)
  const request = { ...dates, notAfter: Date.UTC(2050, 0, 1), use: 'authority', subject: { commonName } } as const
  return [first.cert, certify(key, request, { name: { commonName }, key })] as const
}

test('[L23] an edge is told so whose authority the cluster lists no more; one that was made anew for the same key still counts', async (t) => {
  let reader: SourceReader | undefined
  const open = (_: Interest, one: SourceReader) => {
    reader = one
    return undefined
  }
  const log = createLog({ level: 'error', write: () => undefined })
  const authorities = new ClusterAuthorities({ sources: { open }, clock: fakeClock(), log })
  const ending = new AbortController()
  const running = authorities.run(ending.signal)
  const [first, renewed] = renewedAuthority('kubernetes')
  const other = authority('kubernetes')
  const edge = (pem: string, signer: 'hub' | 'cluster' = 'cluster') => ({
    name: 'n1',
    certificate: { signer, authority: new X509Certificate(pem).fingerprint256 },
  })
  assert.equal(authorities.retirementOf(edge(first)), undefined)
  const object = published(`${first}${other}`)
  reader?.opened({ behind: () => [object], get: () => object } as unknown as InterestView)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  const say = (item: LinkObject) => reader?.event({ key, version: 2, item, previous: undefined })
  for (const pem of [first, other]) assert.equal(authorities.retirementOf(edge(pem)), undefined)
  say(published(`${renewed}`))
  assert.equal(authorities.retirementOf(edge(first)), undefined)
  assert.match(authorities.retirementOf(edge(other)) ?? '', /signed the certificate of "n1": join again/)
  assert.equal(authorities.retirementOf(edge(other, 'hub')), undefined)
  // It is asked of every link: no key is written out for that.
  const written = t.mock.method(Object.getPrototypeOf(new X509Certificate(first).publicKey), 'export')
  const asked = edge(other)
  for (let link = 0; link < 1_000; link++) authorities.retirementOf(asked)
  assert.equal(written.mock.callCount(), 0)
  say(published(''))
  assert.notEqual(authorities.retirementOf(edge(other)), undefined)
  ending.abort()
  await running
})

test('they are followed; what cannot be read, or was taken away, leaves those that were read last', async () => {
  const clock = fakeClock()
  const lines: string[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  let wanted: Interest | undefined
  let reader: SourceReader | undefined
  const open = (interest: Interest, one: SourceReader) => {
    wanted = interest
    reader = one
    return undefined
  }
  const authorities = new ClusterAuthorities({ sources: { open }, clock, log })
  const ending = new AbortController()
  const running = authorities.run(ending.signal)
  assert.equal(wanted?.name, 'v1/configmaps@kube-system?&metadata.name=extension-apiserver-authentication')
  assert.match(authorities.unread ?? '', /does not know yet .* \(they are being read\): try again$/)
  reader?.refused({ reason: 'forbidden', retryAfterMs: 0, sentence: 'may not' })
  assert.match(authorities.unread ?? '', /\(may not\): try again$/)
  let told = 0
  authorities.observe(() => told++)
  const [first, second] = [authority('first'), authority('second')]
  const object = published(first)
  const view = { behind: () => [object], get: () => object } as unknown as InterestView
  reader?.opened(view)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  assert.deepEqual(authorities.current.map(String), [first])
  const say = (item: LinkObject | undefined) => reader?.event({ key, version: 2, item, previous: undefined })
  say(published(`${first}${second}`))
  assert.equal(authorities.current.length, 2)
  const kept = authorities.current
  say(published(''))
  say(published('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'))
  assert.match(lines.at(-1) ?? '', /no certificate/)
  say(undefined)
  reader?.refused({ reason: 'forbidden', retryAfterMs: 0, sentence: 'may not' })
  assert.equal(authorities.current, kept)
  assert.equal(authorities.unread, undefined, 'those that were read')
  assert.equal(told, 2)
  ending.abort()
  await running
})

test('a start waits for them until they are read, and no longer than a moment', async () => {
  const clock = fakeClock()
  let reader: SourceReader | undefined
  const open = (_: Interest, one: SourceReader) => {
    reader = one
    return undefined
  }
  const log = createLog({ level: 'error', write: () => undefined })
  const authorities = new ClusterAuthorities({ sources: { open }, clock, log })
  const ending = new AbortController()
  const running = authorities.run(ending.signal)
  let waited = 0
  const wait = async () => {
    await authorities.first()
    waited++
  }
  const late = wait()
  clock.advance(4_999)
  await new Promise(setImmediate)
  assert.equal(waited, 0)
  clock.advance(1)
  await late
  const early = wait()
  reader?.opened({ behind: () => [], get: () => undefined } as unknown as InterestView)
  await early
  assert.match(authorities.unread ?? '', /it publishes none/)
  await wait()
  assert.equal(waited, 3)
  ending.abort()
  await running
})
