/** What an edge holds for the node it runs on, whether a client has asked or not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admin, EdgeCloud, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'

const more = [
  ['secrets', 'Secret', true],
  ['serviceaccounts', 'ServiceAccount', true],
  ['persistentvolumeclaims', 'PersistentVolumeClaim', true],
  ['persistentvolumes', 'PersistentVolume', false],
  ['services', 'Service', true],
  ['namespaces', 'Namespace', false],
] as const

function nodeCloud(): EdgeCloud {
  const cloud = new EdgeCloud()
  for (const [resource, kind, namespaced] of more) cloud.publish('', 'v1', { resource, kind, namespaced })
  cloud.server.put('nodes', 'n1')
  return cloud
}

const standing = (world: EdgeWorld) =>
  [...world.interests.all]
    .filter(({ record }) => record.standing)
    .map(({ interest }) => interest.name)
    .sort()

const always = ['v1/namespaces', 'v1/nodes?&metadata.name=n1', 'v1/pods?&spec.nodeName=n1', 'v1/services']
const holding = (...names: string[]) => [...always, ...names].sort()
const is = (world: EdgeWorld, expected: readonly string[]) => () => standing(world).join() === expected.join()

const secret = (name: string) => ({ imagePullSecrets: [{ name }] })

test('what its pods name is held before a client asks, and no more; without the cloud it is there', async () => {
  const cloud = nodeCloud()
  const { server } = cloud
  const volumes = [{ name: 'v', configMap: { name: 'c' } }]
  server.put('pods', 'a/p', { node: 'n1', spec: { ...secret('s'), serviceAccountName: 'robot', volumes } })
  server.put('pods', 'a/elsewhere', { node: 'n2', spec: secret('other') })
  for (const name of ['s', 'other']) server.put('secrets', `a/${name}`)
  server.put('configmaps', 'a/c')
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const named = ['v1/configmaps@a?&metadata.name=c', 'v1/secrets@a?&metadata.name=s']
  await world.until(is(world, holding(...named, 'v1/serviceaccounts@a?&metadata.name=robot')))
  await world.until(() => [...world.interests.all].every(({ cache }) => cache !== undefined))
  assert.ok(
    [...world.interests.all].every(({ record }) => record.by.length === 0),
    'no caller’s',
  )
  cloud.reachability.set('unreachable')
  const before = world.interests.size
  const rows = [
    ['/api/v1/namespaces/a/secrets/s', 200],
    ['/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Ds&limit=500&resourceVersion=0', 200],
    ['/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500&resourceVersion=0', 200],
    ['/api/v1/namespaces/a/secrets/other', 503],
  ] as const
  for (const [url, status] of rows) assert.equal((await world.ask('GET', url, { peer: admin })).status, status, url)
  assert.equal(world.interests.size, before, 'a kubelet’s scopes are the ones that are held')
})

test('what pods name comes and goes with them, also over a restart; what is left is left to those who ask', async () => {
  const cloud = nodeCloud()
  const { server } = cloud
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  await world.until(is(world, holding()))
  server.put('pods', 'a/p', { node: 'n1', spec: secret('s1') })
  server.put('pods', 'a/q', { node: 'n1', spec: secret('s2') })
  const [s1, s2, s3] = ['s1', 's2', 's3'].map((name) => `v1/secrets@a?&metadata.name=${name}`) as [
    string,
    string,
    string,
  ]
  await world.until(is(world, holding(s1, s2)))
  server.remove('pods', 'a/p')
  await world.until(is(world, holding(s2)))
  const left = [...world.interests.all].find(({ interest }) => interest.name === s1)
  assert.deepEqual([left?.record.standing, left?.record.unaskedMs === 0], [false, true], 'it is there, for a day')
  await world.stop()
  server.remove('pods', 'a/q')
  server.put('pods', 'a/r', { node: 'n1', spec: secret('s3') })
  await world.start()
  assert.ok(is(world, holding(s2))(), 'before the cloud has said anything else')
  await world.until(is(world, holding(s3)))
})

test('a claim leads to its volume when it has one, and that to the Secret of its driver', async () => {
  const cloud = nodeCloud()
  const { server } = cloud
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  server.put('pods', 'a/p', { node: 'n1', spec: { volumes } })
  server.put('persistentvolumeclaims', 'a/data')
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const claim = 'v1/persistentvolumeclaims@a?&metadata.name=data'
  await world.until(is(world, holding(claim)))
  const csi = { nodePublishSecretRef: { name: 'driver', namespace: 'storage' } }
  server.put('persistentvolumes', 'pv', { spec: { csi } })
  server.put('persistentvolumeclaims', 'a/data', { spec: { volumeName: 'pv' } })
  const volume = 'v1/persistentvolumes?&metadata.name=pv'
  await world.until(is(world, holding(claim, volume, 'v1/secrets@storage?&metadata.name=driver')))
})

test('claims of devices and attachments of volumes are held, but for a driver that attaches nothing', async () => {
  const cloud = nodeCloud()
  const { server } = cloud
  const storage = 'storage.k8s.io'
  cloud.publish(storage, 'v1', { resource: 'csidrivers', kind: 'CSIDriver', namespaced: false })
  cloud.publish(storage, 'v1', { resource: 'volumeattachments', kind: 'VolumeAttachment', namespaced: false })
  cloud.publish('resource.k8s.io', 'v1', { resource: 'resourceclaims', kind: 'ResourceClaim', namespaced: true })
  const csi = { driver: 'disk.example.com', volumeHandle: 'vol-1' }
  server.put('persistentvolumes', 'pv', { spec: { csi } })
  server.put('persistentvolumeclaims', 'a/data', { spec: { volumeName: 'pv' } })
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
  const claims = { resourceClaims: [{ name: 'gpu', resourceClaimTemplateName: 't' }] }
  server.put('pods', 'a/p', { node: 'n1', spec: { volumes, ...claims } })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const known = [
    `${storage}/v1/csidrivers`,
    'v1/persistentvolumeclaims@a?&metadata.name=data',
    'v1/persistentvolumes?&metadata.name=pv',
  ]
  const attachment = `${storage}/v1/volumeattachments?&metadata.name=csi-67beaef07640111ae4680dbb1618fdc2d7e8b400988a31892dc9e25a33572edd`
  await world.until(is(world, holding(...known, attachment)))
  const status = { resourceClaimStatuses: [{ name: 'gpu', resourceClaimName: 'p-gpu-x' }] }
  server.put('pods', 'a/p', { node: 'n1', spec: { volumes, ...claims }, status })
  const claim = 'resource.k8s.io/v1/resourceclaims@a?&metadata.name=p-gpu-x'
  await world.until(is(world, holding(...known, attachment, claim)))
  assert.ok(world.needs.needed.some(({ interest, for: use }) => interest.name === claim && use === 'pods'))
  server.put('csidrivers', csi.driver, { spec: { attachRequired: false } })
  await world.until(is(world, holding(...known, claim)))
})

test('what the edge may not read breaks nothing else, is shown, and comes when it may', async () => {
  const cloud = nodeCloud()
  const { server } = cloud
  server.put('pods', 'a/p', {
    node: 'n1',
    spec: { ...secret('s'), volumes: [{ name: 'v', configMap: { name: 'c' } }] },
  })
  server.put('secrets', 'a/s')
  server.put('configmaps', 'a/c')
  server.fault = ({ resource }) => (resource === 'secrets' ? { kind: 'status', code: 403 } : undefined)
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  const of = (resource: string) => [...world.interests.all].find(({ interest }) => interest.resource === resource)
  await world.until(() => of('secrets')?.state.kind === 'refused' && of('configmaps')?.cache !== undefined)
  const { json } = await world.ask('GET', '/ake/status', { peer: admin })
  assert.deepEqual(
    json.passedThrough.map(({ resource }: { resource: string }) => resource),
    ['secrets'],
  )
  server.fault = () => undefined
  await world.until(() => of('secrets')?.cache !== undefined)
})

test('an edge that is no node’s any more lets go of what that one needed', async () => {
  const cloud = nodeCloud()
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: secret('s') })
  await using world = await EdgeWorld.open({ cloud, node: 'n1' })
  await world.until(is(world, holding('v1/secrets@a?&metadata.name=s')))
  world.node = undefined
  await world.restart()
  assert.deepEqual(standing(world), [])
})

test('more names than a node can have are not held, said once, and known to be missing', async () => {
  const cloud = nodeCloud()
  const imagePullSecrets = Array.from({ length: 21 }, (_, at) => ({ name: `s${at}` }))
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets } })
  await using world = await EdgeWorld.open({ cloud, node: 'n1', namesMax: 20 })
  await world.until(() => standing(world).length === always.length + 20)
  cloud.server.put('pods', 'a/p', { node: 'n1', spec: { imagePullSecrets }, value: 'changed' })
  await world.pass(1_000)
  assert.equal(standing(world).length, always.length + 20)
  assert.equal(world.lines.filter((line) => line.includes('node.tooMany')).length, 1)
  const beyond = world.needs.needed.filter(({ interest }) => world.interests.named(interest.name) === undefined)
  assert.ok(beyond.some(({ interest }) => interest.name === 'v1/secrets@a?&metadata.name=s20'))
})
