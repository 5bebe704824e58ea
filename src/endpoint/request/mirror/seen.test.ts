/** Reads of a caller who sees otherwise: by the copy or by the API server, in each form, and when what it sees becomes something else. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeMessage, messageOf, readEnvelope } from '../../../kube/protobuf/protobuf.ts'
import { type Asking, aliceToken, answered, EdgeWorld, settle, statusText } from '../../edgeworld.test-support.ts'
import type { Response } from '../../endpoint.ts'

const cluster = '-----BEGIN CERTIFICATE-----\nY2x1c3Rlcg==\n-----END CERTIFICATE-----\n'
const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`
const maps = '/api/v1/namespaces/shop/configmaps'
const rootCa = `${maps}/kube-root-ca.crt`
const named = `${maps}?fieldSelector=metadata.name%3Dkube-root-ca.crt`

const kubelet: Asking = {
  peer: {
    certificate: { name: 'system:node:n1', organizations: [], issuedBy: 'clients', expiresMs: Number.MAX_SAFE_INTEGER },
  },
}
const alice: Asking = { token: aliceToken }

async function opened(authority = pem('one')): Promise<EdgeWorld> {
  const world = await EdgeWorld.open({ inCluster: { authority } })
  world.cloud.judge.users.set('system:node:n1', { name: 'system:node:n1', uid: '', groups: ['system:nodes'] })
  world.cloud.server.put('configmaps', 'shop/kube-root-ca.crt', { more: { data: { 'ca.crt': cluster } } })
  world.cloud.server.put('configmaps', 'shop/settings', { more: { data: { 'ca.crt': cluster } } })
  return world
}

async function synced(authority?: string): Promise<EdgeWorld> {
  const world = await opened(authority)
  await world.synced('configmaps')
  return world
}

const caOf = ({ json }: { json: { data: Record<string, string> } }) => json.data['ca.crt']

/** What a watch says, as it comes. */
async function watched(world: EdgeWorld, url: string, asking = kubelet) {
  const left = new AbortController()
  let answer: Response | undefined
  void world.response('GET', url, { ...asking, gone: left.signal }).then((response) => {
    answer = response
  })
  await world.until(() => answer !== undefined)
  const { body } = answer as Response
  const frames: { type: string; object: any }[] = []
  const state = { frames, done: false, leave, [Symbol.dispose]: leave }
  const chunks = (
    Symbol.asyncIterator in body
      ? body
      : (async function* () {
          yield* body as readonly Buffer[]
        })()
  )[Symbol.asyncIterator]()
  function leave() {
    left.abort()
    void chunks.return?.()
  }
  const read = async () => {
    let rest = ''
    for (;;) {
      const { value, done } = await chunks.next()
      if (done === true) break
      const lines = (rest + String(value)).split('\n')
      rest = lines.pop() ?? ''
      frames.push(...lines.map((line) => JSON.parse(line)))
    }
    state.done = true
  }
  void read().catch(() => {})
  await settle()
  return state
}

const shown = ({ frames }: { frames: { type: string; object: any }[] }) =>
  frames.flatMap(({ type, object }) =>
    type === 'BOOKMARK'
      ? []
      : [`${type} ${object.code ?? object.metadata.name} ${object.data?.['ca.crt'] === cluster + pem('one')}`],
  )

test('the kubelet sees our authority in kube-root-ca.crt, by name and in lists, online and offline; all others do not', async () => {
  await using world = await synced()
  for (const away of [false, true]) {
    if (away) world.cloud.reachability.set('unreachable')
    for (const url of [`${rootCa}?resourceVersion=0`, rootCa]) {
      const [seen, plain] = [await world.ask('GET', url, kubelet), await world.ask('GET', url, alice)]
      assert.deepEqual([caOf(seen), caOf(plain)], [cluster + pem('one'), cluster])
      assert.deepEqual(seen.json.metadata, plain.json.metadata, 'its version is the cloud’s')
    }
    for (const url of [`${maps}?resourceVersion=0`, maps, '/api/v1/configmaps?resourceVersion=0', named]) {
      const { json } = await world.ask('GET', url, kubelet)
      const [first, second] = json.items
      assert.equal(first.data['ca.crt'], cluster + pem('one'))
      assert.equal(second?.data['ca.crt'] ?? cluster, cluster, 'another ConfigMap is as it is')
      const others = await world.ask('GET', url, alice)
      assert.equal(others.json.items[0].data['ca.crt'], cluster)
      assert.equal(others.json.metadata.resourceVersion, json.metadata.resourceVersion)
    }
  }
})

test('[A5] callers of no class, and objects of no view, are answered with the very bytes of the copy', async () => {
  await using world = await synced()
  const held = world.copy.caches.get('v1/configmaps')
  const isTheCopys = async (name: string, asking: Asking) => {
    const { body } = await world.response('GET', `${maps}/${name}?resourceVersion=0`, asking)
    const bytes = held?.get(`shop/${name}`)?.bytes as Buffer
    return (body as Buffer[]).some(
      ({ buffer, byteOffset }) => buffer === bytes.buffer && byteOffset === bytes.byteOffset + 1,
    )
  }
  assert.equal(await isTheCopys('kube-root-ca.crt', alice), true)
  assert.equal(await isTheCopys('settings', alice), true)
  assert.equal(await isTheCopys('settings', kubelet), true)
  assert.equal(await isTheCopys('kube-root-ca.crt', kubelet), false)
})

test('it is seen so in every form', async () => {
  await using world = await synced()
  const ask = (accept: string) =>
    world.response('GET', `${rootCa}?resourceVersion=0`, { ...kubelet, headers: { accept } })
  const { body, headers } = await ask('application/vnd.kubernetes.protobuf')
  assert.equal(headers['content-type'], 'application/vnd.kubernetes.protobuf')
  const { raw } = readEnvelope(Buffer.concat(Buffer.isBuffer(body) ? [body] : (body as Buffer[])))
  const message = messageOf('v1', 'ConfigMap')
  assert.ok(message)
  assert.equal(JSON.parse(decodeMessage(message, raw).toString()).data['ca.crt'], cluster + pem('one'))
  const yaml = await world.ask('GET', `${rootCa}?resourceVersion=0`, {
    ...kubelet,
    headers: { accept: 'application/yaml' },
  })
  assert.match(yaml.text, /one/)
  const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
  const rows = await world.ask('GET', `${named}&resourceVersion=0&includeObject=Object`, { ...kubelet, headers: table })
  assert.equal(rows.json.rows[0].object.data['ca.crt'], cluster + pem('one'))
})

test('watches tell what is seen: first objects, changes and the end; a resumed one as well', async () => {
  await using world = await synced()
  const list = await world.ask('GET', `${named}&resourceVersion=0`, kubelet)
  const watchList = '&watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
  using resumed = await watched(world, `${named}&watch=1&resourceVersion=${list.json.metadata.resourceVersion}`)
  using initial = await watched(world, `${named}${watchList}`)
  using plain = await watched(world, `${named}${watchList}`, alice)
  world.cloud.server.put('configmaps', 'shop/kube-root-ca.crt', {
    more: { data: { 'ca.crt': cluster } },
    labels: { new: 'er' },
  })
  await world.pass(1_000)
  world.cloud.server.remove('configmaps', 'shop/kube-root-ca.crt')
  await world.pass(1_000)
  const name = 'kube-root-ca.crt'
  assert.deepEqual(shown(resumed), [`MODIFIED ${name} true`, `DELETED ${name} true`])
  assert.deepEqual(shown(initial), [`ADDED ${name} true`, `MODIFIED ${name} true`, `DELETED ${name} true`])
  assert.deepEqual(shown(plain), [`ADDED ${name} false`, `MODIFIED ${name} false`, `DELETED ${name} false`])
})

test('kube-proxy sees us in the slices of the service among all others, by its selector, in lists and watches', async () => {
  await using world = await opened()
  world.inCluster = { authority: pem('one'), here: [{ host: '169.254.77.1', port: 10005 }] }
  world.views.look()
  world.cloud.judge.users.set('proxy-token', { name: 'system:kube-proxy', uid: '', groups: [] })
  const proxy: Asking = { token: 'proxy-token' }
  world.cloud.publish('discovery.k8s.io', 'v1', {
    ...{ resource: 'endpointslices', kind: 'EndpointSlice', namespaced: true },
  })
  world.documents.refresh()
  await world.until(() => world.catalog.find('discovery.k8s.io', 'v1', 'endpointslices') !== undefined)
  const put = (key: string, service: string, address: string) =>
    world.cloud.server.put('endpointslices', key, {
      labels: { 'kubernetes.io/service-name': service },
      more: { addressType: 'IPv4', endpoints: [{ addresses: [address] }], ports: [{ name: 'https', port: 6443 }] },
    })
  put('default/kubernetes', 'kubernetes', '192.0.2.1')
  put('shop/web-1', 'web', '10.0.0.1')
  const all = '/apis/discovery.k8s.io/v1/endpointslices?labelSelector=%21service.kubernetes.io%2Fheadless'
  const addresses = (objects: { endpoints: { addresses: string[] }[]; ports: { port: number }[] }[]) =>
    objects.map(({ endpoints, ports }) => `${endpoints[0]?.addresses} ${ports[0]?.port}`)
  const listing = world.later('GET', `${all}&resourceVersion=0`, proxy)
  await world.until(() => listing.done)
  const { json, status } = await listing.answer
  assert.equal(status, 200, JSON.stringify(json))
  assert.deepEqual(addresses(json.items), ['169.254.77.1 10005', '10.0.0.1 6443'])
  const plain = await world.ask('GET', `${all}&resourceVersion=0`, alice)
  assert.deepEqual(addresses(plain.json.items), ['192.0.2.1 6443', '10.0.0.1 6443'])
  using watch = await watched(world, `${all}&watch=1&resourceVersion=${json.metadata.resourceVersion}`, proxy)
  put('default/kubernetes', 'kubernetes', '192.0.2.2')
  put('shop/web-1', 'web', '10.0.0.2')
  await world.pass(1_000)
  assert.deepEqual(addresses(watch.frames.map(({ object }) => object)), ['169.254.77.1 10005', '10.0.0.2 6443'])
})

test('what is passed on is seen, too, while it is not mirrored yet', async () => {
  await using world = await opened()
  const first = await world.ask('GET', rootCa, kubelet)
  assert.deepEqual([first.status, caOf(first)], [200, cluster + pem('one')])
  assert.deepEqual(
    world.cloud.passed('GET', rootCa).map(({ headers }) => headers?.accept),
    ['application/json'],
  )
  const list = await world.ask('GET', maps, kubelet)
  assert.equal(list.json.items[0].data['ca.crt'], cluster + pem('one'))
  assert.equal(list.json.items[1].data['ca.crt'], cluster)
  assert.equal(world.cloud.passed('GET', maps).length, 1, 'it was passed on')
  assert.equal(list.json.metadata.resourceVersion, String(world.cloud.server.version))
  const others = await world.ask('GET', rootCa, alice)
  assert.equal(caOf(others), cluster)
})

test('what the edge may not mirror is passed on, and seen', async () => {
  await using world = await opened()
  world.cloud.script = ({ identity, path }) =>
    identity.kind === 'edge' && path.includes('/configmaps') ? answered(403, statusText(403, 'no')) : undefined
  const listing = world.later('GET', `${maps}?resourceVersion=0`, kubelet)
  await world.until(() => listing.done)
  const { json } = await listing.answer
  assert.equal(json.items[0].data['ca.crt'], cluster + pem('one'))
  const at = json.metadata.resourceVersion
  using resumed = await watched(world, `${named}&watch=true&allowWatchBookmarks=true&resourceVersion=${at}`)
  using plain = await watched(world, `${named}&watch=true&resourceVersion=${at}`, alice)
  world.cloud.server.put('configmaps', 'shop/kube-root-ca.crt', {
    more: { data: { 'ca.crt': cluster } },
    labels: { new: 'er' },
  })
  await world.pass(2_000)
  world.cloud.server.remove('configmaps', 'shop/kube-root-ca.crt')
  await world.pass(2_000)
  assert.deepEqual(shown(resumed), ['MODIFIED kube-root-ca.crt true', 'DELETED kube-root-ca.crt true'])
  assert.deepEqual(shown(plain), ['MODIFIED kube-root-ca.crt false', 'DELETED kube-root-ca.crt false'])
})

test('[A3] another authority: one 410 for each watch of that object, over a restart, and none for anything else', async () => {
  await using world = await synced()
  const version = async (url: string) =>
    (await world.ask('GET', `${url}${url.includes('?') ? '&' : '?'}resourceVersion=0`, kubelet)).json.metadata
      .resourceVersion
  const at = await version(named)
  const other = `${maps}?fieldSelector=metadata.name%3Dsettings`
  const otherAt = await version(other)
  const resume = async (url: string, from: string, asking = kubelet) => {
    const watch = await watched(world, `${url}&watch=1&resourceVersion=${from}`, asking)
    watch.leave()
    return watch.frames.map(({ object }) => object.code)
  }
  assert.deepEqual(await resume(named, at), [], 'the same authority: nothing to tell')
  assert.deepEqual([await resume(other, otherAt), await resume(named, at, alice)], [[], []])
  world.cloud.reachability.set('unreachable')
  world.inCluster = { authority: pem('two') }
  await world.restart()
  assert.deepEqual(await resume(named, at), [410])
  assert.deepEqual(await resume(named, at), [410], 'until its client has listed')
  assert.deepEqual(await resume(other, otherAt), [], 'another object is as it was')
  assert.deepEqual(await resume(named, at, alice), [], 'to others nothing has changed')
  await world.restart()
  assert.deepEqual(await resume(named, at), [410], 'also when nothing came in between')
  assert.equal(
    (await world.ask('GET', `${named}&resourceVersion=${at}`, kubelet)).json.items[0].data['ca.crt'],
    cluster + pem('two'),
  )
  assert.deepEqual(await resume(named, at), [], 'listed: the same version is good again')
  await world.restart()
  assert.deepEqual(await resume(named, at), [], 'and stays so')
  world.inCluster = {}
  await world.restart()
  assert.deepEqual(await resume(named, at), [410], 'switched off is another view as well')
  assert.equal(
    (await world.ask('GET', `${named}&resourceVersion=${at}`, kubelet)).json.items[0].data['ca.crt'],
    cluster,
  )
  assert.deepEqual(await resume(named, at), [])
})

test('an open watch ends with 410 when what it shows becomes something else', async () => {
  await using world = await synced()
  const { json } = await world.ask('GET', `${named}&resourceVersion=0`, kubelet)
  const at = json.metadata.resourceVersion
  using seen = await watched(world, `${named}&watch=1&resourceVersion=${at}`)
  using plain = await watched(world, `${named}&watch=1&resourceVersion=${at}`, alice)
  world.inCluster = { authority: pem('two') }
  await world.pass(5_000)
  assert.deepEqual([seen.frames.map(({ object }) => object.code), seen.done], [[410], true])
  assert.deepEqual([plain.frames, plain.done], [[], false])
})
