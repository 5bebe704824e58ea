/** Several addresses of one API server: the first that answers is used, the next when it is gone, the first again when it is back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startLink } from '../conformance/link.ts'
import { until } from '../src/base/until.test-support.ts'
import { Site } from './edgeprocess.ts'
import { configMap, configMaps, type Frame, Watch } from './process.ts'

const any = `${configMaps}?resourceVersion=0`

test('one address after the other is lost and comes back: writes go where somebody answers, no watch notices', async () => {
  const site = new Site()
  site.isEdgeProcess = false
  await site.startCloud()
  const second = await startLink({ target: { host: '127.0.0.1', port: site.cloud.port } })
  try {
    await site.startEdge('--server', second.url, '--mirror', 'configmaps')
    const client = site.client()
    await until(async () => (await client.ask('GET', any)).status === 200, 'the first sync')
    const current = async () => {
      const { upstream } = JSON.parse((await client.ask('GET', '/ake/status')).body.toString())
      const { url } = upstream.servers.find((one: { current: boolean }) => one.current)
      return new URL(url).port
    }
    assert.equal(await current(), String(site.link.port))
    assert.equal(second.stats().bytesUp, 0, 'the second is not bothered while the first answers')
    const frames: Frame[] = []
    const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=0`, (frame) => void frames.push(frame))
    await watch.opened()
    let made = 0
    const write = async () => (await client.ask('POST', configMaps, configMap(`w${made}`, {}))).status
    const isHeard = () => frames.some(({ object }) => object.metadata.name === `w${made}`)
    const rounds = [
      { cut: site.link, mode: 'refuse', to: second },
      { cut: site.link, mode: 'up', to: site.link },
      { cut: site.link, mode: 'blackhole', to: second },
      { cut: site.link, mode: 'up', to: site.link },
    ] as const
    for (const { cut, mode, to } of rounds) {
      await cut.set(mode)
      await until(async () => (await current()) === String(to.port), `${mode}: another address`, { withinMs: 30_000 })
      await until(async () => (await write()) === 201, `${mode}: a write`, { withinMs: 30_000 })
      await until(isHeard, `${mode}: the event of the write`)
      made++
    }
    assert.equal(watch.stream.closed, false)
    assert.deepEqual(
      frames.filter(({ type }) => type !== 'BOOKMARK').map(({ type, object }) => `${type} ${object.metadata.name}`),
      ['ADDED w0', 'ADDED w1', 'ADDED w2', 'ADDED w3'],
    )
  } finally {
    await site.end()
    await second.close()
  }
})
