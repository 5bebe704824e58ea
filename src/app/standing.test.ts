/** What an edge keeps unasked, and what follows from what it sees there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeJwt } from '../access/access.test-support.ts'
import { aliceToken, answered, EdgeCloud, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'
import { definition } from '../mirror/documents/cloud.test-support.ts'

const names = (world: EdgeWorld) => [...world.interests.all].map(({ interest }) => interest.name).sort()

test('what the options name is kept from the start, what does not exist yet from when it does', async () => {
  const wanted = [
    { resource: 'pods', namespace: 'a' },
    { resource: 'things.fresh.test', namespace: '' },
  ]
  await using world = await EdgeWorld.open({ wanted })
  await world.pass(1_000)
  assert.deepEqual(names(world), ['v1/pods@a'])
  world.cloud.publish('fresh.test', 'v1', { resource: 'things', kind: 'Thing', namespaced: true })
  world.documents.refresh()
  await world.until(() => world.interests.size === 2)
  assert.deepEqual(names(world), ['fresh.test/v1/things', 'v1/pods@a'])
  for (const { record } of world.interests.all) assert.equal(record.standing, true)
  await world.restart()
  assert.deepEqual(names(world), ['fresh.test/v1/things', 'v1/pods@a'], 'also without anybody asking again')
})

test('what an option named before the last start, and none does now, is like any that clients ask for; all else stands on', async () => {
  const cloud = new EdgeCloud()
  const rbac = 'rbac.authorization.k8s.io'
  const kinds = [
    ['', 'nodes', 'Node'],
    ['', 'services', 'Service'],
    [rbac, 'clusterroles', 'ClusterRole'],
    ['apiregistration.k8s.io', 'apiservices', 'APIService'],
  ] as const
  for (const [group, resource, kind] of kinds) cloud.publish(group, 'v1', { resource, kind, namespaced: false })
  cloud.judge.users.set('', { name: 'edge-1', uid: '', groups: [] })
  const wanted = [
    { resource: 'pods', namespace: 'a' },
    { resource: 'po', namespace: 'b' },
  ]
  await using world = await EdgeWorld.open({ cloud, wanted, node: 'n1' })
  const standing = () =>
    [...world.interests.all]
      .filter(({ record }) => record.standing)
      .map(({ interest }) => interest.name)
      .sort()
  const others = [
    'apiregistration.k8s.io/v1/apiservices',
    `${rbac}/v1/clusterroles`,
    'v1/nodes?&metadata.name=n1',
    'v1/pods?&spec.nodeName=n1',
    'v1/services',
  ]
  await world.until(() => world.interests.size === others.length + 2)
  assert.deepEqual(standing(), [...others, 'v1/pods@a', 'v1/pods@b'].sort())
  world.wanted = wanted.slice(1)
  await world.stop()
  cloud.reachability.set('unreachable')
  cloud.reachability.restarted()
  await world.start()
  assert.deepEqual(standing(), [...others, 'v1/pods@b'].sort(), 'without the cloud as well')
  const left = world.interests.named('v1/pods@a')
  assert.deepEqual([left?.record.unaskedMs, left?.readable === undefined], [0, false], 'it is there, for a day')
})

test('what the options name and nobody serves is told once discovery was read, until it exists', async () => {
  const wanted = [
    { resource: 'pdos', namespace: '' },
    { resource: 'things.fresh.test', namespace: 'a' },
    { resource: 'nodes', namespace: 'a' },
  ]
  const cloud = new EdgeCloud()
  cloud.publish('', 'v1', { resource: 'nodes', kind: 'Node', namespaced: false })
  await using world = await EdgeWorld.open({ cloud, wanted })
  await world.until(() => world.misconfigured.all.length === 3)
  const [pods = '', things = '', nodes = ''] = world.misconfigured.all
  assert.match(pods, /^--mirror pdos: the API server has no such resource, .*: did you mean "pods"\?$/)
  assert.match(things, /^--mirror things\.fresh\.test@a: .*: see "kubectl api-resources"$/)
  assert.match(nodes, /^--mirror nodes@a: nodes are in no namespace: write --mirror nodes$/)
  cloud.publish('fresh.test', 'v1', { resource: 'things', kind: 'Thing', namespaced: true })
  world.documents.refresh()
  await world.until(() => world.misconfigured.all.length === 2)
  assert.deepEqual(world.misconfigured.all, [pods, nodes])
  assert.equal(world.lines.filter((line) => line.includes('edge.misconfigured')).length, 3)
})

test('definitions are followed: what they say of a resource is known, and discovery is looked at again', async () => {
  const cloud = new EdgeCloud()
  const plural = 'customresourcedefinitions'
  cloud.publish('apiextensions.k8s.io', 'v1', { resource: plural, kind: 'CustomResourceDefinition', namespaced: false })
  const defined = JSON.parse(definition.toString())
  defined.metadata.resourceVersion = '5'
  const list = {
    kind: 'CustomResourceDefinitionList',
    apiVersion: 'apiextensions.k8s.io/v1',
    metadata: { resourceVersion: '5' },
    items: [] as unknown[],
  }
  const frame = `${JSON.stringify({ type: 'ADDED', object: { ...defined, metadata: { ...defined.metadata, resourceVersion: '6' } } })}\n`
  const { promise: appears, resolve: appear } = Promise.withResolvers<void>()
  const watch = async function* () {
    await appears
    yield Buffer.from(frame)
    await new Promise(() => {})
  }
  cloud.script = ({ path }) => {
    if (!path.includes(`/${plural}?`)) return undefined
    if (path.includes('watch=')) return { ...answered(200, ''), body: watch() }
    return answered(200, JSON.stringify(list))
  }
  const world = await EdgeWorld.open({ cloud })
  // Long enough for what a start asks for by itself.
  await world.pass(20_000)
  const columns = () => world.catalog.find('pasture.test', 'v1', 'oxen')?.columns
  assert.equal(columns(), undefined)
  const looks = () => cloud.documents.asked.filter((path) => path === '/apis').length
  const before = looks()
  appear()
  await world.until(() => columns() !== undefined)
  await world.pass(1_000)
  assert.ok(looks() > before)
})

test('[I1] a token ends with the pod it is bound to', async () => {
  await using world = await EdgeWorld.open()
  const { server } = world.cloud
  server.put('pods', 'a/p')
  server.put('pods', 'a/q')
  await world.synced('pods')
  const url = '/api/v1/namespaces/a/serviceaccounts/robot/token'
  const uids = new Map(['p', 'q'].map((name) => [name, server.get('pods', `a/${name}`)?.uid]))
  const wish = (name: string) => ({
    kind: 'TokenRequest',
    spec: { audiences: [], boundObjectRef: { kind: 'Pod', name, uid: uids.get(name) } },
  })
  const token = makeJwt({ exp: 4_000_000_000 })
  world.cloud.script = ({ path, body }) =>
    path === url
      ? answered(201, JSON.stringify({ ...JSON.parse(String(body)), status: { token, expirationTimestamp: null } }))
      : undefined
  const ask = (name: string) => world.ask('POST', url, { token: aliceToken, body: wish(name) })
  for (const name of ['p', 'q']) assert.equal((await ask(name)).status, 201)
  server.put('pods', 'a/p', { value: 'changed' })
  server.remove('pods', 'a/q')
  // Made again under the same name: another pod.
  server.put('pods', 'a/q')
  await world.pass(1_000)
  world.cloud.reachability.set('unreachable')
  assert.equal((await ask('p')).status, 201)
  assert.equal((await ask('q')).status, 503)
})

test('a token outlives its pod’s leaving of a selector, and ends with the pod', async () => {
  await using world = await EdgeWorld.open()
  const { server } = world.cloud
  server.put('pods', 'a/p', { labels: { app: 'web' } })
  const selected = world.later('GET', '/api/v1/pods?labelSelector=app%3Dweb&resourceVersion=0')
  await world.until(() => selected.done)
  await world.synced('pods', 'a')
  const url = '/api/v1/namespaces/a/serviceaccounts/robot/token'
  const boundObjectRef = { kind: 'Pod', name: 'p', uid: server.get('pods', 'a/p')?.uid }
  const token = makeJwt({ exp: 4_000_000_000 })
  world.cloud.script = ({ path, body }) =>
    path === url ? answered(201, JSON.stringify({ ...JSON.parse(String(body)), status: { token } })) : undefined
  const body = { kind: 'TokenRequest', spec: { audiences: [], boundObjectRef } }
  const ask = async () => (await world.ask('POST', url, { token: aliceToken, body })).status
  assert.equal(await ask(), 201)
  server.put('pods', 'a/p', { labels: { app: 'other' } })
  await world.pass(1_000)
  world.cloud.reachability.set('unreachable')
  assert.equal(await ask(), 201)
  world.cloud.reachability.set('reachable')
  await world.pass(5_000)
  server.remove('pods', 'a/p')
  await world.pass(5_000)
  world.cloud.reachability.set('unreachable')
  assert.equal(await ask(), 503)
})

test('[I1] a token ends with its account, also where another of the same name came', async () => {
  await using world = await EdgeWorld.open()
  const { server } = world.cloud
  world.cloud.publish('', 'v1', { resource: 'serviceaccounts', kind: 'ServiceAccount', namespaced: true })
  await world.until(() => world.catalog.find('', 'v1', 'serviceaccounts') !== undefined)
  for (const name of ['a/robot', 'a/other']) server.put('serviceaccounts', name)
  await world.synced('serviceaccounts')
  const url = (account: string) => `/api/v1/namespaces/a/serviceaccounts/${account}/token`
  const tokenOf = (account: string) => {
    const serviceaccount = { name: account, uid: server.get('serviceaccounts', `a/${account}`)?.uid }
    return makeJwt({ exp: 4_000_000_000, 'kubernetes.io': { namespace: 'a', serviceaccount } })
  }
  world.cloud.script = ({ path, body }) => {
    const [, account = ''] = /serviceaccounts\/(.*)\/token$/.exec(path) ?? []
    if (account === '') return undefined
    return answered(201, JSON.stringify({ ...JSON.parse(String(body)), status: { token: tokenOf(account) } }))
  }
  const body = { kind: 'TokenRequest', spec: { audiences: [] } }
  const ask = async (account: string) => (await world.ask('POST', url(account), { token: aliceToken, body })).status
  assert.deepEqual([await ask('robot'), await ask('other')], [201, 201])
  server.put('serviceaccounts', 'a/other', { value: 'changed' })
  server.remove('serviceaccounts', 'a/robot')
  server.put('serviceaccounts', 'a/robot')
  await world.pass(1_000)
  world.cloud.reachability.set('unreachable')
  assert.deepEqual([await ask('robot'), await ask('other')], [503, 201])
})
