import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { podAccountIn } from './podaccount.ts'
import { readUpstreams } from './profile.ts'

const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
const pem = '-----BEGIN CERTIFICATE-----\n'

test('a pod reaches its API server by what it was given, and its token is one of the files that are followed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ake-pod-'))
  try {
    const kubeconfig = podAccountIn(environment, folder)
    assert.ok(kubeconfig !== undefined)
    await assert.rejects(
      readUpstreams({ servers: [], kubeconfig }),
      /authority .*ca.crt of this pod cannot be read .*--kubeconfig/,
    )
    await writeFile(join(folder, 'ca.crt'), 'none')
    await assert.rejects(readUpstreams({ servers: [], kubeconfig }), /is no PEM/)
    await writeFile(join(folder, 'ca.crt'), pem)
    const without = await readUpstreams({ servers: [], kubeconfig })
    assert.match(without.credentials.get('edge')?.missing ?? '', /token .* cannot be read/)
    await writeFile(join(folder, 'token'), 'one\n')
    const { urls, trust, credentials, files } = await readUpstreams({ servers: [], kubeconfig })
    assert.deepEqual(urls.map(String), ['https://10.96.0.1/'])
    assert.deepEqual(trust, { ca: pem, insecure: false })
    assert.equal(credentials.get('edge')?.token, 'one')
    assert.deepEqual(files, [join(folder, 'token'), join(folder, 'ca.crt')])
    const elsewhere = await readUpstreams({ servers: ['https://api:6443'], kubeconfig })
    assert.deepEqual(elsewhere.urls.map(String), ['https://api:6443/'])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('without the variables of a pod there is no account, and an IPv6 address is written as URLs have it', () => {
  assert.equal(podAccountIn({}), undefined)
  assert.equal(podAccountIn({ KUBERNETES_SERVICE_HOST: '10.96.0.1' }), undefined)
  const { server } = podAccountIn({ KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }) ?? {}
  assert.equal(server, 'https://[fd00::1]:443')
})
