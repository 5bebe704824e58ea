import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { connect, createServer } from 'node:tls'
import { UsageError } from '../base/fault.ts'
import { nearest, serverUrl, writeKubeconfig } from './kubeconfig.ts'
import { openPki, servingHosts } from './pki.ts'

const root = mkdtempSync(join(tmpdir(), 'ake-pki-'))
after(() => rmSync(root, { recursive: true, force: true }))
let count = 0
const newFolder = () => join(root, String(count++), 'pki')
const start = Date.UTC(2026, 10, 1)
const day = 24 * 3600_000

test('the first start makes everything, for its owner only; a later one keeps it', async () => {
  const folder = newFolder()
  const first = await openPki({ folder, hosts: servingHosts(['192.0.2.7']), now: start })
  const files = readdirSync(folder)
  assert.deepEqual(files.sort(), ['admin.crt', 'admin.key', 'ca.crt', 'ca.key', 'serving.crt', 'serving.key'])
  for (const file of files) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600)
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  assert.equal(new X509Certificate(first.admin.cert).subject, 'O=system:masters\nCN=ake-admin')
  assert.deepEqual(await openPki({ folder, hosts: servingHosts(['192.0.2.7']), now: start + 100 * day }), first)
  assert.deepEqual(
    await openPki({ folder, hosts: servingHosts(['0.0.0.0']), now: start }),
    await openPki({ folder, hosts: servingHosts(['0.0.0.0']), now: start }),
  )
})

test('a new listen host or a near end renews the leaf, never the authority', async () => {
  const folder = newFolder()
  const first = await openPki({ folder, hosts: servingHosts(['127.0.0.1']), now: start })
  const moved = await openPki({ folder, hosts: servingHosts(['edge.example']), now: start })
  assert.notEqual(moved.serving.cert, first.serving.cert)
  assert.equal(new X509Certificate(moved.serving.cert).checkHost('edge.example'), 'edge.example')
  assert.deepEqual(moved.admin, first.admin)
  const late = await openPki({ folder, hosts: servingHosts(['edge.example']), now: start + 705 * day })
  assert.notEqual(late.serving.cert, moved.serving.cert)
  assert.notEqual(late.admin.cert, first.admin.cert)
  assert.equal(late.ca, first.ca)
})

test('a start interrupted between key and certificate is repaired by the next', async () => {
  const folder = newFolder()
  const first = await openPki({ folder, hosts: servingHosts(['127.0.0.1']), now: start })
  writeFileSync(join(folder, 'serving.key'), first.admin.key)
  rmSync(join(folder, 'admin.crt'))
  const second = await openPki({ folder, hosts: servingHosts(['127.0.0.1']), now: start })
  assert.notEqual(second.serving.cert, first.serving.cert)
  assert.notEqual(second.admin.cert, first.admin.cert)
  rmSync(join(folder, 'ca.crt'))
  const third = await openPki({ folder, hosts: servingHosts(['127.0.0.1']), now: start })
  const authority = new X509Certificate(third.ca).publicKey
  for (const { cert } of [third.serving, third.admin]) assert.equal(new X509Certificate(cert).verify(authority), true)
})

test('an authority that cannot sign is refused with what to do', async () => {
  const folder = newFolder()
  await openPki({ folder, hosts: servingHosts(['127.0.0.1']), now: start })
  const open = (now: number) => openPki({ folder, hosts: servingHosts(['127.0.0.1']), now })
  await assert.rejects(open(start + 3700 * day), { name: 'UsageError', message: /expired on 2036-.*: remove / })
  writeFileSync(join(folder, 'ca.key'), 'no key')
  await assert.rejects(open(start), { name: 'UsageError', message: /does not belong to ca.crt: restore it/ })
  writeFileSync(join(root, 'file'), '')
  await assert.rejects(
    openPki({ folder: join(root, 'file', 'pki'), hosts: servingHosts(['a']), now: start }),
    UsageError,
  )
})

test('made while the clock said 1970, it is still good when the date is known', async () => {
  const { ca, serving } = await openPki({ folder: newFolder(), hosts: servingHosts(['127.0.0.1']), now: 5000 })
  assert.ok(Date.parse(new X509Certificate(ca).validTo) > Date.UTC(2035, 0, 1))
  assert.ok(Date.parse(new X509Certificate(serving.cert).validTo) > Date.UTC(2027, 0, 1))
  assert.ok(Date.parse(new X509Certificate(ca).validFrom) <= 5000)
})

test('what was made when the date was known counts on a machine that starts in 1970', async () => {
  const { ca, serving, admin } = await openPki({ folder: newFolder(), hosts: ['127.0.0.1'], now: start })
  for (const cert of [ca, serving.cert, admin.cert]) assert.equal(Date.parse(new X509Certificate(cert).validFrom), 0)
})

test('the names a server answers to', () => {
  const hosts = servingHosts(['fe80::1%eth0'], ['edge-1', '10.43.0.1'])
  for (const host of ['localhost', '::1', 'kubernetes.default.svc', '10.96.0.1', '10.43.0.1', 'edge-1', 'fe80::1'])
    assert.ok(hosts.includes(host))
  assert.equal(new Set(servingHosts(['localhost'])).size, servingHosts(['localhost']).length)
  assert.equal(servingHosts(['0.0.0.0']).includes('0.0.0.0'), false)
})

test('mutual TLS works with the kubeconfig as written', async () => {
  const folder = newFolder()
  const pki = await openPki({ folder, hosts: servingHosts(['127.0.0.1']), now: Date.now() })
  const file = join(folder, '..', 'admin.kubeconfig')
  await writeKubeconfig(file, 'https://127.0.0.1:1', pki)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const text = readFileSync(file, 'utf8')
  const field = (name: string) => Buffer.from(new RegExp(`${name}: (\\S+)`).exec(text)?.[1] ?? '', 'base64')
  assert.match(text, /server: "https:\/\/127.0.0.1:1"/)

  await using server = createServer({ ...pki.serving, ca: pki.ca, requestCert: true, rejectUnauthorized: true })
  const seen = new Promise<string>((resolve) => {
    server.on('secureConnection', (socket) => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.end()
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const credentials = { cert: field('client-certificate-data'), key: field('client-key-data') }
  const socket = connect({ port, host: '127.0.0.1', ca: field('certificate-authority-data'), ...credentials })
  await new Promise((resolve, reject) => void socket.on('end', resolve).on('error', reject).resume())
  assert.equal(await seen, 'ake-admin')
})

test('of several addresses the machine itself uses loopback', () => {
  const [lan, any, near] = [{ host: '192.0.2.1' }, { host: '0.0.0.0' }, { host: '127.0.0.1' }] as const
  assert.equal(nearest([lan, near]), near)
  assert.equal(nearest([lan, any]), any)
  assert.equal(nearest([lan]), lan)
})

test('a wildcard address is reached over loopback', () => {
  assert.equal(serverUrl('0.0.0.0', 1), 'https://127.0.0.1:1')
  assert.equal(serverUrl('::', 1), 'https://[::1]:1')
  assert.equal(serverUrl('edge.example', 443), 'https://edge.example:443')
})
