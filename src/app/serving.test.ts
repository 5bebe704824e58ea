import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { until } from '../base/until.test-support.ts'
import { Serving } from './serving.ts'

const root = mkdtempSync(join(tmpdir(), 'ake-serving-'))
after(() => rmSync(root, { recursive: true, force: true }))
const dayMs = 24 * 3600_000

async function running(name: string, body: (world: World) => Promise<void>): Promise<void> {
  const data = join(root, name)
  const clock = fakeClock()
  const hosts = ['127.0.0.1']
  const lines: string[] = []
  const log = { ...silentLog, error: (event: string) => void lines.push(event) }
  const serving = await Serving.open({ data, hosts: () => hosts, clock, log })
  const given: string[] = []
  const stop = new AbortController()
  await serving.announce([
    { host: '192.0.2.1', port: 1 },
    { host: '127.0.0.1', port: 2 },
  ])
  const run = serving.run({ setServing: ({ cert }) => void given.push(cert) }, stop.signal)
  // Each round ends with its timer set.
  const round = async () => {
    await until(() => clock.pending() === 1)
    clock.advance(5_000)
    await until(() => clock.pending() === 1)
  }
  await body({ data, clock, hosts, serving, given, lines, round })
  stop.abort()
  await run
}

type World = {
  data: string
  clock: ReturnType<typeof fakeClock>
  hosts: string[]
  serving: Serving
  given: string[]
  lines: string[]
  round(): Promise<void>
}

test('a certificate is made anew while the server runs: for a new address at once, else before its end', () =>
  running('renewed', async ({ data, clock, hosts, serving, given, round }) => {
    const kubeconfig = () => readFileSync(join(data, 'admin.kubeconfig'), 'utf8')
    assert.match(kubeconfig(), /server: "https:\/\/127\.0\.0\.1:2"/)
    const { ca, admin } = serving.pki
    await round()
    assert.deepEqual(given, [])
    hosts.push('10.43.0.1')
    await round()
    assert.equal(given.length, 1)
    assert.equal(new X509Certificate(given[0] ?? '').checkIP('10.43.0.1'), '10.43.0.1')
    assert.equal(serving.pki.admin.cert, admin.cert)
    const before = serving.endsAtMs
    clock.jump(710 * dayMs)
    await round()
    assert.equal(given.length, 2)
    assert.ok(serving.endsAtMs > before)
    assert.notEqual(serving.pki.admin.cert, admin.cert)
    assert.ok(kubeconfig().includes(Buffer.from(serving.pki.admin.cert).toString('base64')))
    assert.equal(serving.pki.ca, ca)
    await round()
    assert.equal(given.length, 2)
  }))

test('one that cannot be renewed serves on, which is told once', () =>
  running('refused', async ({ data, hosts, serving, given, lines, round }) => {
    writeFileSync(join(data, 'pki', 'ca.key'), 'no key')
    hosts.push('10.43.0.1')
    const { cert } = serving.pki.serving
    await round()
    await round()
    assert.deepEqual([given, lines], [[], ['serving.unrenewed']])
    assert.equal(serving.pki.serving.cert, cert)
  }))

test('the certificate of the administrator is made anew before its end too, whenever that of the server was', () =>
  running('administrator', async ({ clock, hosts, serving, given, round }) => {
    const { admin } = serving.pki
    clock.jump(300 * dayMs)
    hosts.push('10.43.0.1')
    await round()
    assert.deepEqual([given.length, serving.pki.admin.cert === admin.cert], [1, true])
    clock.jump(410 * dayMs)
    await round()
    assert.notEqual(serving.pki.admin.cert, admin.cert)
  }))
