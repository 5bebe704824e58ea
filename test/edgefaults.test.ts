/** What must not harm an edge: being killed at any instant, a disk that refuses, an API server that sends anything at all. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Http2ServerResponse } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { lives } from '../src/base/lives.test-support.ts'
import { seeded } from '../src/base/seeded.test-support.ts'
import { until } from '../src/base/until.test-support.ts'
import { FakeServer, inline, issue, writeKubeconfig } from '../src/upstream/fakeserver.test-support.ts'
import { start, withSite } from './edgeprocess.ts'
import { Client, configMap, configMaps, type Frame, type Serving, seedOfRun, Watch } from './process.ts'

type Item = { metadata: { name: string; resourceVersion: string }; data?: { value?: string } }
type Listed = { metadata: { resourceVersion: string }; items: Item[] }

const any = `${configMaps}?resourceVersion=0`
const watching = (version: number) => `${configMaps}?watch=1&allowWatchBookmarks=true&resourceVersion=${version}`
const versionOf = ({ metadata }: { metadata: { resourceVersion: string } }) => Number(metadata.resourceVersion)

const livesMax = 40

/** Objects change upstream all the time until it is ended. */
function churn(client: Client, random: (below: number) => number) {
  const ending = new AbortController()
  let changes = 0
  const running = (async () => {
    while (!ending.signal.aborted) {
      const name = `c${random(20)}`
      const value = { value: String(++changes), pad: 'x'.repeat(random(2_000)) }
      const { status } = await client.ask('PUT', `${configMaps}/${name}`, configMap(name, value))
      if (status === 404) await client.ask('POST', configMaps, configMap(name, value))
      else if (random(10) === 0) await client.ask('DELETE', `${configMaps}/${name}`)
      await pause(random(5))
    }
  })()
  // A test that asks for its end hears of it; a test that failed before says so itself.
  running.catch(() => {})
  const end = async () => {
    ending.abort()
    await running
    return changes
  }
  return { end, changes: () => changes }
}

test('[D2] killed at any instant under churn: nothing that was shown is lost or goes back, and it opens clean', () =>
  withSite(['--mirror', 'configmaps'], async (site) => {
    const random = seeded(seedOfRun)
    // Several at a time: commits are grouped, and the next one waits while one is being written.
    const churns = Array.from({ length: 4 }, () => churn(site.client(site.cloud), random))
    /** By name, the newest version shown; undefined where its deletion was. */
    const shown = new Map<string, number | undefined>()
    let last = 0
    let killAt = Number.POSITIVE_INFINITY
    const seen = ({ type, object }: Frame) => {
      // In the very moment in which something was shown: had it not been committed before, it would be gone.
      if (performance.now() > killAt) process.kill(site.edge.pid, 'SIGKILL')
      const version = versionOf(object)
      assert.notEqual(type, 'ERROR', `seed ${seedOfRun}: ${JSON.stringify(object)}`)
      assert.ok(version >= last, `seed ${seedOfRun}: ${version} after ${last}`)
      last = version
      if (type !== 'BOOKMARK') shown.set(object.metadata.name, type === 'DELETED' ? undefined : version)
    }
    const first = await site.client().json<Listed>('GET', any)
    for (const item of first.items) shown.set(item.metadata.name, versionOf(item))
    last = versionOf(first)
    // On a busy machine little changes in a life: then there are more of them.
    const isLittle = () => churns.some(({ changes }) => changes() <= 100)
    for (let life = 0; life < lives(20) || (isLittle() && life < livesMax); life++) {
      const client = site.client()
      const watch = new Watch(client, watching(last), seen)
      await watch.opened()
      killAt = performance.now() + random(200)
      if (life % 4 === 3) await pause(random(200)).then(() => site.edge.end('SIGKILL'))
      const { stderr } = await site.edge.ended
      killAt = Number.POSITIVE_INFINITY
      assert.doesNotMatch(stderr, / error /, `seed ${seedOfRun}`)
      await watch.ended
      client.close()
      // Without its cloud: what is there then comes from the disk alone.
      await site.link.set('refuse')
      await site.startEdge()
      const list = await site.client().json<Listed>('GET', any)
      assert.ok(versionOf(list) >= last, `seed ${seedOfRun}: published up to ${last}, opened at ${versionOf(list)}`)
      const held = new Map(list.items.map((item) => [item.metadata.name, versionOf(item)]))
      if (versionOf(list) === last) assert.deepEqual(held, new Map([...shown].filter(([, version]) => version)))
      for (const [name, version] of held) {
        assert.ok(version >= (shown.get(name) ?? 0), `seed ${seedOfRun}: ${name} went back to ${version}`)
      }
      await site.link.set('up')
    }
    const changes = await Promise.all(churns.map(({ end }) => end()))
    assert.ok(Math.min(...changes) > 100, `changes: ${changes}`)
    const client = site.client()
    const watch = new Watch(client, watching(last), seen)
    const truth = await site.client(site.cloud).json<Listed>('GET', configMaps)
    await until(async () => versionOf(await client.json<Listed>('GET', any)) >= versionOf(truth), 'caught up')
    const caughtUp = await client.json<Listed>('GET', any)
    assert.deepEqual(caughtUp.items, truth.items)
    const alive = () => [...shown].filter(([, version]) => version !== undefined).map(([name]) => name)
    const names = truth.items.map(({ metadata }) => metadata.name)
    await until(() => alive().sort().join() === names.join(), `what the watch told: ${names} / ${alive().sort()}`)
    watch.stream.close()
  }))

test('[D3] a full disk stops ingest, not reads; it is reported, and heals by itself', async (context) => {
  try {
    execFileSync('prlimit', ['--pid', String(process.pid), '--fsize'], { stdio: 'ignore' })
  } catch {
    context.skip('prlimit does not work here')
    return
  }
  await withSite(['--mirror', 'configmaps'], async (site) => {
    const limit = (bytes: string) => execFileSync('prlimit', ['--pid', String(site.edge.pid), `--fsize=${bytes}`])
    const direct = site.client(site.cloud)
    const client = site.client()
    await client.json('POST', configMaps, configMap('before', {}))
    const names = async () => (await client.json<Listed>('GET', any)).items.map(({ metadata }) => metadata.name)
    await until(async () => (await names()).length === 1, 'synced')
    const watch = new Watch(client, watching(versionOf(await client.json<Listed>('GET', any))))
    await watch.opened()
    // The kernel refuses every write beyond the first page of a file.
    limit('4096:unlimited')
    // Larger than that page: how much is in its file by now is a matter of chance.
    await direct.json('POST', configMaps, configMap('meanwhile', { text: 'x'.repeat(8_192) }))
    await until(async () => (await site.readyz()).code === 500, 'it is reported')
    assert.match((await site.readyz()).text, /\[-\]store failed: the disk refuses writes/)
    assert.deepEqual(await names(), ['before'], 'what is not committed is not shown')
    assert.equal((await client.ask('GET', `${configMaps}/before`)).status, 200)
    assert.equal(watch.stream.closed, false)
    limit('unlimited:unlimited')
    await until(async () => (await site.readyz()).code === 200, 'it heals')
    await until(async () => (await names()).length === 2, 'and catches up')
    await watch.until((frames) => frames.some(({ object }) => object.metadata.name === 'meanwhile'))
    assert.ok(watch.frames.every(({ type }) => type !== 'ERROR'))
  })
})

const object = (namespace: string, version: number, more: object = {}) => ({
  metadata: { name: 'real', namespace, uid: 'u', resourceVersion: String(version) },
  data: { value: 'true' },
  ...more,
})
const list = (namespace: string, more: object = {}) =>
  JSON.stringify({
    kind: 'ConfigMapList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '5' },
    items: [object(namespace, 3)],
    ...more,
  })
const frame = (type: string, body: object) =>
  `${JSON.stringify({ type, object: { kind: 'ConfigMap', apiVersion: 'v1', ...body } })}\n`

/** Lists of which nothing may be believed, by the namespace that gets them. */
const badLists: Record<string, (response: Http2ServerResponse, namespace: string) => void> = {
  truncated: (response, at) => void response.end(list(at).slice(0, -20)),
  wrongkind: (response, at) => void response.end(list(at).replace('ConfigMapList', 'SecretList')),
  nolist: (response) => void response.end('[1,2,3]'),
  html: (response) => void response.end('<html>welcome</html>'),
  empty: (response) => void response.end(),
  noversion: (response, at) => void response.end(list(at, { metadata: {} })),
  nonames: (response, at) => void response.end(list(at, { items: [{ metadata: { resourceVersion: '3' } }] })),
  noise: (response) => void response.end(randomBytes(4_000)),
  status: (response) => void response.end('{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}'),
  // Pages without end: each says that there is another.
  endlesspages: (response, at) => {
    const metadata = { resourceVersion: '5', continue: randomBytes(12).toString('hex') }
    const items = Array.from({ length: 500 }, (_, index) => {
      const one = object(at, 3)
      return { ...one, metadata: { ...one.metadata, name: `n${randomBytes(6).toString('hex')}${index}` } }
    })
    response.end(list(at, { metadata, items }))
  },
  // One page without end.
  endlesspage: (response, at) => {
    response.write(`${list(at).slice(0, -2)}`)
    const more = Buffer.from(`,${JSON.stringify(object(at, 3))}`.repeat(400))
    const pour = () => {
      while (!response.writableEnded && response.stream?.destroyed === false && response.write(more));
    }
    response.on('drain', pour)
    pour()
  },
}

/** Frames after which the copy must be what it was. */
const badFrames: Record<string, (namespace: string) => string> = {
  'frame-nojson': () => 'garbage\n',
  'frame-truncated': (at) => `${frame('MODIFIED', object(at, 9, { data: { value: 'false' } })).slice(0, -9)}\n`,
  'frame-wrongkind': (at) =>
    frame('MODIFIED', object(at, 9, { data: { value: 'false' } })).replace('ConfigMap"', 'Secret"'),
  'frame-noversion': (at) => frame('MODIFIED', { metadata: { name: 'real', namespace: at }, data: { value: 'false' } }),
  'frame-noname': (at) => frame('MODIFIED', { metadata: { namespace: at, resourceVersion: '9' } }),
  'frame-unknown': (at) => frame('EXPLODED', object(at, 9, { data: { value: 'false' } })),
  'frame-backwards': (at) => frame('DELETED', object(at, 2)),
  'frame-elsewhere': (at) => frame('ADDED', { ...object('other', 9), about: at }),
  'frame-huge': (at) => frame('MODIFIED', object(at, 9, { data: { value: 'x'.repeat(17_000_000) } })),
}

const discovery: Record<string, object> = {
  '/api': { kind: 'APIVersions', versions: ['v1'] },
  '/apis': {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: [{ name: 'apps', versions: [{ groupVersion: 'apps/v1', version: 'v1' }] }],
  },
  '/apis/apps/v1': {
    kind: 'APIResourceList',
    groupVersion: 'apps/v1',
    resources: [{ name: 'deployments', singularName: '', namespaced: true, kind: 'Deployment', verbs: ['get'] }],
  },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: [
      {
        name: 'configmaps',
        singularName: 'configmap',
        namespaced: true,
        kind: 'ConfigMap',
        verbs: ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'],
      },
    ],
  },
}

test('a hostile API server: nothing of what it makes up is committed, its neighbours go on, and the status says so', async () => {
  const server = await FakeServer.start()
  const kubeconfig = writeKubeconfig(server.url, inline(issue({ use: 'client', name: 'edge' })))
  const folder = mkdtempSync(join(tmpdir(), 'ake-hostile-'))
  server.handle = ({ url }, response) => {
    const [path = '', query = ''] = url.split('?')
    response.setHeader('content-type', 'application/json')
    const namespace = /^\/api\/v1\/namespaces\/([^/]+)\/configmaps$/.exec(path)?.[1] ?? ''
    if (discovery[path] !== undefined) response.end(JSON.stringify(discovery[path]))
    // By its uid an edge knows which cluster it mirrors.
    else if (path === '/api/v1/namespaces/kube-system')
      response.end(JSON.stringify({ kind: 'Namespace', metadata: { name: 'kube-system', uid: 'c' } }))
    else if (namespace === '') response.writeHead(404).end()
    else if (query.includes('watch=')) {
      response.write(badFrames[namespace]?.(namespace) ?? frame('ADDED', { ...object(namespace, 6), more: 'ordinary' }))
    } else if (badLists[namespace] !== undefined) badLists[namespace](response, namespace)
    else response.end(list(namespace))
  }
  const namespaces = ['ordinary', ...Object.keys(badLists), ...Object.keys(badFrames)]
  const started: { edge?: Serving; client?: Client } = {}
  try {
    const edge = await start(folder, [
      ...['edge', '--listen', '127.0.0.1:0', '--kubeconfig', kubeconfig.path, '--probe-every', '500ms'],
      ...['--first-list-bytes', '4Mi', '--first-list-max', '20000'],
      ...namespaces.flatMap((namespace) => ['--mirror', `configmaps@${namespace}`]),
    ])
    const client = new Client(edge)
    Object.assign(started, { edge, client })
    type Shown = { namespace?: string; state: string; why?: string; objects: number; resourceVersion: number }
    const status = async () =>
      JSON.parse((await client.ask('GET', '/ake/status')).body.toString()) as {
        interests: Shown[]
        passedThrough: { why: string }[]
      }
    const of = async (namespace: string) => (await status()).interests.find((one) => one.namespace === namespace)
    const items = async (namespace: string) =>
      client.json<Listed>('GET', `/api/v1/namespaces/${namespace}/configmaps?resourceVersion=0`)
    await until(async () => (await of('ordinary'))?.resourceVersion === 6, 'the ordinary one is in step')
    // Everybody has met his fault: lists that cannot be had say why, those before the frames are there.
    const met = ({ interests, passedThrough }: Awaited<ReturnType<typeof status>>) =>
      passedThrough.length > 0 &&
      namespaces.every((namespace) => {
        const found = interests.find((one) => one.namespace === namespace)
        return namespace in badFrames ? found?.objects === 1 : found?.why !== undefined || /ord|endless/.test(namespace)
      })
    await until(async () => met(await status()), 'every fault')
    // And some meet it again.
    await pause(1_000)
    const after = await status()
    const believed: string[] = []
    for (const namespace of Object.keys(badLists)) {
      const found = after.interests.find((one) => one.namespace === namespace)
      // Only what is too large is given up, and passed through.
      if (found === undefined) assert.match(namespace, /endless/)
      else if (found.objects > 0 || found.resourceVersion > 0 || !/syncing|waiting/.test(found.state)) {
        believed.push(`${namespace}: ${JSON.stringify(found)}`)
      }
    }
    for (const namespace of Object.keys(badFrames)) {
      const { metadata, items: held } = await items(namespace)
      const shown = held.map((item) => `${item.metadata.name} ${item.data?.value?.slice(0, 20)}`).join()
      if (shown !== 'real true' || versionOf({ metadata }) >= 9) {
        believed.push(`${namespace}: ${shown} at ${metadata.resourceVersion}`)
      }
    }
    assert.deepEqual(believed, [])
    const silent = after.interests.filter(({ state, why = '' }) => state === 'waiting' && why === '')
    assert.deepEqual(silent, [], 'each says why')
    assert.equal((await of('ordinary'))?.state, 'synced')
    // Now the connection itself speaks no HTTP/2 any more.
    server.intercept = (socket) => {
      socket.on('error', () => {})
      socket.write(Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0]), randomBytes(2_000)]))
      return true
    }
    server.reset()
    const state = async () => (await client.ask('GET', '/readyz?verbose')).body.toString()
    await until(async () => /\[!\]upstream: (unreachable|suspect)/.test(await state()), 'it is noticed')
    assert.equal((await items('ordinary')).items.length, 1)
    server.intercept = undefined
    server.reset()
    await until(async () => /upstream ok: reachable/.test(await state()), 'and healed', { withinMs: 40_000 })
    const { code, stderr } = await edge.end()
    assert.equal(code, 0)
    assert.doesNotMatch(stderr, /fault|at file:/, stderr)
  } finally {
    started.client?.close()
    await started.edge?.end('SIGKILL')
    await server.end()
    kubeconfig.remove()
    rmSync(folder, { recursive: true, force: true })
  }
})
