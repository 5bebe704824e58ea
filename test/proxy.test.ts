/** `ake edge` as a process whose API server is known to its site's proxy alone. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { TestProxy } from '../src/upstream/proxy.test-support.ts'
import { Site, statusOf } from './edgeprocess.ts'
import { configMap, configMaps, runAke } from './process.ts'

/** One that is not refused would run on. */
const endMsMax = 20_000

class BehindProxy extends Site {
  readonly #through = join(this.folder, 'edge.kubeconfig')

  protected override upstream(): string[] {
    const own = readFileSync(this.kubeconfig, 'utf8')
    const there = own.replace(
      /^(\s+)server: .*$/m,
      '$1server: https://cloud.invalid:6443\n$1tls-server-name: localhost',
    )
    writeFileSync(this.#through, there, { mode: 0o600 })
    return ['--kubeconfig', this.#through]
  }
}

test('[L4] an edge behind a proxy mirrors through it, serves without it, says why, and comes back', async (context) => {
  const site = new BehindProxy()
  const proxy = await TestProxy.start('http', () => site.cloud.port)
  context.after(async () => {
    await site.end()
    await proxy.end()
  })
  process.env.HTTPS_PROXY = proxy.url('user:secret@')
  await site.startCloud()
  await site.startEdge('--mirror', 'configmaps')
  const names = async () => {
    const { status, body } = await site.client().ask('GET', configMaps)
    assert.equal(status, 200, body.toString())
    return (JSON.parse(body.toString()) as { items: { metadata: { name: string } }[] }).items.map(
      (one) => one.metadata.name,
    )
  }
  const cloud = site.client(site.cloud)
  await site.untilCloudIs('reachable')
  await cloud.json('POST', configMaps, configMap('first', {}))
  await until(async () => (await names()).includes('first'), 'the first')
  assert.deepEqual(new Set(proxy.asked), new Set(['user:secret cloud.invalid:6443']))

  proxy.instead = (socket) => void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
  proxy.cut()
  await site.untilCloudIs('unreachable')
  assert.ok((await names()).includes('first'))
  const status = (await statusOf(site.edgeFolder)).replace(/\s+/g, ' ')
  assert.match(status, new RegExp(`unreachable.*the proxy ${proxy.url()} refuses the credential in its URL \\(407\\)`))
  assert.doesNotMatch(status, /secret/)

  proxy.instead = undefined
  await cloud.json('POST', configMaps, configMap('second', {}))
  await site.untilCloudIs('reachable')
  await until(async () => (await names()).includes('second'), 'the second')
  const { stderr } = await site.edge.end('SIGTERM')
  assert.match(stderr, new RegExp(`upstream\\.proxy .*${proxy.url()}`))
  assert.match(stderr, /refuses the credential in its URL/)
  assert.doesNotMatch(stderr, /secret/)
})

test('a variable that names no proxy is refused at once, by its name', async () => {
  process.env.HTTPS_PROXY = 'ftp://secret@proxy'
  const site = new BehindProxy()
  try {
    await site.startCloud()
    const there = ['--kubeconfig', site.kubeconfig, '--server', 'https://cloud.invalid']
    const { child, ended } = runAke(['edge', ...there, '--listen', '127.0.0.1:0', '--data', site.edgeFolder])
    const late = setTimeout(() => child.kill('SIGKILL'), endMsMax)
    const { code, stderr } = await ended
    clearTimeout(late)
    assert.equal(code, 2, stderr)
    assert.match(stderr, /HTTPS_PROXY names no proxy: give http:\/\/HOST:PORT/)
    assert.doesNotMatch(stderr, /secret/)
  } finally {
    await site.end()
  }
})
