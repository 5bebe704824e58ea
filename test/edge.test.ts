/** `ake edge` as a process, in front of an API server whose line is cut in every way and whose processes are killed. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { Mode } from '../conformance/link.ts'
import type { StatusDocument } from '../src/app/statusdocument.ts'
import { until } from '../src/base/until.test-support.ts'
import { writeKubeconfig } from '../src/pki/kubeconfig.ts'
import { openPki } from '../src/pki/pki.ts'
import { credentialsOf, outputOf, Site, start, withSite, withSiteHere } from './edgeprocess.ts'
import { type Client, configMap, configMaps, type Frame, runAke, Watch } from './process.ts'

type Listed = { metadata: { resourceVersion: string }; items: { metadata: { name: string } }[] }

const mirrored = ['--mirror', 'configmaps']
const any = `${configMaps}?resourceVersion=0`
const watching = (version: string) => `${configMaps}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`

const namesOf = (list: Listed) => list.items.map(({ metadata }) => metadata.name)
const create = (client: Client, name: string) => client.json('POST', configMaps, configMap(name, { value: name }))
const told = (frames: readonly Frame[]) =>
  frames.filter(({ type }) => type !== 'BOOKMARK').map(({ type, object }) => `${type} ${object.metadata.name}`)

/** Whether versions only ever went up, and nobody was told to list again. */
function assertOrdinary(frames: readonly Frame[]): void {
  let last = 0
  for (const { type, object } of frames) {
    assert.notEqual(type, 'ERROR', JSON.stringify(object))
    const version = Number(object.metadata.resourceVersion)
    assert.ok(version >= last, `${version} after ${last}`)
    last = version
  }
}

async function synced(site: Site): Promise<Client> {
  const client = site.client()
  await until(async () => (await client.ask('GET', any)).status === 200, 'the first sync')
  return client
}

/** Reads one after the other, every 50 ms; every answer with how long it took. */
function probe(client: Client, url: string) {
  const took: number[] = []
  const faults: string[] = []
  const ending = new AbortController()
  const running = (async () => {
    while (!ending.signal.aborted) {
      const startMs = performance.now()
      const { status, body } = await client.ask('GET', url)
      took.push(performance.now() - startMs)
      const { items } = JSON.parse(body.toString()) as { items?: unknown[] }
      if (status !== 200 || items?.length === 0) faults.push(`${status} ${body}`)
      await pause(50)
    }
  })()
  const end = async () => {
    ending.abort()
    await running
    return { took, faults }
  }
  return { end, count: () => took.length }
}

/** A read that waits for the cloud waits for at least 300 ms. */
const stallMs = 290

const cuts: readonly Mode[] = [
  { kind: 'refuse' },
  { kind: 'reset' },
  { kind: 'blackhole' },
  { kind: 'halfopen', lost: 'down' },
  { kind: 'halfopen', lost: 'up' },
]

test('[A2] cut in every way: reads go on, watches stay open, and what was missed arrives as ordinary events', () =>
  withSite(mirrored, async (site) => {
    const client = await synced(site)
    const direct = site.client(site.cloud)
    await create(direct, 'stays')
    const { metadata } = await client.json<Listed>('GET', configMaps)
    const watch = new Watch(client, watching(metadata.resourceVersion))
    for (const [round, mode] of cuts.entries()) {
      const name = JSON.stringify(mode)
      await create(direct, `goes${round}`)
      await watch.until((frames) => told(frames).includes(`ADDED goes${round}`))
      // Its decision is there before the cut, as everybody's is who has read it.
      await client.ask('GET', `${configMaps}/stays`)
      const probes = [probe(site.client(), any), probe(site.client(), `${configMaps}?limit=500`)]
      const gets = probe(site.client(), `${configMaps}/stays`)
      await site.link.set(mode)
      await direct.ask('DELETE', `${configMaps}/goes${round}`)
      await create(direct, `comes${round}`)
      await until(() => gets.count() >= 10, name)
      const reads = await Promise.all(probes.map((one) => one.end()))
      for (const { took, faults } of reads) {
        assert.deepEqual(faults, [], name)
        assert.ok(Math.max(...took) < 1_000, `${name}: a read took ${Math.max(...took)} ms`)
      }
      const { took, faults } = await gets.end()
      assert.deepEqual(faults, [], name)
      // What those who never wait were kept waiting for is this machine's doing.
      const hiccups = reads.flatMap((one) => one.took).filter((ms) => ms > stallMs).length
      const stalls = took.filter((ms) => ms > stallMs)
      assert.ok(stalls.length <= 1 + hiccups, `${name}: without a version ${stalls.length} stalls, ${stalls}`)
      assert.equal(watch.stream.closed, false, name)
      const isDeaf = mode.kind !== 'halfopen' || mode.lost === 'down'
      if (isDeaf) assert.ok(!told(watch.frames).includes(`ADDED comes${round}`), 'the line was really cut')
      await site.link.set('up')
      await watch.until((frames) => told(frames).includes(`ADDED comes${round}`), 20_000)
      assert.ok(told(watch.frames).includes(`DELETED goes${round}`), name)
      await site.untilCloudIs('reachable')
    }
    assertOrdinary(watch.frames)
    const [here, there] = await Promise.all([client.json<Listed>('GET', any), direct.json<Listed>('GET', configMaps)])
    assert.deepEqual(namesOf(here), namesOf(there))
  }))

// The others measure nothing that their neighbours could disturb.
describe('a site of its own each', { concurrency: 3 }, () => {
  test('started online it syncs, reads, watches and passes writes on; its files are its owner’s alone', () =>
    withSiteHere(mirrored, async (site) => {
      const client = await synced(site)
      const direct = site.client(site.cloud)
      const { metadata } = await client.json<Listed>('GET', any)
      const watch = new Watch(client, watching(metadata.resourceVersion))
      await create(direct, 'c1')
      await create(client, 'c2')
      await watch.until((frames) => told(frames).length === 2)
      assert.deepEqual(told(watch.frames), ['ADDED c1', 'ADDED c2'])
      // Its own write is there as soon as it was answered (A7).
      assert.deepEqual(namesOf(await client.json('GET', any)), ['c1', 'c2'])
      const [here, there] = await Promise.all([client.ask('GET', configMaps), direct.ask('GET', configMaps)])
      assert.equal(here.body.toString(), there.body.toString(), 'byte for byte')
      for (const file of readdirSync(site.edgeFolder, { recursive: true }) as string[]) {
        const { mode } = statSync(join(site.edgeFolder, file))
        if (/admin|ake\.db|log|key/.test(file)) assert.equal(mode & 0o077, 0, file)
      }
      assert.equal(statSync(join(site.edgeFolder, 'admin.kubeconfig')).mode & 0o777, 0o600)
      assert.equal(statSync(join(site.edgeFolder, 'ake.db')).mode & 0o777, 0o600)

      const text = await outputOf(['status', '--data', site.edgeFolder])
      assert.equal(text.code, 0)
      assert.match(text.stdout, /Upstream: +reachable[\s\S]*configmaps +\* +synced +2 /)
      await site.link.set('refuse')
      await site.untilCloudIs('unreachable')
      const json = await outputOf(['status', '--data', site.edgeFolder, '--output', 'json'])
      const shown = JSON.parse(json.stdout)
      assert.deepEqual([json.code, shown.upstream.state], [0, 'unreachable'])
      assert.match(shown.upstream.why, /refused/)
      assert.equal(shown.interests.find((one: { resource: string }) => one.resource === 'configmaps').objects, 2)
      await site.edge.end()
      const over = await outputOf(['status', '--data', site.edgeFolder])
      assert.equal(over.code, 1)
      assert.match(over.stderr, /no ake runs on .*: start it/)
    }))

  test('[A2] restarts of either side, in order and by kill -9: the next watch resumes without 410 and misses nothing', () =>
    withSite(
      mirrored,
      async (site) => {
        let client = await synced(site)
        const frames: Frame[] = []
        let version = (await client.json<Listed>('GET', any)).metadata.resourceVersion
        const seen = (frame: Frame) => {
          frames.push(frame)
          version = frame.object.metadata.resourceVersion
        }
        let made = 0
        let watch = new Watch(client, watching(version), seen)
        const more = async () => {
          const direct = site.client(site.cloud)
          await create(direct, `n${made++}`)
          await until(() => told(frames).includes(`ADDED n${made - 1}`), `n${made - 1}`)
          direct.close()
        }
        await more()
        for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
          await site.cloud.end(signal)
          // What is not killed any more needs no process.
          site.isCloudProcess = site.isEdgeProcess = signal === 'SIGTERM'
          await site.startCloud()
          await more()
          assert.equal(watch.stream.closed, false, 'a restart of the cloud ends no watch')
          const { code } = await site.edge.end(signal)
          const { clean } = await watch.ended
          if (signal === 'SIGTERM') assert.deepEqual([code, clean], [0, true])
          await site.startEdge()
          client = site.client()
          watch = new Watch(client, watching(version), seen)
          await more()
        }
        assertOrdinary(frames)
        assert.deepEqual(
          told(frames),
          Array.from({ length: made }, (_, index) => `ADDED n${index}`),
        )
      },
      { isCloudProcess: true },
    ))

  test('offline: restarted it serves at once from disk, writes are refused, and nothing unknown is shown as absent', () =>
    withSiteHere(mirrored, async (site) => {
      let client = await synced(site)
      await create(client, 'c1')
      const { metadata } = await client.json<Listed>('GET', any)
      const discovery = (await client.ask('GET', '/apis')).body.toString()
      for (const [signal, cut] of [
        ['SIGTERM', 'blackhole'],
        ['SIGKILL', 'refuse'],
      ] as const) {
        await site.link.set(cut)
        await site.edge.end(signal)
        // The one that is killed next is a process.
        site.isEdgeProcess = signal === 'SIGTERM'
        await site.startEdge()
        const startMs = performance.now()
        client = site.client()
        assert.deepEqual(namesOf(await client.json('GET', any)), ['c1'])
        assert.deepEqual(namesOf(await client.json('GET', configMaps)), ['c1'])
        assert.equal((await client.ask('GET', '/apis')).body.toString(), discovery)
        const watch = new Watch(client, watching(metadata.resourceVersion))
        await watch.opened()
        // A read that waited for a sync would take 10 s.
        assert.ok(performance.now() - startMs < 5_000, `${performance.now() - startMs} ms`)
        await site.untilCloudIs('unreachable')
        const rows: [string, string, unknown, number][] = [
          ['POST', configMaps, configMap('new', {}), 503],
          ['POST', configMaps, configMap('c1', {}), 409],
          ['PUT', `${configMaps}/c1`, configMap('c1', {}), 503],
          ['DELETE', `${configMaps}/c1`, undefined, 503],
          ['GET', `${configMaps}/none`, undefined, 404],
          ['GET', '/api/v1/namespaces/default/secrets', undefined, 503],
          ['GET', '/api/v1/namespaces/default/secrets/x', undefined, 503],
          ['GET', '/api/v1/namespaces/default/nosuch', undefined, 404],
          ['POST', `${configMaps}/c1`, configMap('c1', {}), 405],
        ]
        for (const [method, url, body, expected] of rows) {
          const { status, headers } = await client.ask(method, url, body)
          assert.deepEqual([status, headers['retry-after']], [expected, undefined], `${method} ${url}`)
        }
        assert.equal((await site.readyz()).code, 200, 'ready: its reads are answered')
        const { upstream, interests, refusedWrites } = await client.json<StatusDocument>('GET', '/ake/status')
        assert.ok(typeof upstream.lastContact === 'string', 'the last contact was before this start')
        assert.ok(upstream.since <= upstream.lastContact)
        assert.ok(interests.every(({ objects, ageSeconds }) => objects === 0 || ageSeconds !== undefined))
        assert.equal(refusedWrites?.total, 3)
      }
      assert.deepEqual(namesOf(await client.json('GET', any)), ['c1'], 'nothing was pretended')
    }))

  test('[A1] started for the first time without its API server it says so, and syncs when that comes', () =>
    withSiteHere(mirrored, async (site) => {
      await create(site.client(site.cloud), 'c1')
      await site.edge.end()
      rmSync(site.edgeFolder, { recursive: true })
      await site.link.set('refuse')
      await site.startEdge()
      const client = site.client()
      await site.untilCloudIs('unreachable')
      for (const url of [any, configMaps, `${configMaps}/c1`, watching('0')]) {
        const { status, headers } = await client.ask('GET', url)
        assert.deepEqual([status, headers['retry-after']], [503, undefined], url)
      }
      await site.link.set('up')
      await until(async () => (await client.ask('GET', any)).status === 200, 'synced')
      assert.deepEqual(namesOf(await client.json('GET', any)), ['c1'])
    }))

  test('a kubeconfig that is rewritten is used from then on, over new connections', () =>
    withSiteHere(mirrored, async (site) => {
      const client = await synced(site)
      const watch = new Watch(client, watching('0'))
      await watch.opened()
      const good = { ca: credentialsOf(site.kubeconfig).ca, admin: credentialsOf(site.kubeconfig) }
      // Signed by nobody whom the API server knows.
      const stranger = await openPki({ folder: join(site.folder, 'stranger'), hosts: ['127.0.0.1'], now: Date.now() })
      await writeKubeconfig(site.kubeconfig, site.link.url, { ...stranger, ca: good.ca })
      const write = async (name: string) => (await client.ask('POST', configMaps, configMap(name, {}))).status
      let made = 0
      await until(async () => (await write(`w${made++}`)) !== 201, 'refused with the new credential', {
        withinMs: 30_000,
      })
      assert.equal((await client.ask('GET', any)).status, 200, 'reads go on')
      // The same authority, another certificate.
      for (const file of ['admin.crt', 'admin.key']) rmSync(join(site.cloudFolder, 'pki', file))
      const renewed = await openPki({ folder: join(site.cloudFolder, 'pki'), hosts: ['127.0.0.1'], now: Date.now() })
      assert.notEqual(renewed.admin.cert, good.admin.cert)
      const before = site.link.stats().connections
      await writeKubeconfig(site.kubeconfig, site.link.url, renewed)
      await until(async () => (await write('renewed')) === 201, 'accepted with the renewed credential', {
        withinMs: 30_000,
      })
      assert.ok(site.link.stats().connections > before)
      await until(() => told(watch.frames).includes('ADDED renewed'), 'the watch went on')
      assertOrdinary(watch.frames)
    }))

  test('--mirror of a resource that does not exist yet begins when its definition appears', () =>
    withSiteHere(['--mirror', 'gateways.example.com'], async (site) => {
      const direct = site.client(site.cloud)
      const names = { plural: 'gateways', singular: 'gateway', kind: 'Gateway', listKind: 'GatewayList' }
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
      const version = { name: 'v1', served: true, storage: true, schema }
      const spec = { group: 'example.com', scope: 'Namespaced', names, versions: [version] }
      const definition = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
      const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      const status = async () => JSON.parse((await site.administrator().ask('GET', '/ake/status')).body.toString())
      const gateway = (one: { resource: string }) => one.resource === 'gateways'
      const state = async () => (await status()).interests.find(gateway)?.state
      assert.equal(await state(), undefined)
      await direct.json('POST', crds, { ...definition, metadata: { name: 'gateways.example.com' }, spec })
      await until(async () => (await state()) === 'synced', 'it is mirrored')
      const gateways = '/apis/example.com/v1/namespaces/default/gateways'
      const object = { apiVersion: 'example.com/v1', kind: 'Gateway', metadata: { name: 'g' } }
      await direct.json('POST', gateways, object)
      await until(async () => (await status()).interests.find(gateway).objects === 1, 'its object is here')
      await site.link.set('refuse')
      await site.untilCloudIs('unreachable')
      const list = await site.client().json<Listed & { kind: string }>('GET', gateways)
      assert.equal(list.kind, 'GatewayList')
      assert.deepEqual(namesOf(list), ['g'])
    }))

  test('SIGTERM ends it in time and in order, also while its API server hangs and during the first sync', () =>
    withSite(mirrored, async (site) => {
      const client = await synced(site)
      await site.link.set('blackhole')
      const watch = new Watch(client, watching('0'))
      await watch.opened()
      const hanging = site.client().ask('POST', configMaps, configMap('x', {}))
      hanging.catch(() => {})
      await pause(50)
      const end = async () => {
        const startMs = performance.now()
        const { code, stderr } = await site.edge.end('SIGTERM')
        assert.equal(code, 0, stderr)
        // A write that was passed on is waited for until its line is known to be dead, a read for 5 s.
        assert.ok(performance.now() - startMs < 12_000, `${performance.now() - startMs} ms`)
      }
      await end()
      assert.equal((await watch.ended).clean, true)
      rmSync(site.edgeFolder, { recursive: true })
      await site.startEdge()
      const list = site.client().ask('GET', any)
      list.catch(() => {})
      await pause(50)
      await end()
      await site.link.set('up')
      await site.startEdge()
      await synced(site)
    }))

  test('wrong usage is told in a sentence that says what to do', async () => {
    const site = new Site()
    try {
      const rows: [string[], RegExp][] = [
        [[], /"ake edge" needs --kubeconfig/],
        [['--kubeconfig', '/nowhere/kubeconfig'], /\/nowhere\/kubeconfig.*check --kubeconfig/],
        [['--kubeconfig', '/dev/null', '--server', 'nonsense'], /--server cannot be "nonsense": give /],
        [['--kubeconfig', '/dev/null', '--mirror', 'p o d s'], /--mirror cannot be "p o d s": give /],
        [['--kubeconfig', '/dev/null'], /check --kubeconfig/],
      ]
      for (const [args, sentence] of rows) {
        const { code, stderr } = await runAke(['edge', '--data', site.edgeFolder, ...args]).ended
        assert.equal(code, 2, stderr)
        assert.match(stderr, sentence)
        assert.equal(stderr.trim().split('\n').length, 1, 'no stack, no help')
      }
      assert.equal(existsSync(site.edgeFolder), false, 'and nothing was made')
    } finally {
      await site.end()
    }
  })

  test('[D4] an edge refuses the folder of an authority and an authority that of an edge, in a sentence; both stay as they are', () =>
    withSiteHere(mirrored, async (site) => {
      const uidOf = async (client: Client) =>
        (await client.json<{ metadata: { uid: string } }>('GET', '/api/v1/namespaces/kube-system')).metadata.uid
      const before = await uidOf(site.client(site.cloud))
      await create(site.client(site.cloud), 'kept')
      await synced(site)
      await Promise.all([site.cloud.end(), site.edge.end()])

      const upstream = ['--kubeconfig', join(site.cloudFolder, 'admin.kubeconfig'), '--listen', '127.0.0.1:0']
      const other = (command: string) =>
        new RegExp(`ended with 2 .*: it is a folder of \`ake ${command}\`: choose another`)
      await assert.rejects(start(site.cloudFolder, ['edge', ...upstream]), other('serve'))
      await assert.rejects(start(site.edgeFolder, ['serve', '--listen', '127.0.0.1:0']), other('edge'))

      await site.startEdge()
      assert.deepEqual(namesOf(await site.client().json<Listed>('GET', any)), ['kept'])
      const client = site.client(await site.startCloud())
      assert.deepEqual(namesOf(await client.json<Listed>('GET', any)), ['kept'])
      assert.equal(await uidOf(client), before)
    }))

  test('a client that shows no certificate is told so, as by an API server', () =>
    withSiteHere(mirrored, async (site) => {
      await synced(site)
      const session = connect(site.edge.url, { ca: site.edge.credentials.ca })
      const stream = session.request({ ':path': any })
      const [headers] = await new Promise<[{ ':status'?: number }]>((resolve) =>
        stream.once('response', (...got) => resolve(got as unknown as [{ ':status'?: number }])),
      )
      assert.ok([401, 403].includes(Number(headers[':status'])), String(headers[':status']))
      session.destroy()
    }))
})
