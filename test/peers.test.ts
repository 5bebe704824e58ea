/** What edges before this one got wrong and only processes can show: each test names whose failure it would be. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { withSite, withSiteHere } from './edgeprocess.ts'
import { type Client, configMap, configMaps, type Frame, Watch } from './process.ts'

type Listed = { metadata: { resourceVersion: string }; items: { metadata: { name: string } }[] }

const mirrored = ['--mirror', 'configmaps']
const any = `${configMaps}?resourceVersion=0`
const events = '/api/v1/namespaces/default/events'
const secrets = '/api/v1/namespaces/default/secrets'

const namesOf = async (client: Client, url = any) =>
  (await client.json<Listed>('GET', url)).items.map(({ metadata }) => metadata.name)
const told = (frames: readonly Frame[]) =>
  frames.filter(({ type }) => type !== 'BOOKMARK').map(({ type, object }) => `${type} ${object.metadata.name}`)
const event = (name: string) => ({
  metadata: { name, namespace: 'default' },
  involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
  type: 'Normal',
})

/** Open watches of a resource, by the measure of who serves them. */
async function watchersOf(client: Client, resource: string): Promise<number> {
  const text = (await client.ask('GET', '/metrics')).body.toString()
  const found = text.matchAll(/^ake_watchers\{[^}]*resource="([^"]*)"[^}]*\} (\d+)$/gm)
  return [...found].reduce((sum, [, name = '', count]) => sum + (name === resource ? Number(count) : 0), 0)
}

describe('a site of its own each', { concurrency: 3 }, () => {
  test('deleted while the edge was down and the line cut: no ghost, and the old watch hears of it (openyurt 5, kubeedge 1.4)', () =>
    withSite(mirrored, async (site) => {
      const direct = site.client(site.cloud)
      for (const name of ['ghost', 'stays']) await direct.json('POST', configMaps, configMap(name, {}))
      let client = site.client()
      await until(async () => (await namesOf(client)).length === 2, 'synced')
      const { metadata } = await client.json<Listed>('GET', any)
      await site.edge.end('SIGKILL')
      await site.link.set('refuse')
      await direct.ask('DELETE', `${configMaps}/ghost`)
      await site.startEdge()
      client = site.client()
      assert.deepEqual(await namesOf(client), ['ghost', 'stays'], 'nobody here can know')
      const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${metadata.resourceVersion}`)
      await site.link.set('up')
      await watch.until((frames) => frames.length > 0, 20_000)
      assert.deepEqual(told(watch.frames), ['DELETED ghost'])
      assert.deepEqual(await namesOf(client), ['stays'])
      assert.equal((await client.ask('GET', `${configMaps}/ghost?resourceVersion=0`)).status, 404)
      await site.edge.end('SIGKILL')
      site.isEdgeProcess = false
      await site.link.set('refuse')
      await site.startEdge()
      assert.deepEqual(await namesOf(site.client()), ['stays'], 'nor on the disk')
    }))

  test('clients that go leave no stream behind, here or upstream, and end none of another’s (openyurt 19, kubeedge 1.3)', () =>
    withSiteHere(mirrored, async (site) => {
      const direct = site.client(site.cloud)
      const staying = site.client()
      await until(async () => (await staying.ask('GET', any)).status === 200, 'synced')
      const upstream = await watchersOf(direct, 'configmaps')
      const leaving = site.client()
      const paths = [`${configMaps}?watch=1`, `${events}?watch=1`]
      // The same question from both: an edge that shared too much would end both.
      const kept = paths.map((path) => new Watch(staying, path))
      const given = Array.from({ length: 30 }, () => paths.map((path) => new Watch(leaving, path))).flat()
      await Promise.all([...kept, ...given].map((watch) => watch.opened()))
      await until(async () => (await watchersOf(direct, 'events')) === 31, 'passed through')
      assert.equal(await watchersOf(staying, 'configmaps'), 31)
      assert.equal(await watchersOf(direct, 'configmaps'), upstream, 'all of them share the one that was there')
      for (const watch of given.slice(0, 10)) watch.stream.close()
      leaving.close()
      await until(async () => (await watchersOf(direct, 'events')) === 1, 'none is left upstream')
      await until(async () => (await watchersOf(staying, 'configmaps')) === 1, 'none is left here')
      await direct.json('POST', configMaps, configMap('told', {}))
      await direct.json('POST', events, event('told'))
      for (const watch of kept) await watch.until((frames) => told(frames).includes('ADDED told'))
    }))

  test('every verb and form of patch reaches the API server; events pass and leave nothing on the disk (kubeedge 1.1, openyurt 6)', () =>
    withSiteHere(mirrored, async (site) => {
      const direct = site.client(site.cloud)
      const client = site.client()
      await until(async () => (await client.ask('GET', any)).status === 200, 'synced')
      for (const name of ['a', 'b', 'c']) await client.json('POST', configMaps, configMap(name, { value: 'kept-here' }))
      const patches = [
        ['application/merge-patch+json', { data: { value: 'merged' } }],
        ['application/strategic-merge-patch+json', { data: { value: 'strategic' } }],
        ['application/json-patch+json', [{ op: 'replace', path: '/data/value', value: 'patched' }]],
      ] as const
      for (const [type, body] of patches) {
        const { status } = await client.ask('PATCH', `${configMaps}/a`, body, { 'content-type': type })
        assert.equal(status, 200, type)
        const url = `${configMaps}/a`
        const [here, there] = await Promise.all([client.ask('GET', `${url}?resourceVersion=0`), direct.ask('GET', url)])
        assert.equal(here.body.toString(), there.body.toString(), `${type}: read at once as it was written`)
      }
      const all = `${configMaps}?fieldSelector=metadata.name%21%3Dc`
      assert.equal((await client.ask('DELETE', all)).status, 200)
      await until(async () => (await namesOf(client)).join() === 'c', 'deletecollection')

      for (let at = 0; at < 20; at++) await client.json('POST', events, event(`only-passing-${at}`))
      for (let at = 0; at < 3; at++) assert.equal((await namesOf(client, events)).length, 20)
      const status = JSON.parse((await client.ask('GET', '/ake/status')).body.toString())
      const named: string[] = status.interests.map((one: { resource: string }) => one.resource)
      assert.ok(named.includes('configmaps') && !named.includes('events'), named.join())
      const { code, stderr } = await site.edge.end()
      assert.equal(code, 0)
      assert.doesNotMatch(stderr, / (error|warn) /, 'nothing went wrong, and nothing says so (kubeedge 1.3)')
      const files = readdirSync(site.edgeFolder, { recursive: true, encoding: 'utf8' }).filter(
        (name) => name.startsWith('ake.db') || name.startsWith('log/'),
      )
      const stored = Buffer.concat(files.map((file) => readFileSync(join(site.edgeFolder, file))))
      assert.deepEqual([stored.includes('kept-here'), stored.includes('only-passing')], [true, false])
    }))

  test('while it is known that nobody answers, no request dials: the checker alone does (superedge g7)', () =>
    withSiteHere(mirrored, async (site) => {
      const client = site.client()
      await until(async () => (await client.ask('GET', any)).status === 200, 'synced')
      await client.json('POST', configMaps, configMap('here', {}))
      await client.ask('GET', `${configMaps}/here`)
      const documents = ['/version', '/api', '/apis', '/api/v1']
      for (const path of documents) await client.ask('GET', path)
      await site.link.set('blackhole')
      for (const path of documents) {
        const { status, headers } = await client.ask('GET', path)
        assert.deepEqual([status, headers['content-type']], [200, 'application/json'], `${path} (openyurt 9)`)
      }
      await site.untilCloudIs('unreachable')
      const before = site.link.stats().connections
      for (let round = 0; round < 50; round++) {
        const answers = await Promise.all([
          client.ask('GET', `${configMaps}/here`),
          client.ask('GET', configMaps),
          client.ask('GET', `${secrets}/never`),
          client.ask('POST', configMaps, configMap(`new${round}`, {})),
        ])
        assert.deepEqual(
          answers.map(({ status }) => status),
          [200, 200, 503, 503],
        )
        // Probes go on meanwhile, one a second: requests that waited for a dial, shared or not, would see many of them.
        const dialled = site.link.stats().connections - before
        assert.ok(dialled <= 20, `${dialled} connections for ${4 * (round + 1)} requests`)
      }
    }))
})
