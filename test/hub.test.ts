/** `ake hub` over an API server, and edges before it by the parts of which an edge is made: a whole hub, as a process or here. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { HubStatusDocument } from '../src/app/hub/status.ts'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { until } from '../src/base/until.test-support.ts'
import { planFor } from '../src/cache/filter.ts'
import { interestOf } from '../src/mirror/interest.ts'
import { parseCredential } from '../src/pki/credentialfile.ts'
import { dialTcp } from '../src/upstream/dial.ts'
import type { Followed } from '../src/upstream/follow/follow.ts'
import { EdgeLink } from '../src/upstream/linked/edgelink.ts'
import { followLinked } from '../src/upstream/linked/followlinked.ts'
import { Hubs } from '../src/upstream/linked/hubs.ts'
import { LinkedUpstream } from '../src/upstream/linked/linkedupstream.ts'
import { readWhole } from '../src/upstream/whole.ts'
import { withFolderHere } from './edgeprocess.ts'
import { issue, startHub } from './hubprocess.ts'
import { Client, runAke, type Serving } from './process.ts'

/** Its copy is of no known cluster. */
const whoever = { known: () => ({ cluster: '', epoch: 0 }), admit: () => Promise.resolve(undefined) }

class Edge {
  readonly link: EdgeLink
  readonly upstream: LinkedUpstream
  readonly ending = new AbortController()
  readonly #running: Promise<void>
  readonly #epochs = new Map<string, number>()
  readonly objects = new Map<string, string>()

  constructor(name: string, file: string, addresses: readonly string[]) {
    const credential = {
      ...{ current: parseCredential(readFileSync(file, 'utf8'), file), user: `system:node:${name}` },
      ...{ complaints: [], life: { use: 'edge' } as const, observe: () => () => {}, run: () => Promise.resolve() },
    }
    const [clock, log] = [systemClock, silentLog]
    const urls = addresses.map((address) => new URL(address))
    const hubs = new Hubs({ addresses: urls, credential, dial: dialTcp(), clock, log, now: Date.now })
    this.link = new EdgeLink({ hubs, edge: name, release: '1', ...whoever, clock, log, random: () => 0 })
    this.upstream = new LinkedUpstream({ link: this.link, addresses: urls, credential, userAgent: 'test', clock, log })
    this.#running = this.upstream.run(this.ending.signal)
  }

  /** Holds what a ConfigMap of the default namespace says, by its name, until the link ends. */
  follow(): Promise<void> {
    const limits = { objects: 1_000, bytes: 1 << 20 }
    const epochs = {
      of: (interest: string) => this.#epochs.get(interest),
      reached: (interest: string, epoch: number) => void this.#epochs.set(interest, epoch),
    }
    const { link, upstream } = this
    const nameOf = (scope: Parameters<typeof interestOf>[0]) => interestOf(scope).name
    const open = followLinked({ link, upstream, epochs, nameOf, limits, clock: systemClock })
    const scope = interestOf({ group: '', version: 'v1', resource: 'configmaps', namespace: 'default' })
    const plan = planFor([{}])
    const room = () => 1 << 20
    const { follow } = open({ scope, custom: false, kind: 'ConfigMap', room, known: () => undefined, plan: () => plan })
    return (async () => {
      const from = { held: undefined, start: 'anew', check: false } as const
      for await (const step of follow(from, this.ending.signal)) this.#take(step)
    })().catch(() => {})
  }

  #take(step: Followed): void {
    if (step.kind === 'snapshot') for (const { name, bytes } of step.items) this.objects.set(name, bytes.toString())
    if (step.kind !== 'changes') return
    for (const change of step.changes) {
      if (change.type === 'put') this.objects.set(change.item.name, change.item.bytes.toString())
      else if (change.type === 'remove') this.objects.delete(change.key.replace('default/', ''))
    }
  }

  async end(): Promise<void> {
    this.ending.abort()
    await this.#running
  }
}

async function withCloud(body: (parts: { client: Client; args: string[]; folder: string }) => Promise<void>) {
  await withFolderHere(async (data, serve) => {
    const serving: Serving = await serve()
    const folder = mkdtempSync(join(tmpdir(), 'ake-hub-'))
    const client = new Client(serving)
    try {
      await body({ client, folder, args: ['--kubeconfig', join(data, 'admin.kubeconfig')] })
    } finally {
      client.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })
}

const configMap = (name: string, value: string) => ({ metadata: { name }, data: { value } })
const configMaps = '/api/v1/namespaces/default/configmaps'

test('a hub tells an edge of objects and changes, passes its requests on, tells how it fares, and moves it before it ends', () =>
  withCloud(async ({ client, args, folder }) => {
    const state = ['--state', join(folder, 'state')]
    await client.json('POST', configMaps, configMap('one', '1'))
    const hub = await startHub([...args, ...state, '--trust-edges', '--drain', '20s'])
    const edge = new Edge('n1', await issue('n1', folder, state), [hub.url])
    try {
      await until(() => edge.link.current !== undefined, 'linked')
      const { uid } = (await client.json<{ metadata: { uid: string } }>('GET', '/api/v1/namespaces/kube-system'))
        .metadata
      assert.equal(edge.link.current?.welcome?.cluster, uid)
      assert.ok((edge.link.current?.epoch ?? 0) > 1_700_000_000)
      const followed = edge.follow()
      await until(() => edge.objects.has('one'), 'the snapshot')
      await client.json('POST', configMaps, configMap('two', '2'))
      await client.ask('DELETE', `${configMaps}/one`)
      await until(() => edge.objects.has('two') && !edge.objects.has('one'), 'the changes')

      const answer = await edge.upstream.ask({
        method: 'GET',
        path: `${configMaps}/two`,
        identity: { kind: 'edge' },
        passedOn: true,
        headers: { accept: 'application/json' },
      })
      assert.equal(answer.status, 200)
      assert.match((await readWhole(answer, 1 << 16)).toString(), /"value":"2"/)

      const text = async (path: string) => await (await fetch(`${hub.health}${path}`)).text()
      assert.equal(await text('/livez'), 'ok')
      assert.equal(await text('/readyz'), 'ok')
      assert.equal(await text('/api'), '404 page not found\n')
      const metrics = await text('/metrics')
      for (const line of [
        /^ake_hub_links 1$/m,
        /^ake_hub_edges\{state="open"\} 1$/m,
        /^ake_hub_handshakes_total\{kind="full"\} 1$/m,
        /^ake_hub_forwarded_total\{result="answered"\} [1-9]/m,
        /^ake_hub_sources\{readers="some"\} [1-9]/m,
        /^ake_hub_sent_bytes_total [1-9]/m,
        /^ake_hub_events_total [1-9]/m,
        /^ake_hub_silent_differences_total 0$/m,
      ])
        assert.match(metrics, line)
      const status = JSON.parse(await text('/ake/status')) as HubStatusDocument
      assert.deepEqual([status.open, status.cluster?.uid, status.trustsEdges], [true, uid, true])
      assert.deepEqual(
        status.edges.map(({ name, release, state: is, interests }) => [name, release, is, interests]),
        [['n1', '1', 'open', 1]],
      )
      assert.ok(status.resources.some(({ name, objects }) => name === 'v1/configmaps@default' && objects > 0))

      hub.child.kill('SIGTERM')
      await until(async () => (await fetch(`${hub.health}/readyz`).catch(() => undefined))?.status !== 200, 'unready')
      await followed
      const { code, stderr } = await hub.ended
      assert.equal(code, 0)
      assert.match(stderr, /hub\.trusts/)
      assert.match(stderr, /hub\.drained.*left=0/)
      // One that moves in order is no news.
      assert.doesNotMatch(stderr, /edge\.left/)
    } finally {
      await edge.end()
      hub.child.kill('SIGKILL')
    }
  }))

test('an edge that is not trusted has what its node may, goes on at another hub of the same Secret, and that one resumes its session', () =>
  withCloud(async ({ client, args, folder }) => {
    const state = [...args, '--state', 'secret:default/hub']
    const [first, second] = await Promise.all([startHub(state), startHub(state)])
    const edge = new Edge('n1', await issue('n1', folder, state), [first.url, second.url])
    try {
      await until(() => edge.link.current !== undefined, 'linked')
      const epoch = edge.link.current?.epoch
      await edge.follow()
      assert.equal(edge.objects.size, 0)
      const asked = { method: 'GET', path: configMaps } as const
      const administrator = await edge.upstream.ask({ ...asked, identity: { kind: 'edge' }, passedOn: true })
      assert.equal(administrator.status, 403)
      const welcomed = edge.link.current
      first.child.kill('SIGTERM')
      await until(() => edge.link.current !== undefined && edge.link.current !== welcomed, 'moved')
      assert.equal(edge.link.address, new URL(second.url).href)
      assert.equal(edge.link.current?.epoch, epoch)
      const figures = await (await fetch(`${second.health}/metrics`)).text()
      assert.match(figures, /^ake_hub_handshakes_total\{kind="resumed"\} 1$/m)
      const { code, stderr } = await first.ended
      assert.equal(code, 0, stderr)

      // What was put back while no hub ran is told by an operator; a hub that runs takes it over.
      const told = await runAke(['hub', 'restored', ...state]).ended
      assert.equal(told.code, 0, told.stderr)
      const { data } = await client.json<{ data: Record<string, string> }>(
        'GET',
        '/api/v1/namespaces/default/secrets/hub',
      )
      assert.ok(Number(Buffer.from(data.epoch ?? '', 'base64').toString()) > (epoch ?? 0))
    } finally {
      await edge.end()
      for (const { child } of [first, second]) child.kill('SIGKILL')
    }
  }))

test('[L7] a cluster that was put back has a new epoch, also at a hub that did not run meanwhile; its edge holds what there is now', () =>
  withFolderHere(async (data, serve) => {
    const folder = mkdtempSync(join(tmpdir(), 'ake-hub-'))
    const backup = join(folder, 'backup')
    const state = ['--state', join(folder, 'state')]
    const args = [...state, '--kubeconfig', join(data, 'admin.kubeconfig'), '--trust-edges', '--probe-every', '200ms']
    let serving = await serve()
    const listen = ['--listen', `127.0.0.1:${serving.port}`]
    const putBack = async () => {
      await serving.end()
      rmSync(data, { recursive: true })
      cpSync(backup, data, { recursive: true })
      serving = await serve(...listen)
    }
    const client = async (name: string) => {
      const one = new Client(serving)
      await one.json('POST', configMaps, configMap(name, '1'))
      one.close()
    }
    await client('kept')
    await serving.end()
    cpSync(data, backup, { recursive: true })
    serving = await serve(...listen)
    let hub = await startHub(args)
    const edge = new Edge('n1', await issue('n1', folder, state), [hub.url])
    try {
      await until(() => edge.link.current !== undefined, 'linked')
      const first = edge.link.current?.epoch ?? 0
      for (let at = 0; at < 5; at++) await client(`lost-${at}`)
      void edge.follow()
      await until(() => edge.objects.size >= 6, 'the past that will be lost')
      await putBack()
      await until(() => (edge.link.current?.epoch ?? 0) > first, 'the new epoch')
      edge.objects.clear()
      await until(async () => {
        await Promise.race([edge.follow(), new Promise((resolve) => setTimeout(resolve, 200))])
        return edge.objects.has('kept')
      }, 'the new past')
      assert.ok(![...edge.objects.keys()].some((name) => name.startsWith('lost')))
      const second = edge.link.current?.epoch ?? 0

      for (let at = 0; at < 5; at++) await client(`again-${at}`)
      await until(() => edge.objects.has('again-4'), 'more of it')
      hub.child.kill('SIGTERM')
      await hub.ended
      await putBack()
      hub = await startHub(args)
      const { cluster } = (await (await fetch(`${hub.health}/ake/status`)).json()) as HubStatusDocument
      assert.ok((cluster?.epoch ?? 0) > second)
    } finally {
      await edge.end()
      hub.child.kill('SIGKILL')
      await hub.ended
      rmSync(folder, { recursive: true, force: true })
    }
  }))

test('a hub whose API server is another cluster now ends with a sentence, so that it begins anew', () =>
  withFolderHere(async (data, serve) => {
    const serving = await serve()
    const args = ['--state', join(data, 'hub'), '--kubeconfig', join(data, 'admin.kubeconfig')]
    const hub = await startHub([...args, '--other-cluster-after', '1s', '--probe-every', '200ms'])
    await serving.end()
    // Another one in its place, by the same authority.
    for (const file of ['log', 'ake.db', 'ake.db-wal', 'ake.db-shm', 'ake.end'])
      rmSync(join(data, file), { recursive: true, force: true })
    await serve('--listen', `127.0.0.1:${serving.port}`)
    const { code, stderr } = await hub.ended
    assert.equal(code, 1, stderr)
    assert.match(stderr, /^ake: another cluster \(.*\) answers in the place of .*: it ends, and begins anew/m)
  }))

test('a hub without an API server lets no edge in, says why in its log and to probes, and ends when it is told to', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-hub-'))
  try {
    const nowhere = await runAke(['hub', '--state', folder]).ended
    assert.equal(nowhere.code, 2)
    assert.match(nowhere.stderr, /give --kubeconfig, or run in a pod of the cluster/)
    const kubeconfig = join(folder, 'kubeconfig')
    const cluster = { server: 'https://127.0.0.1:1' }
    const config = {
      ...{ 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }] },
      ...{ clusters: [{ name: 'c', cluster }], users: [{ name: 'u', user: { token: 'x' } }] },
    }
    writeFileSync(kubeconfig, JSON.stringify(config))
    const state = ['--state', join(folder, 'state')]
    const { child, ended } = runAke([
      ...['hub', '--kubeconfig', kubeconfig, ...state, '--listen', '127.0.0.1:0'],
      ...['--health-listen', '127.0.0.1:0'],
    ])
    let log = ''
    child.stderr?.on('data', (text: string) => {
      log += text
    })
    const health = () => /hub\.health.*?(127\.0\.0\.1:\d+)/.exec(log)?.[1]
    await until(() => /hub\.waits/.test(log), 'it says that it waits')
    const ready = await fetch(`http://${health()}/readyz`)
    assert.equal(ready.status, 500)
    assert.match(await ready.text(), /\[-\]edges failed: which cluster this is is not known: .*connection refused/)
    assert.equal((await fetch(`http://${health()}/livez`)).status, 200)
    const shown = await ake(['status', '--health', `http://${health()}`])
    assert.match(shown, /^Edges: +0 here, none is let in: which cluster this is is not known/m)
    child.kill('SIGTERM')
    const { code, stderr } = await ended
    assert.equal(code, 0, stderr)
    const gone = await runAke(['status', '--health', `http://${health()}`]).ended
    assert.equal(gone.code, 1)
    assert.match(gone.stderr, /no hub listens at http:/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** What a command prints. */
async function ake(args: readonly string[]): Promise<string> {
  const { child, ended } = runAke(args)
  let text = ''
  child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
  })
  await ended
  return text
}
