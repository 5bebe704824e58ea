/** What the node of an edge may do, from what is mirrored for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Asking, makeQuestion } from '../access/question.ts'
import { EdgeCloud, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'
import type { Peer } from '../endpoint/endpoint.ts'
import { OwnNode } from './ownnode.ts'
import { roleInterests } from './roles.ts'

const kubelet = { name: 'system:node:n1', uid: '', groups: ['system:nodes'] }
const unrelated = "no relationship found between node 'n1' and this object"
const secret = (name: string, namespace = 'a'): Asking => ({ verb: 'get', resource: 'secrets', namespace, name })

function nodeCloud(): EdgeCloud {
  const cloud = new EdgeCloud()
  for (const [resource, kind, namespaced] of [
    ['secrets', 'Secret', true],
    ['serviceaccounts', 'ServiceAccount', true],
    ['persistentvolumeclaims', 'PersistentVolumeClaim', true],
    ['persistentvolumes', 'PersistentVolume', false],
  ] as const) {
    cloud.publish('', 'v1', { resource, kind, namespaced })
  }
  return cloud
}

function ownNode({ interests, catalog, cloud }: EdgeWorld, release: { minor: number | undefined } = { minor: 36 }) {
  const { clock, reachability } = cloud
  let changes = 0
  const changed = () => void changes++
  const node = new OwnNode({ interests, catalog, release, reachability, node: 'n1', clock, changed })
  return { node, told: (asking: Asking, of = kubelet) => node.judge(of, makeQuestion(asking)), changes: () => changes }
}

test('[I2] a node may what its pods lead it to, as they come and go, with and without the cloud', async () => {
  const cloud = nodeCloud()
  const spec = (name: string) => ({ serviceAccountName: 'robot', imagePullSecrets: [{ name }] })
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: spec('s') })
  cloud.server.put('pods', 'a/q', { node: 'n2', spec: spec('other') })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { told, changes, node } = ownNode(world)
  await world.until(() => told(secret('s'))?.allowed === true)
  assert.deepEqual(told(secret('other')), { allowed: false, reason: unrelated })
  const token = { verb: 'create', resource: 'serviceaccounts', subresource: 'token', namespace: 'a', name: 'robot' }
  assert.equal(told(token)?.allowed, true)
  assert.equal(told({ verb: 'get', resource: 'nodes', name: 'n1' })?.allowed, true)
  const before = [changes(), node.changedAt] as const
  await world.pass(100)
  cloud.server.put('pods', 'a/r', { node: 'n1', spec: spec('late') })
  await world.until(() => told(secret('late'))?.allowed === true)
  assert.ok(changes() > before[0] && node.changedAt > before[1])
  cloud.reachability.set('unreachable')
  await world.pass(60_000)
  assert.equal(told(secret('s'))?.allowed, true)
  assert.deepEqual(told(secret('other')), { allowed: false, reason: unrelated })
  cloud.reachability.set('reachable')
  cloud.server.remove('pods', 'a/p')
  await world.until(() => told(secret('s'))?.allowed === false)
})

test('[I2] of other nodes, of what is not mirrored and of an older API server nothing is said', async () => {
  const cloud = nodeCloud()
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets: [{ name: 's' }] } })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { told } = ownNode(world)
  await world.until(() => told(secret('s'))?.allowed === true)
  const other = { ...kubelet, name: 'system:node:n2' }
  assert.equal(told(secret('s'), other), undefined)
  assert.equal(told({ verb: 'list', resource: 'services' }, other)?.allowed, true, 'what every node may')
  assert.equal(told({ verb: 'get', group: 'resource.k8s.io', resource: 'resourceslices', name: 'x' }), undefined)
  assert.equal(told({ verb: 'get', group: 'storage.k8s.io', resource: 'volumeattachments', name: 'x' }), undefined)
  const request = { verb: 'create', group: 'certificates.k8s.io', resource: 'podcertificaterequests', namespace: 'a' }
  assert.deepEqual(told(request), { allowed: false, reason: '' }, 'what is not served is not switched on')
  const old = ownNode(world, { minor: 33 })
  assert.equal(old.told(secret('s')), undefined)
  const person = { name: 'alice', uid: '', groups: [] }
  assert.deepEqual(old.told(secret('s'), person), { allowed: false, reason: '' }, 'a person is no node to any')
})

test('[I2] the Secrets of a volume are for the node of the claim that it is bound to, once that is here', async () => {
  const cloud = nodeCloud()
  const { server } = cloud
  const csi = { driver: 'd', nodePublishSecretRef: { name: 'key', namespace: 'b' } }
  const bound = (name: string) => ({ spec: { csi, claimRef: { namespace: 'a', name } } })
  server.put('pods', 'a/p', {
    node: 'n1',
    spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] },
  })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { told } = ownNode(world)
  await world.until(() => told({ ...secret('x'), resource: 'configmaps' })?.allowed === false)
  await world.pass(2_000)
  assert.equal(told(secret('key', 'b')), undefined, 'its claim is not here')
  server.put('persistentvolumeclaims', 'a/data', { spec: { volumeName: 'pv' } })
  await world.until(() => world.interests.named('v1/persistentvolumes?&metadata.name=pv')?.readable !== undefined)
  await world.pass(2_000)
  assert.equal(told(secret('key', 'b')), undefined, 'its volume is not here')
  server.put('persistentvolumes', 'pv', bound('data'))
  await world.until(() => told(secret('key', 'b'))?.allowed === true)
  assert.equal(told({ verb: 'get', resource: 'persistentvolumes', name: 'pv' })?.allowed, true)
  server.put('persistentvolumes', 'pv', bound('another'))
  await world.until(() => told(secret('key', 'b'))?.allowed === false)
})

test('[I2] while the API server is there, what it has not confirmed for seconds is not told as its word', async () => {
  const cloud = nodeCloud()
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets: [{ name: 's' }] } })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { told } = ownNode(world)
  await world.until(() => told(secret('s'))?.allowed === true)
  cloud.clock.advance(6_000)
  assert.equal(told(secret('s')), undefined)
})

test('[I2] what a damaged copy may have lost is not told as absent', async () => {
  const cloud = nodeCloud()
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets: [{ name: 's' }] } })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const { told } = ownNode(world)
  await world.until(() => told(secret('s'))?.allowed === true)
  const pods = world.interests.named('v1/pods?&spec.nodeName=n1')?.readable
  assert.ok(pods)
  Object.defineProperty(pods, 'isDamaged', { value: true })
  assert.equal(told(secret('other')), undefined)
})

const peer: Peer = {
  certificate: {
    name: kubelet.name,
    organizations: kubelet.groups,
    issuedBy: 'clients',
    expiresMs: Number.MAX_SAFE_INTEGER,
  },
}

test('[I2] a kubelet that asks for the first time while the cloud is away is judged by what its pods name', async () => {
  const cloud = nodeCloud()
  for (const [resource, kind, namespaced] of [
    ['roles', 'Role', true],
    ['rolebindings', 'RoleBinding', true],
    ['clusterroles', 'ClusterRole', false],
    ['clusterrolebindings', 'ClusterRoleBinding', false],
  ] as const) {
    cloud.publish('rbac.authorization.k8s.io', 'v1', { resource, kind, namespaced })
  }
  cloud.judge.users.set(kubelet.name, kubelet)
  cloud.server.put('nodes', 'n1')
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets: [{ name: 's' }] } })
  cloud.server.put('pods', 'a/q', { node: 'n2', spec: { imagePullSecrets: [{ name: 'other' }] } })
  for (const name of ['s', 'other']) cloud.server.put('secrets', `a/${name}`)
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const wanted = ['v1/pods?&spec.nodeName=n1', 'v1/secrets@a?&metadata.name=s', ...roleInterests]
  await world.until(() => wanted.every((name) => world.interests.named(name)?.cache !== undefined))
  assert.equal((await world.ask('GET', '/api/v1/nodes/n1', { peer })).status, 200)
  // The copy has it too: what keeps the kubelet from it is its rights alone.
  await world.synced('secrets', 'a')
  cloud.reachability.set('unreachable')
  const got = await world.ask('GET', '/api/v1/namespaces/a/secrets/s', { peer })
  assert.deepEqual([got.status, got.json.metadata?.name], [200, 's'], got.text)
  const refused = await world.ask('GET', '/api/v1/namespaces/a/secrets/other', { peer })
  const what = 'User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace "a"'
  assert.deepEqual([refused.status, refused.json.message], [403, `secrets "other" is forbidden: ${what}: ${unrelated}`])
})
