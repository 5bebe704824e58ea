/**
 * A cluster that is restored from a backup while the edge is cut off from it, and found behind what the edge has seen, or
 * already beyond it: nothing of the lost past stays, and a client that still holds a version of it is told.
 */
import assert from 'node:assert/strict'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { withSiteHere } from './edgeprocess.ts'
import { withHubbedSite } from './hubprocess.ts'
import { type Client, configMap, configMaps, Watch } from './process.ts'

type Listed = { metadata: { resourceVersion: string }; items: { metadata: { name: string }; data?: object }[] }

const any = `${configMaps}?resourceVersion=0`

/** What a list shows, as one text. */
async function shown(client: Client): Promise<string> {
  const { status, body } = await client.ask('GET', any)
  if (status !== 200) return String(status)
  return (JSON.parse(body.toString()) as Listed).items
    .map(({ metadata, data }) => `${metadata.name} ${JSON.stringify(data)}`)
    .join(', ')
}

async function write(client: Client, name: string, value: string): Promise<void> {
  const { status } = await client.ask('PUT', `${configMaps}/${name}`, configMap(name, { value }))
  if (status === 404) await client.ask('POST', configMaps, configMap(name, { value }))
}

for (const [where, writes] of [
  ['behind', 0],
  ['ahead of', 40],
] as const) {
  test(`[A3] a cluster restored from a backup that is found ${where} the edge: its state is shown, and 410 told for the lost versions`, () =>
    withSiteHere(['--mirror', 'configmaps'], async (site) => {
      const backup = join(site.folder, 'backup')
      let cloud = site.client(site.cloud)
      const edge = site.client()
      for (const name of ['changed', 'deleted', 'kept']) await write(cloud, name, 'before')
      const before = await shown(cloud)
      await until(async () => (await shown(edge)) === before, 'the first sync')
      await site.cloud.end()
      cpSync(site.cloudFolder, backup, { recursive: true })
      await site.startCloud()

      cloud = site.client(site.cloud)
      for (let at = 0; at < 20; at++) await write(cloud, 'changed', `lost ${at}`)
      await write(cloud, 'ghost', 'lost')
      await cloud.ask('DELETE', `${configMaps}/deleted`)
      const lost = await shown(cloud)
      await until(async () => (await shown(edge)) === lost, 'the past that will be lost')
      const { metadata } = await edge.json<Listed>('GET', any)
      const lostVersion = Number(metadata.resourceVersion)

      await site.link.set('refuse')
      await site.untilCloudIs('unreachable')
      await site.cloud.end()
      rmSync(site.cloudFolder, { recursive: true })
      cpSync(backup, site.cloudFolder, { recursive: true })
      await site.startCloud()
      cloud = site.client(site.cloud)
      for (let at = 0; at < writes; at++) await write(cloud, 'other', `${at}`)
      await site.link.set('up')
      await until(async () => (await shown(edge)) === (await shown(cloud)), 'the state after the restore')

      // Beyond the lost past in any case: its versions are still nobody's.
      for (let at = 0; at < 40; at++) await write(cloud, 'later', `${at}`)
      await until(async () => (await shown(edge)) === (await shown(cloud)), 'the new past')
      for (const version of [lostVersion, lostVersion - 5]) {
        const watch = new Watch(edge, `${configMaps}?watch=1&resourceVersion=${version}`)
        await watch.until((frames) => frames.length > 0)
        assert.deepEqual(
          watch.frames.map(({ type, object }) => [type, (object as unknown as { code: number }).code]),
          [['ERROR', 410]],
        )
      }
      const now = await edge.json<Listed>('GET', any)
      const resumed = new Watch(edge, `${configMaps}?watch=1&resourceVersion=${now.metadata.resourceVersion}`)
      await write(cloud, 'later', 'the last')
      await resumed.until((frames) => frames.some(({ type }) => type === 'MODIFIED'))
      const text = (await edge.ask('GET', '/metrics')).body.toString()
      assert.match(text, /ake_mirror_silent_differences_total 0/)
    }))
}

/** The hub waits for its own watch before it asks, an edge before it dials again. */
const withinMs = 60_000

test('[L7] a cluster restored while no hub ran, with their state in it: the edge is told by its hub, and 410 for the lost versions', () =>
  withHubbedSite(async (site) => {
    const backup = join(site.folder, 'backup')
    site.state = 'secret:default/hub'
    await site.startHub('--trust-edges', '--drain', '1s')
    await site.go('hub', '--mirror', 'configmaps')
    const edge = site.client()
    const isInStep = async () => (await shown(edge)) === (await shown(site.client(site.cloud)))
    for (const name of ['changed', 'deleted', 'kept']) await write(site.client(site.cloud), name, 'before')
    await until(isInStep, 'the first sync', { withinMs })
    await site.cloud.end()
    cpSync(site.cloudFolder, backup, { recursive: true })
    await site.startCloud()
    for (let at = 0; at < 20; at++) await write(site.client(site.cloud), 'changed', `lost ${at}`)
    await write(site.client(site.cloud), 'ghost', 'lost')
    await until(isInStep, 'the past that will be lost', { withinMs })
    const { metadata } = await edge.json<Listed>('GET', any)
    const watch = new Watch(edge, `${configMaps}?watch=1&resourceVersion=${metadata.resourceVersion}`)

    await site.hub.end()
    await site.cloud.end()
    rmSync(site.cloudFolder, { recursive: true })
    cpSync(backup, site.cloudFolder, { recursive: true })
    await site.startCloud()
    await site.startHub('--trust-edges')
    site.link.lead({ host: '127.0.0.1', port: Number(new URL(site.hub.url).port) })
    await until(isInStep, 'the state after the restore', { withinMs })
    await watch.until((frames) => frames.length > 0)
    assert.deepEqual(
      watch.frames.map(({ type, object }) => [type, (object as unknown as { code: number }).code]),
      [['ERROR', 410]],
    )
  }))
