/** How `ake edge` ends: what came before the signal is answered, what comes after it is refused, and nothing is lost. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../src/base/until.test-support.ts'
import { type Site, withSite } from './edgeprocess.ts'
import { Client, configMap, configMaps, Watch } from './process.ts'

const any = `${configMaps}?resourceVersion=0`
/** One way: long enough for a signal to come while a write is on its way, short enough for a probe to be answered. */
const slow = { kind: 'slow', down: { delayMs: 1_000 } } as const

async function synced(site: Site): Promise<Client> {
  const client = site.client()
  await until(async () => (await client.ask('GET', any)).status === 200, 'the first sync')
  return client
}

/** The requests that the cloud has answered, of one verb. */
async function answeredByCloud(site: Site, verb: string): Promise<number> {
  const text = (await site.client(site.cloud).ask('GET', '/metrics')).body.toString()
  const lines = text
    .split('\n')
    .filter((line) => line.startsWith('ake_requests_total') && line.includes(`verb="${verb}"`))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

async function refusedNow(site: Site): Promise<boolean> {
  const late = new Client(site.edge)
  try {
    const { status, headers } = await late.ask('GET', '/readyz')
    return status === 429 && headers['retry-after'] === '1'
  } catch {
    return true
  } finally {
    late.close()
  }
}

test('[A7] SIGTERM: writes that were passed on get their answers, streams a clean end, later requests none; exit 0', () =>
  withSite(['--mirror', 'configmaps'], async (site) => {
    const client = await synced(site)
    const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=0&allowWatchBookmarks=true`)
    const passed = new Watch(client, '/api/v1/namespaces/default/secrets?watch=1&resourceVersion=0')
    await Promise.all([watch.opened(), passed.opened()])
    const created = await answeredByCloud(site, 'create')
    await site.link.set(slow)
    const second = client.ask('POST', configMaps, configMap('second', { value: 'x' }))
    const agent = new Agent({ ...site.edge.credentials, keepAlive: true })
    const headers = { 'content-type': 'application/json' }
    const asking = request(`${site.edge.url}${configMaps}`, { method: 'POST', agent, headers })
    const first = once(asking, 'response')
    asking.end(JSON.stringify(configMap('first', { value: 'x' })))
    const account = '/api/v1/namespaces/default/serviceaccounts/default/token'
    const token = client.ask('POST', account, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {},
    })
    // The cloud has done them, and their answers are on the way: each client must hear of it.
    await until(async () => (await answeredByCloud(site, 'create')) >= created + 3, 'three writes at the API server')
    const ended = site.edge.end('SIGTERM')
    await until(() => refusedNow(site), 'a refusal')
    assert.equal((await second).status, 201)
    const [response] = await first
    assert.equal(response.statusCode, 201)
    assert.equal(response.headers.connection, 'close')
    response.resume()
    // The cloud has no such account: what matters is that this is its own word.
    assert.equal((await token).status, 404)
    for (const one of [watch, passed]) assert.deepEqual(await one.ended, { rstCode: 0, clean: true })
    assert.equal(watch.frames.at(-1)?.type, 'BOOKMARK')
    const { code, stderr } = await ended
    assert.equal(code, 0, stderr)
    agent.destroy()
    // What was answered is in the copy, also for an edge that starts without the cloud.
    await site.link.set('refuse')
    await site.startEdge()
    const again = site.client()
    for (const name of ['first', 'second']) {
      assert.equal((await again.ask('GET', `${configMaps}/${name}?resourceVersion=0`)).status, 200, name)
    }
  }))

test('SIGTERM: an upload that never ends holds nothing up for longer than other streams; a second signal ends at once', () =>
  withSite(['--mirror', 'configmaps'], async (site) => {
    const client = await synced(site)
    const half = client.open('POST', configMaps)
    half.on('error', () => {})
    half.write('{')
    const begunMs = Date.now()
    await pause(100)
    const { code } = await site.edge.end('SIGTERM')
    assert.equal(code, 0)
    assert.ok(Date.now() - begunMs < 15_000, `it took ${Date.now() - begunMs} ms`)
    await site.startEdge()
    const impatient = site.client()
    const stuck = impatient.open('POST', configMaps)
    stuck.on('error', () => {})
    stuck.write('{')
    await pause(100)
    process.kill(site.edge.pid, 'SIGTERM')
    await until(() => refusedNow(site), 'a refusal')
    assert.equal((await site.edge.end('SIGTERM')).code, 1)
  }))
