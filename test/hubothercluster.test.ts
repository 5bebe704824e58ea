/**
 * Another cluster behind the address that a hub knows: the hub ends, its supervisor starts it again, and the edge behind it, which
 * was told nothing but that, takes over the other cluster as a whole or serves on what it has. Two `ake serve` with one authority
 * are the clusters, hub and edge are processes.
 */
import assert from 'node:assert/strict'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Link, startLink } from '../conformance/link.ts'
import { until } from '../src/base/until.test-support.ts'
import { serveHere } from './edgeprocess.ts'
import { HubbedSite, type HubProcess, operate, startHub } from './hubprocess.ts'
import { Client, configMap, configMaps, type Serving, Watch } from './process.ts'

const any = `${configMaps}?resourceVersion=0`
const both = `${configMaps}/both?resourceVersion=0`
const secrets = '/api/v1/namespaces/default/secrets'
const secret = `${secrets}/both?resourceVersion=0`
const accounts = '/api/v1/namespaces/default/serviceaccounts'
const roleBindings = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings'
const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles'

type Named = { metadata: { name: string; uid: string; resourceVersion: string }; data: Record<string, string> }
type Listed = { metadata: { resourceVersion: string }; items: Named[] }
type Status = { cluster: { uid?: string; other?: string; changes: number } }
type Issued = { status: { token: string } }

/** As systemd's RestartSec or a kubelet's first wait. */
const restartAfterMs = 500
/** Half a minute long, by three callers in each of three sites: more often takes the processor from what they ask. */
const askEveryMs = 250
/** An edge looks three times at least, each 10 to 20 s after the one before. */
const believedMsMax = 90_000
/** It asks the hub at once then, and not after what it leaves a hub of another cluster alone for. */
const takenOverMsMax = 8_000
const otherAfter = ['--other-cluster-after', '1s']

/** What two clusters have under the same names, and what a caller may have there without a credential. */
const clusters = {
  first: { own: 'of-first', strangersMayRead: 'configmaps' },
  other: { own: 'of-other', strangersMayRead: 'secrets' },
} as const
type Which = keyof typeof clusters

class SupervisedSite extends HubbedSite {
  readonly otherFolder = join(this.folder, 'other')
  readonly stateFolder = join(this.folder, 'state')
  other!: Serving
  between!: Link
  /** How the hub ended, each time that it did. */
  readonly exits: (number | null)[] = []
  /** What the operator does before the hub is started again. */
  beforeRestart: () => Promise<void> = () => Promise.resolve()
  readonly tokens: { [which in Which]?: string } = {}
  #running: HubProcess | undefined
  readonly #askers: Asker[] = []
  #isOver = false
  #supervising: Promise<void> | undefined

  /** `grown`: the cluster that has seen more changes than the other. */
  async begin(grown: Which): Promise<void> {
    cpSync(join(this.cloudFolder, 'pki'), join(this.otherFolder, 'pki'), { recursive: true })
    this.other = await serveHere(this.otherFolder, undefined, this.cloudOptions)
    for (const which of ['first', 'other'] as const) await this.#fill(which, grown === which ? 60 : 0)
    this.between = await startLink({ target: { host: '127.0.0.1', port: this.cloud.port } })
    const started = await this.#startHub()
    await operate('issue', 'n1', '--state', this.stateFolder, '--out', this.credential)
    this.#supervising = this.#supervise(started)
    await this.startEdge('--mirror', 'configmaps', '--mirror', 'secrets', ...otherAfter)
    await this.untilCloudIs('reachable')
    await until(async () => (await this.names()) === namesOf('first'), 'the first sync')
  }

  serving(which: Which): Serving {
    return which === 'first' ? this.cloud : this.other
  }

  async #fill(which: Which, changes: number): Promise<void> {
    const client = this.client(this.serving(which))
    const { own, strangersMayRead } = clusters[which]
    for (const name of ['both', own]) await client.json('POST', configMaps, configMap(name, { value: own }))
    await client.json('POST', secrets, { metadata: { name: 'both' }, stringData: { value: own } })
    await client.json('POST', accounts, { metadata: { name: 'robot' } })
    this.tokens[which] = (await client.json<Issued>('POST', `${accounts}/robot/token`, {})).status.token
    const reads = [{ apiGroups: [''], resources: [strangersMayRead], verbs: ['get', 'list', 'watch'] }]
    await client.json('POST', roles, { metadata: { name: 'strangers' }, rules: reads })
    const bind = (kind: string, name: string, subject: object) =>
      client.json('POST', roleBindings, {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: kind === 'Role' ? name : 'edit' },
        subjects: [subject],
      })
    await bind('ClusterRole', 'robot', { kind: 'ServiceAccount', name: 'robot', namespace: 'default' })
    const stranger = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:anonymous' }
    await bind('Role', 'strangers', stranger)
    for (let at = 0; at < changes; at++)
      await client.json('PUT', `${configMaps}/${own}`, configMap(own, { value: own, at: `${at}` }))
  }

  readonly credential = join(this.folder, 'n1.pem')

  protected override upstream(): string[] {
    return ['--hub', `wss://127.0.0.1:${this.link.port}`, '--credential', this.credential]
  }

  async #startHub(): Promise<HubProcess> {
    const way = ['--kubeconfig', this.kubeconfig, '--server', this.between.url, '--probe-every', '200ms']
    const started = await startHub(['--state', this.stateFolder, ...way, '--trust-edges', ...otherAfter])
    this.#running = started
    this.link.lead({ host: '127.0.0.1', port: Number(new URL(started.url).port) })
    return started
  }

  async #supervise(started: HubProcess): Promise<void> {
    for (let running = started; ; running = await this.#startHub()) {
      const { code } = await running.ended
      if (this.#isOver) return
      this.exits.push(code)
      await pause(restartAfterMs)
      await this.beforeRestart()
      if (this.#isOver) return
    }
  }

  async leadTo(which: Which): Promise<void> {
    this.between.lead({ host: '127.0.0.1', port: this.serving(which).port })
    await this.between.set('reset')
    await this.between.set('up')
  }

  async names(client = this.administrator()): Promise<string> {
    const { status, body } = await client.ask('GET', any)
    if (status !== 200) return `${status}`
    const { items } = JSON.parse(body.toString()) as Listed
    return items
      .map(({ metadata, data }) => `${metadata.name}=${data.value ?? ''}`)
      .sort()
      .join()
  }

  asker(token?: string): Asker {
    const asker = new Asker(this.edge, token)
    this.#askers.push(asker)
    return asker
  }

  /** Everything is asked for by everyone until it is ended: then it says which lists there were. */
  probe(): { end(): Promise<Set<string>> } {
    const lists = new Set<string>()
    let isOver = false
    const client = this.client()
    const names = () => this.names(client)
    const probing = (async () => {
      while (!isOver && !this.#isOver) {
        lists.add(await names())
        for (const asker of this.#askers) for (const path of [both, secret]) await asker.ask(path)
        await pause(askEveryMs)
      }
    })()
    // What it met is told by its end; where the test has failed before that it is the test's own end.
    probing.catch(() => undefined)
    return {
      async end() {
        isOver = true
        await probing
        // A round reads its list first: what its other questions were shown may have come behind that.
        lists.add(await names())
        return lists
      },
    }
  }

  status(): Promise<Status> {
    return this.administrator().json('GET', '/ake/status')
  }

  async uidOf(which: Which): Promise<string> {
    const path = '/api/v1/namespaces/kube-system'
    return (await this.client(this.serving(which)).json<Named>('GET', path)).metadata.uid
  }

  override async end(): Promise<void> {
    this.#isOver = true
    for (const asker of this.#askers) asker.close()
    this.#running?.child.kill('SIGKILL')
    await this.#supervising
    this.#running?.child.kill('SIGKILL')
    await this.other?.end('SIGKILL')
    await super.end()
    await this.between?.close()
  }
}

const namesOf = (which: Which) => ['both', clusters[which].own].map((name) => `${name}=${clusters[which].own}`).join()

/** One who asks again and again, without a certificate, and what it was shown so far: statuses, and values where there were any. */
class Asker {
  readonly shown = new Set<string>()
  readonly now = new Map<string, string>()
  readonly #edge: Serving
  readonly #headers: Record<string, string>
  #client: Client | undefined

  constructor(edge: Serving, token?: string) {
    this.#edge = edge
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  async ask(path: string): Promise<string> {
    this.#client ??= new Client({
      url: this.#edge.url,
      credentials: { ca: this.#edge.credentials.ca } as Serving['credentials'],
    })
    const { status, body } = await this.#client.ask('GET', path, undefined, this.#headers)
    // A stranger who is refused has to begin anew.
    if (status === 401 || status === 403) this.close()
    const { value = '' } = status === 200 ? ((JSON.parse(body.toString()) as Named).data ?? {}) : {}
    const text = path.startsWith(secrets) ? Buffer.from(value, 'base64').toString() : value
    const shown = status === 200 ? text : `${status}`
    this.now.set(path, shown)
    this.shown.add(`${path.startsWith(secrets) ? 'secret' : 'configmap'} ${shown}`)
    return shown
  }

  /** Asked again where it is to come again: on a busy machine the first review of a caller takes its time. */
  async told(path: string): Promise<string> {
    const early = ['429', '503']
    return await until(async () => [await this.ask(path)].find((shown) => !early.includes(shown)), path)
  }

  close(): void {
    this.#client?.close()
    this.#client = undefined
  }
}

/** What a watch from a version gets until it ends. */
async function watched(client: Client, version: string): Promise<unknown[]> {
  const frames: unknown[] = []
  const watch = new Watch(client, `${configMaps}?watch=1&resourceVersion=${version}`, ({ type, object }) => {
    frames.push(type === 'ERROR' ? object.code : type)
  })
  await watch.ended
  return frames
}

async function withSupervised(grown: Which, body: (site: SupervisedSite) => Promise<void>): Promise<void> {
  const site = new SupervisedSite()
  site.isEdgeProcess = true
  site.cloudOptions = ['--authorization', 'rbac']
  try {
    await site.startCloud()
    await site.begin(grown)
    await body(site)
  } finally {
    await site.end()
  }
}

const cases = [
  { how: 'lower versions, and the hub starts on the state that it had', grown: 'first', isReplaced: false },
  { how: 'higher versions, and the hub starts on the state that it had', grown: 'other', isReplaced: false },
  {
    how: 'lower versions, and a state of its own, with another credential for the edge',
    grown: 'first',
    isReplaced: true,
  },
] as const

describe('another cluster behind a hub', { concurrency: 3 }, () => {
  for (const { how, grown, isReplaced } of cases) {
    test(`[A10] with ${how}: the edge shows one or the other, each client gets one 410, and nobody has by the rights of one what is of the other`, () =>
      withSupervised(grown, async (site) => {
        if (isReplaced)
          site.beforeRestart = async () => {
            rmSync(site.stateFolder, { recursive: true, force: true })
            await operate('issue', 'n1', '--state', site.stateFolder, '--out', site.credential, '--force')
          }
        const client = site.client()
        const { metadata } = await client.json<Listed>('GET', any)
        const watching = watched(client, metadata.resourceVersion)
        const stranger = site.asker()
        const [ofFirst, ofOther] = [site.asker(site.tokens.first), site.asker(site.tokens.other)]
        assert.equal(await stranger.told(both), 'of-first')
        assert.equal(await stranger.told(secret), '403')
        assert.equal(await ofFirst.told(secret), 'of-first')
        assert.equal(await ofOther.told(secret), '401')

        const probing = site.probe()
        await site.leadTo('other')
        await until(async () => (await site.status()).cluster.changes === 1, 'the change', {
          withinMs: believedMsMax,
          everyMs: askEveryMs,
        })
        assert.deepEqual(site.exits, [1], 'the hub has ended once, for another cluster')
        assert.deepEqual(await watching, [410])
        await until(async () => (await site.names()) === namesOf('other'), 'the copy of the other', {
          withinMs: takenOverMsMax,
        })
        await until(() => ofOther.now.get(secret) === 'of-other', 'a caller of the other')
        await until(() => stranger.now.get(secret) === 'of-other', 'a right of the other')
        await until(() => stranger.now.get(both) === '403', 'no right of the first')
        await until(() => ofFirst.now.get(secret) === '401', 'no caller of the first')
        const lists = await probing.end()

        lists.delete('503')
        assert.deepEqual([...lists].sort(), [namesOf('first'), namesOf('other')].sort(), 'one or the other')
        const shownTo = (asker: Asker) => [...asker.shown].filter((one) => / of-/.test(one)).sort()
        assert.deepEqual(shownTo(stranger), ['configmap of-first', 'secret of-other'])
        assert.deepEqual(shownTo(ofFirst), ['configmap of-first', 'secret of-first'])
        assert.deepEqual(shownTo(ofOther), ['configmap of-other', 'secret of-other'])

        const { cluster } = await site.status()
        assert.equal(cluster.uid, await site.uidOf('other'))
        assert.deepEqual(await watched(client, metadata.resourceVersion), [410], 'a client that comes back later')
        const direct = site.client(site.other)
        const theirs = await direct.json<Named>('GET', `${configMaps}/both`)
        assert.equal((await client.json<Named>('GET', both)).metadata.uid, theirs.metadata.uid)
        // One 410 is enough: from here on it goes on with the new cluster, past the old one's versions too.
        const { metadata: now } = await client.json<Listed>('GET', any)
        const going = new Watch(client, `${configMaps}?watch=1&resourceVersion=${now.resourceVersion}`)
        await going.opened()
        await direct.json('POST', configMaps, configMap('later', {}))
        const isBeyond = async () => {
          await direct.json('PUT', `${configMaps}/later`, configMap('later', { at: String(Date.now()) }))
          const { metadata: at } = await client.json<Listed>('GET', any)
          return Number(at.resourceVersion) > Number(metadata.resourceVersion) + 1
        }
        await until(isBeyond, 'the new cluster grows')
        await going.until((frames) =>
          frames.some(({ object }) => Number(object.metadata.resourceVersion) > Number(metadata.resourceVersion)),
        )
        assert.equal(going.frames[0]?.type, 'ADDED')
        assert.deepEqual([...new Set(going.frames.map(({ object }) => object.metadata.name))], ['later'])
        assert.equal(going.stream.closed, false)
        assert.deepEqual(
          await watched(client, metadata.resourceVersion),
          [410],
          'also where the new one has come further',
        )
        assert.deepEqual(site.exits, [1])
        assert.equal((await site.status()).cluster.changes, 1)
      }))
  }
})
