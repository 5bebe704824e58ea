/**
 * Another cluster at the API server's address, or in the kubeconfig: nothing of it is mixed with what was mirrored, nothing of
 * the old one outlives it, and what is only a moment's mistake changes nothing. Two `ake serve` with one authority are the
 * clusters: only their uids differ.
 */
import assert from 'node:assert/strict'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../src/base/until.test-support.ts'
import { Site, start } from './edgeprocess.ts'
import { type Client, configMap, configMaps, type Frame, type Serving, Watch } from './process.ts'

const any = `${configMaps}?resourceVersion=0`
const options = ['--mirror', 'configmaps', '--other-cluster-after', '1s']

type Named = { metadata: { name: string; uid: string; resourceVersion: string } }
type Listed = { metadata: { resourceVersion: string }; items: Named[] }

/** A site whose line can lead to a second cluster, whose versions are ahead of the first one's by `ahead` or behind. */
class TwoClusters extends Site {
  readonly otherFolder = join(this.folder, 'other')
  other!: Serving

  /** Both hold `both`, each one of its own. */
  async begin(made: { first: number; other: number }): Promise<void> {
    await this.startCloud()
    cpSync(join(this.cloudFolder, 'pki'), join(this.otherFolder, 'pki'), { recursive: true })
    this.other = await start(this.otherFolder, ['serve', '--listen', '127.0.0.1:0'])
    for (const [serving, own, count] of [
      [this.cloud, 'of-first', made.first],
      [this.other, 'of-other', made.other],
    ] as const) {
      const client = this.client(serving)
      for (const name of ['both', own]) await client.ask('POST', configMaps, configMap(name, { value: own }))
      for (let at = 0; at < count; at++)
        await client.ask('PUT', `${configMaps}/${own}`, configMap(own, { at: `${at}` }))
    }
    await this.startEdge(...options)
    await until(async () => (await this.names()).includes('of-first'), 'the first sync')
  }

  async leadTo(...servings: Serving[]): Promise<void> {
    this.link.lead(...servings.map(({ port }) => ({ host: '127.0.0.1', port })))
    await this.link.set('reset')
    await this.link.set('up')
  }

  async names(client: Client = this.client()): Promise<string[]> {
    const { status, body } = await client.ask('GET', any)
    return status === 200 ? (JSON.parse(body.toString()) as Listed).items.map(({ metadata }) => metadata.name) : []
  }

  async status(): Promise<{ cluster: { uid?: string; other?: string; changes: number }; upstream: { state: string } }> {
    return this.client().json('GET', '/ake/status')
  }

  async uidOf(serving: Serving): Promise<string> {
    return (await this.client(serving).json<Named>('GET', '/api/v1/namespaces/kube-system')).metadata.uid
  }

  override async end(): Promise<void> {
    await this.other?.end('SIGKILL')
    await super.end()
  }
}

async function withClusters(
  made: { first: number; other: number },
  body: (site: TwoClusters) => Promise<void>,
): Promise<void> {
  const site = new TwoClusters()
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

for (const [how, made] of versions) {
  test(`[A10] another cluster at the same address, with ${how} versions: a new copy, and one 410 for each watch`, () =>
    withClusters(made, async (site) => {
      const client = site.client()
      const first = await client.json<Listed>('GET', any)
      const old = first.metadata.resourceVersion
      const frames: Frame[] = []
      const watch = new Watch(
        client,
        `${configMaps}?watch=1&resourceVersion=${old}`,
        (frame) => void frames.push(frame),
      )
      await watch.opened()
      await site.leadTo(site.other)
      await until(async () => (await site.status()).cluster.changes === 1, 'the change')
      await watch.ended
      assert.deepEqual(
        frames.map(({ type, object }) => [type, (object as unknown as { code: number }).code]),
        [['ERROR', 410]],
      )
      await until(async () => (await site.names()).includes('of-other'), 'the copy of the other')
      assert.deepEqual((await site.names()).sort(), ['both', 'of-other'], 'no ghosts')
      const theirs = await site.client(site.other).json<Named>('GET', `${configMaps}/both`)
      const shown = await client.json<Named>('GET', `${configMaps}/both?resourceVersion=0`)
      assert.equal(shown.metadata.uid, theirs.metadata.uid)
      assert.equal((await site.status()).cluster.uid, await site.uidOf(site.other))
      const late: Frame[] = []
      const resumed = new Watch(
        client,
        `${configMaps}?watch=1&resourceVersion=${old}`,
        (frame) => void late.push(frame),
      )
      await resumed.ended
      assert.deepEqual(
        late.map(({ type, object }) => [type, (object as unknown as { code: number }).code]),
        [['ERROR', 410]],
      )
    }))
}
