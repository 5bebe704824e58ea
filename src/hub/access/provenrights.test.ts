/** Whom a hub gives what: by the name of an edge's node, judged as the API server would, over the hub's own mirror. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HubWorld } from '../peers/hub.test-support.ts'
import type { CallerProofs } from './callerproofs.ts'
import { NodeRights } from './noderights.ts'
import { ProvenRights } from './provenrights.ts'

/** No caller has shown anything. */
const noCallerProofs: Pick<CallerProofs, 'judge' | 'left'> = {
  judge: () => Promise.resolve('it needs the credential of a caller who may, and this hub takes none for interests'),
  left: () => undefined,
}

type Wishes = { readonly trustsEdges?: boolean }

function proven({ trustsEdges = false }: Wishes = {}) {
  return HubWorld.open({
    rights: ({ mirror, sources }) => {
      const nodes = new NodeRights({ sources, clock: mirror.server.clock })
      nodes.start()
      return new ProvenRights({ nodes, callers: noCallerProofs, trustsEdges })
    },
  })
}

const secretVolume = (name: string) => ({ volumes: [{ name: 'v', secret: { secretName: name } }] })

test('[I1, L8] an edge has its node, its pods and what they name, and nothing of another node', async () => {
  await using world = await proven()
  const { server } = world.mirror
  server.put('nodes', 'n1')
  server.put('nodes', 'n2')
  server.put('services', 'a/web')
  server.put('pods', 'a/p1', { node: 'n1', spec: secretVolume('mine') })
  server.put('pods', 'a/p2', { node: 'n2', spec: secretVolume('theirs') })
  for (const name of ['mine', 'theirs', 'unnamed']) server.put('secrets', `a/${name}`)
  const own = [
    'v1/nodes?&metadata.name=n1',
    'v1/pods?&spec.nodeName=n1',
    'v1/secrets@a?&metadata.name=mine',
    'v1/services',
  ]
  const others = [
    ...['v1/nodes?&metadata.name=n2', 'v1/nodes', 'v1/pods', 'v1/pods?&spec.nodeName=n2', 'v1/pods@a'],
    ...['v1/secrets@a?&metadata.name=theirs', 'v1/secrets@a?&metadata.name=unnamed', 'v1/secrets@a', 'v1/secrets'],
    ...['v1/pods@a?&metadata.name=p2', 'v1/secrets@b?&metadata.name=mine', 'v1/configmaps@a?&metadata.name=mine'],
  ]
  const edge = world.edge('n1', ...own, ...others)
  edge.connect()
  await world.until(() => edge.copies.every(({ version, refusal }) => version > 0 || refusal !== undefined))
  for (const copy of edge.copies) {
    const isOwn = own.includes(copy.name)
    assert.equal(copy.refusal?.reason, isOwn ? undefined : 'forbidden', copy.name)
    assert.equal(copy.names.length, isOwn ? 1 : 0, copy.name)
  }
  const { refusal } = edge.copy('v1/secrets@a?&metadata.name=theirs')
  assert.match(refusal?.sentence ?? '', /no relationship found between node 'n1' and this object.*needs the credential/)
  // Nothing was read at the API server for what was refused.
  assert.ok(!server.requests.some(({ path }) => path.includes('/namespaces/b/')))
})

test('[I1] what a pod names comes with the pod and goes with it', async () => {
  await using world = await proven()
  const { server } = world.mirror
  server.put('secrets', 'a/s', { value: 'secret' })
  const edge = world.edge('n1', 'v1/pods?&spec.nodeName=n1', 'v1/secrets@a?&metadata.name=s')
  const secret = edge.copy('v1/secrets@a?&metadata.name=s')
  edge.connect()
  await world.until(() => edge.copy().version > 0 && secret.refusal !== undefined)
  server.put('pods', 'a/p', { node: 'n1', spec: secretVolume('s') })
  await world.settle()
  assert.deepEqual(edge.copy().names, ['a/p'])
  edge.resubscribe(secret)
  await world.until(() => secret.version > 0)
  assert.equal(secret.value('a/s'), 'secret')
  server.remove('pods', 'a/p')
  server.put('secrets', 'a/s', { value: 'later' })
  await world.pass(61_000)
  assert.equal(secret.refusal?.reason, 'forbidden')
  server.put('secrets', 'a/s', { value: 'unheard of' })
  await world.settle()
  assert.notEqual(secret.value('a/s'), 'unheard of')
})

test('[I1] roles count as they do at the API server, as long as they are there', async () => {
  await using world = await proven()
  const { server } = world.mirror
  server.put('configmaps', 'a/c')
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] }]
  server.put('roles', 'a/reader', { more: { rules } })
  const edge = world.edge('n1', 'v1/configmaps@a')
  edge.connect()
  await world.until(() => edge.copy().refusal !== undefined)
  const subjects = [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:nodes' }]
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' }
  server.put('rolebindings', 'a/reader', { more: { subjects, roleRef } })
  await world.settle()
  edge.resubscribe(edge.copy())
  await world.until(() => edge.copy().version > 0)
  assert.deepEqual(edge.copy().names, ['a/c'])
  server.remove('rolebindings', 'a/reader')
  await world.pass(61_000)
  assert.equal(edge.copy().refusal?.reason, 'forbidden')
})

test('[I1] what cannot be told is not given: a hub that may not read pods says so, and gives it once it may', async () => {
  await using world = await proven()
  const { server } = world.mirror
  server.put('pods', 'a/p', { node: 'n1', spec: secretVolume('s') })
  server.put('secrets', 'a/s')
  server.fault = ({ resource }) => (resource === 'pods' ? { kind: 'status', code: 403 } : undefined)
  const edge = world.edge('n1', 'v1/secrets@a?&metadata.name=s')
  edge.connect()
  await world.until(() => edge.copy().refusal !== undefined)
  assert.equal(edge.copy().refusal?.reason, 'busy')
  assert.match(edge.copy().refusal?.sentence ?? '', /cannot tell who may have it: .*v1\/pods/)
  server.fault = () => undefined
  await world.pass(180_000)
  edge.resubscribe(edge.copy())
  await world.until(() => edge.copy().version > 0)
})

test('a hub that trusts its edges gives them what they ask for', async () => {
  await using world = await proven({ trustsEdges: true })
  world.mirror.server.put('secrets', 'a/s')
  const edge = world.edge('n1', 'v1/secrets')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  assert.deepEqual(edge.copy().names, ['a/s'])
})
