/**
 * Another cluster at the API server's address, or in the kubeconfig: nothing of it is mixed with what was mirrored, nothing of
 * the old one outlives it, and what is only a moment's mistake changes nothing. Two `ake serve` with one authority are the
 * clusters: only their uids differ.
 */

import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { copyFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startLink } from '../conformance/link.ts'
import { seeded } from '../src/base/seeded.test-support.ts'
import { until } from '../src/base/until.test-support.ts'
import { Site, serveHere } from './edgeprocess.ts'
import { type Client, configMap, configMaps, type Serving, seedOfRun, Watch } from './process.ts'

const any = `${configMaps}?resourceVersion=0`
const optionsOf = (after: string) => ['--mirror', 'configmaps', '--other-cluster-after', after]

type Named = { metadata: { name: string; uid: string; resourceVersion: string } }
/** So many changes each cluster has seen; after which time another is believed in. */
type Made = { first: number; other: number; after?: string; isEdgeProcess?: boolean }
type Listed = { metadata: { resourceVersion: string }; items: Named[] }

/** A site whose line can lead to a second cluster, whose versions are ahead of the first one's by `ahead` or behind. */
class TwoClusters extends Site {
  readonly otherFolder = join(this.folder, 'other')
  other!: Serving

  /** Both hold `both`, each one of its own. */
  async begin(made: Made): Promise<void> {
    await this.startCloud()
    cpSync(join(this.cloudFolder, 'pki'), join(this.otherFolder, 'pki'), { recursive: true })
    this.other = await serveHere(this.otherFolder)
    for (const [serving, own, count] of [
      [this.cloud, 'of-first', made.first],
      [this.other, 'of-other', made.other],
    ] as const) {
      const client = this.client(serving)
      for (const name of ['both', own]) await client.ask('POST', configMaps, configMap(name, { value: own }))
      for (let at = 0; at < count; at++)
        await client.ask('PUT', `${configMaps}/${own}`, configMap(own, { at: `${at}` }))
    }
    await this.startEdge(...optionsOf(made.after ?? '1s'))
    await until(async () => (await this.names()).includes('of-first'), 'the first sync')
  }

  /** Without `--server` the kubeconfig says where the API server is. */
  usesKubeconfig = false

  protected override upstream(): string[] {
    return this.usesKubeconfig ? ['--kubeconfig', join(this.folder, 'pointed')] : super.upstream()
  }

  async point(serving: Serving): Promise<void> {
    const folder = serving === this.cloud ? this.cloudFolder : this.otherFolder
    await copyFile(join(folder, 'admin.kubeconfig'), join(this.folder, 'next'))
    await rename(join(this.folder, 'next'), join(this.folder, 'pointed'))
  }

  async leadTo(...servings: Serving[]): Promise<void> {
    this.link.lead(...servings.map(({ port }) => ({ host: '127.0.0.1', port })))
    await this.link.set('reset')
    await this.link.set('up')
  }

  async names(): Promise<string[]> {
    const { status, body } = await this.administrator().ask('GET', any)
    return status === 200 ? (JSON.parse(body.toString()) as Listed).items.map(({ metadata }) => metadata.name) : []
  }

  async status(): Promise<{ cluster: { uid?: string; other?: string; changes: number }; upstream: { state: string } }> {
    return this.administrator().json('GET', '/ake/status')
  }

  async uidOf(serving: Serving): Promise<string> {
    return (await this.client(serving).json<Named>('GET', '/api/v1/namespaces/kube-system')).metadata.uid
  }

  override async end(): Promise<void> {
    await this.other?.end('SIGKILL')
    await super.end()
  }
}

async function withClusters(made: Made, body: (site: TwoClusters) => Promise<void>): Promise<void> {
  const site = new TwoClusters()
  site.isEdgeProcess = made.isEdgeProcess ?? false
  try {
    await site.begin(made)
    await body(site)
  } finally {
    await site.end()
  }
}

const versions = [
  ['lower', { first: 40, other: 0 }],
  ['higher', { first: 0, other: 40 }],
] as const

/** What a watch from a version gets until it ends. */
async function watched(client: Client, version: string): Promise<unknown[]> {
  const frames: unknown[] = []
  const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${version}`, ({ type, object }) => {
    frames.push(type === 'ERROR' ? (object as unknown as { code: number }).code : type)
  })
  await watch.ended
  return frames
}

describe('clusters of its own each', { concurrency: 3 }, () => {
  for (const [how, made] of versions) {
    test(`[A10] another cluster at the same address, with ${how} versions: a new copy, and one 410 for each watch`, () =>
      withClusters(made, async (site) => {
        const client = site.client()
        const { metadata } = await client.json<Listed>('GET', any)
        const watching = watched(client, metadata.resourceVersion)
        const prober = site.client()
        const statuses = new Set<number>()
        const probing = new AbortController()
        const probes = (async () => {
          while (!probing.signal.aborted) {
            statuses.add((await prober.ask('GET', any)).status)
            await pause(5)
          }
        })()
        await site.leadTo(site.other)
        await until(async () => (await site.status()).cluster.changes === 1, 'the change')
        assert.deepEqual(await watching, [410])
        await until(async () => (await site.names()).includes('of-other'), 'the copy of the other')
        probing.abort()
        await probes
        assert.deepEqual([...statuses], [200], 'nobody is sent away meanwhile')
        assert.deepEqual((await site.names()).sort(), ['both', 'of-other'], 'no ghosts')
        const theirs = await site.client(site.other).json<Named>('GET', `${configMaps}/both`)
        const shown = await client.json<Named>('GET', `${configMaps}/both?resourceVersion=0`)
        assert.equal(shown.metadata.uid, theirs.metadata.uid)
        assert.equal((await site.status()).cluster.uid, await site.uidOf(site.other))
        assert.deepEqual(await watched(client, metadata.resourceVersion), [410], 'a client that comes back later')
        // A client of the new cluster resumes, whatever the old one's versions were.
        const { metadata: now } = await client.json<Listed>('GET', any)
        const resumed = Promise.withResolvers<string>()
        const going = new Watch(client, `${configMaps}?watch=1&resourceVersion=${now.resourceVersion}`, (frame) => {
          resumed.resolve(`${frame.type} ${frame.object.metadata.name}`)
        })
        await going.opened()
        const direct = site.client(site.other)
        await direct.ask('POST', configMaps, configMap('later', {}))
        assert.equal(await resumed.promise, 'ADDED later')
        // A version of the old one stays gone when the new one has grown beyond it.
        const isBeyond = async () => {
          await direct.ask('PUT', `${configMaps}/later`, configMap('later', { at: String(Date.now()) }))
          const { metadata: at } = await client.json<Listed>('GET', any)
          return Number(at.resourceVersion) > Number(metadata.resourceVersion) + 1
        }
        await until(isBeyond, 'the new cluster grows')
        assert.deepEqual(await watched(client, metadata.resourceVersion), [410])
        // Of a resource that nothing was mirrored of: its first sync is not taken at a version of the other cluster.
        const pods = new Watch(
          client,
          `/api/v1/pods?watch=1&resourceVersion=${metadata.resourceVersion}`,
          ({ object }) => {
            assert.equal((object as unknown as { code: number }).code, 410)
          },
        )
        await pods.ended
      }))
  }

  test('[A10] a kubeconfig that is re-pointed, running or stopped, leads to a new copy, and back', () =>
    withClusters({ first: 5, other: 0 }, async (site) => {
      site.usesKubeconfig = true
      await site.point(site.cloud)
      await site.edge.end()
      await site.startEdge()
      await site.point(site.other)
      await until(async () => (await site.names()).includes('of-other'), 'while it ran')
      assert.deepEqual((await site.names()).sort(), ['both', 'of-other'])
      await site.edge.end()
      await site.point(site.cloud)
      await site.startEdge()
      // Until the other one is believed in, what is shown is the known one's, as while the cloud is away.
      const seen = new Set<string>()
      await until(async () => {
        const names = (await site.names()).sort().join()
        seen.add(names)
        return names === 'both,of-first'
      }, 'while it was stopped')
      assert.ok(!seen.has('both,of-first,of-other'), 'never both')
      assert.equal((await site.status()).cluster.uid, await site.uidOf(site.cloud))
    }))

  test('[A10] a moment at another cluster changes nothing, and a balancer before both never mixes them', () =>
    withClusters({ first: 5, other: 30, after: '10s' }, async (site) => {
      const client = site.client()
      const { metadata } = await client.json<Listed>('GET', any)
      const frames: string[] = []
      const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${metadata.resourceVersion}`, (frame) => {
        frames.push(`${frame.type} ${frame.object.metadata.name}`)
      })
      await watch.opened()
      await site.leadTo(site.other)
      await until(async () => (await site.status()).cluster.other !== undefined, 'the other one is seen')
      assert.equal((await site.status()).upstream.state, 'unreachable')
      await site.leadTo(site.other, site.cloud)
      const [ofFirst, ofOther] = [site.client(site.cloud), site.client(site.other)]
      for (let round = 0; round < 5; round++) {
        await ofOther.ask('POST', configMaps, configMap(`strange-${round}`, {}))
        await ofFirst.ask('POST', configMaps, configMap(`own-${round}`, {}))
        await until(async () => frames.includes(`ADDED own-${round}`), `round ${round}`, { withinMs: 60_000 })
        await site.leadTo(...(round % 2 === 0 ? [site.cloud, site.other] : [site.other, site.cloud, site.other]))
      }
      assert.equal((await site.status()).cluster.changes, 0)
      assert.deepEqual((await site.names()).filter((name) => !name.startsWith('own-')).sort(), ['both', 'of-first'])
      assert.equal(watch.stream.closed, false)
      assert.deepEqual(
        frames.filter((frame) => !frame.startsWith('ADDED own-')),
        [],
      )
    }))

  test('[A10] of two addresses the one of another cluster is refused and told, the right one used', () =>
    withClusters({ first: 5, other: 5 }, async (site) => {
      const wrong = await startLink({ target: { host: '127.0.0.1', port: site.other.port } })
      try {
        await site.edge.end()
        await site.startEdge(...optionsOf('1s'), '--server', wrong.url)
        await site.untilCloudIs('reachable')
        await site.link.set('refuse')
        await site.untilCloudIs('unreachable')
        await until(async () => (await site.status()).cluster.other !== undefined, 'the wrong one is seen')
        await pause(2_500)
        assert.equal((await site.status()).cluster.changes, 0, 'an address that is silent has not said that it is gone')
        await site.link.set('up')
        await site.untilCloudIs('reachable')
        assert.deepEqual((await site.names()).sort(), ['both', 'of-first'])
      } finally {
        await wrong.close()
      }
    }))

  test('[A10] killed at any instant of the change it is of the old cluster or of the new one, never of both', () =>
    withClusters({ first: 5, other: 40, isEdgeProcess: true }, async (site) => {
      const random = seeded(seedOfRun)
      const clusters = [site.cloud, site.other] as const
      const uids = [await site.uidOf(site.cloud), await site.uidOf(site.other)]
      const sets = ['both,of-first', 'both,of-other']
      for (let life = 0; life < 4; life++) {
        const { cluster } = await site.status()
        const from = uids.indexOf(cluster.uid ?? '')
        await site.leadTo(clusters[1 - from] as Serving)
        await pause(900 + random(900))
        await site.edge.end('SIGKILL')
        await site.link.set('refuse')
        await site.startEdge()
        const now = uids.indexOf((await site.status()).cluster.uid ?? '')
        const names = (await site.names()).sort().join()
        // A copy that was begun anew may not have come far: then nothing is shown, which is 503 and no list.
        assert.ok(names === sets[now] || (now !== from && names === ''), `seed ${seedOfRun}: ${names} of ${sets[now]}`)
        await site.link.set('up')
        await site.untilCloudIs('reachable')
        const isWhole = async () => {
          const { cluster: known } = await site.status()
          return (await site.names()).sort().join() === sets[uids.indexOf(known.uid ?? '')]
        }
        await until(isWhole, `seed ${seedOfRun}: life ${life}`, { withinMs: 30_000 })
      }
    }))
})
