import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { JoinedCluster } from '../hub/joining/cluster.test-support.ts'
import { issueCertificate, pemsIn } from '../pki/certificate.ts'
import { readSigningRequest } from '../pki/signingrequest.ts'
import { nodeCertificates } from './nodecertificates.ts'

const address = '10.20.30.40'

async function world(serving: string, body: (at: World) => Promise<void>) {
  const cluster = new JoinedCluster()
  const clock = fakeClock()
  cluster.fromMs = () => clock.now()
  cluster.nodes.set('edge-1', 'True')
  // One of the hub's own: only the kubelet's is looked at here.
  const dates = { notBefore: 0, notAfter: clock.now() + 3_600_000 }
  const own = issueCertificate({ ...dates, use: 'authority', subject: { commonName: 'system:node:edge-1' } })
  const certificate = new X509Certificate(own.cert)
  const all = await nodeCertificates({
    credential: {
      ...{ node: 'edge-1', user: 'system:node:edge-1', keep: () => Promise.reject(new Error('not asked for')) },
      current: { certificate, authorities: [certificate] } as never,
    },
    ...{ serving, clock, now: () => clock.now(), log: silentLog, isLinked: () => true },
    clusterCa: { read: () => Promise.resolve(undefined) },
    ask: (asked) => {
      assert.deepEqual(asked.identity, { kind: 'certificate', name: 'system:node:edge-1' })
      return cluster.upstream.ask({ ...asked, identity: { kind: 'edge' } })
    },
  })
  const ending = new AbortController()
  const running = all.map((one) => one.run(ending.signal))
  const pass = async (ms: number) => {
    for (let at = 0; at < 20; at++) {
      clock.advance(ms / 20)
      // What is written to a disk takes real time.
      await pause(2)
    }
  }
  try {
    await body({ cluster, pass })
  } finally {
    ending.abort()
    await Promise.all(running)
  }
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'ake-serving-'))
  try {
    await body(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

type World = { readonly cluster: JoinedCluster; readonly pass: (ms: number) => Promise<void> }

async function inFile(path: string) {
  const text = await readFile(path, 'utf8')
  const [cert = ''] = pemsIn(text)
  const certificate = new X509Certificate(cert)
  assert.ok(certificate.checkPrivateKey(createPrivateKey(text)), 'certificate and key fit')
  return certificate
}

const isOwn = (certificate: X509Certificate) => certificate.verify(certificate.publicKey)

/** On a busy disk it takes a while. */
async function passUntil(pass: World['pass'], holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100 && !(await holds()); tries++) await pass(2_000)
  assert.ok(await holds())
}

test('a kubelet has something to serve with from the first moment, and what the cluster signs for its addresses once it has any', () =>
  inFolder(async (folder) => {
    const path = join(folder, 'serving.pem')
    await world(path, async ({ cluster, pass }) => {
      const first = await inFile(path)
      assert.ok(isOwn(first))
      assert.equal((await stat(path)).mode & 0o777, 0o600)
      await pass(30_000)
      assert.equal(cluster.requests.size, 0, 'a Node without addresses is waited for')
      cluster.addresses.set('edge-1', [address])
      await passUntil(pass, async () => !isOwn(await inFile(path)))
      const [[name, request] = ['', undefined]] = cluster.requests
      assert.match(name, /^ake-serving-/)
      assert.equal(request?.spec.signerName, 'kubernetes.io/kubelet-serving')
      assert.deepEqual(request?.spec.usages, ['digital signature', 'server auth'])
      const asked = Buffer.from(String(request?.spec.request), 'base64').toString()
      assert.equal(readSigningRequest(asked)?.subject.at(-1)?.text, 'system:node:edge-1')
      const der = Buffer.from(asked.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')
      assert.ok(der.includes(Buffer.from(address.split('.').map(Number))), 'it is for the address of the Node')
      const signed = await inFile(path)
      assert.ok(signed.checkIssued(new X509Certificate(cluster.ca.cert)))
      assert.equal(signed.checkIP(address), address)
    })
  }))

test('after a restart what stands in, or cannot be read, is replaced, and what the cluster signed is kept', () =>
  inFolder(async (folder) => {
    const path = join(folder, 'serving.pem')
    await world(path, async () => undefined)
    const stand = await readFile(path, 'utf8')
    const again = async () => {
      let requests = 0
      await world(path, async ({ cluster, pass }) => {
        cluster.addresses.set('edge-1', [address])
        await pass(30_000)
        if (cluster.requests.size > 0) await passUntil(pass, async () => !isOwn(await inFile(path)))
        requests = cluster.requests.size
      })
      return requests
    }
    assert.equal(await again(), 1)
    assert.notEqual(await readFile(path, 'utf8'), stand)
    assert.equal(await again(), 0)
    await writeFile(path, 'nothing of use')
    assert.equal(await again(), 1)
    await writeFile(path, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
    assert.equal(await again(), 1)
  }))
