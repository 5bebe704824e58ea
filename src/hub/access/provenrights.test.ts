/** Whom a hub gives what: by the name of an edge's node, judged as the API server would, over the hub's own mirror. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LinkFrame } from '../../link/frames/frames.ts'
import type { Interest } from '../../mirror/interest.ts'
import { HubWorld } from '../peers/hub.test-support.ts'
import { wantedOf } from '../sources/wanted.ts'
import type { CallerProofs } from './callerproofs.ts'
import { NodeRights } from './noderights.ts'
import { SetPolicies } from './policies.test-support.ts'
import { ProvenRights } from './provenrights.ts'

/** No caller has shown anything. */
const noCallerProofs: Pick<CallerProofs, 'judge' | 'left'> = {
  judge: () => Promise.resolve('it needs the credential of a caller who may, and this hub takes none for interests'),
  left: () => undefined,
}

type Wishes = { readonly trustsEdges?: boolean; readonly policies?: SetPolicies }

function proven({ trustsEdges = false, policies = new SetPolicies() }: Wishes = {}) {
  return HubWorld.open({
    policies,
    rights: ({ mirror, sources }) => {
      const nodes = new NodeRights({ sources, clock: mirror.server.clock })
      nodes.start()
      const isNamespaced = ({ resource }: Interest) => resource !== 'nodes'
      return new ProvenRights({ nodes, callers: noCallerProofs, trustsEdges, policies, isNamespaced })
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

test('[I1] a policy gives an edge more than its node may read, trusts one altogether, and what it forbids nothing gives', async () => {
  const interests = [{ apiGroups: [''], resources: ['configmaps'], namespaces: ['shop-*'] }]
  const neverMirrored = [{ apiGroups: [''], resources: ['secrets'], namespaces: ['vault'] }]
  await using world = await proven({
    policies: new SetPolicies({
      more: { nodes: { names: ['n1'] }, interests },
      gateway: { nodes: { names: ['g*'] }, trust: true },
      vault: { neverMirrored },
    }),
  })
  const { server } = world.mirror
  for (const key of ['shop-1/c', 'other/c']) server.put('configmaps', key)
  for (const key of ['shop-1/s', 'vault/s']) server.put('secrets', key)
  const wanted = [
    'v1/configmaps@shop-1',
    'v1/configmaps@other',
    'v1/configmaps',
    'v1/secrets@shop-1',
    'v1/secrets@vault',
  ]
  const given = async (name: string) => {
    const edge = world.edge(name, ...wanted, 'v1/secrets')
    edge.connect()
    await world.until(() => edge.copies.every(({ version, refusal }) => version > 0 || refusal !== undefined))
    const never = edge.copies.filter(({ refusal }) =>
      /policy\/vault spec.neverMirrored\[0\]/.test(refusal?.sentence ?? ''),
    )
    assert.deepEqual(
      never.map((copy) => copy.name),
      ['v1/secrets@vault', 'v1/secrets'],
    )
    return edge.copies.filter(({ refusal }) => refusal === undefined).map((copy) => copy.name)
  }
  assert.deepEqual(await given('n1'), ['v1/configmaps@shop-1'])
  assert.deepEqual(await given('n2'), [])
  assert.deepEqual(await given('gate-7'), wanted.slice(0, 4))
})

test('[I1] a policy that changes gives and takes at once, without a new link, and says by which rule', async () => {
  const policies = new SetPolicies()
  await using world = await proven({ policies })
  const { server } = world.mirror
  server.put('configmaps', 'a/c')
  server.put('nodes', 'n1')
  const edge = world.edge('n1', 'v1/configmaps@a', 'v1/nodes?&metadata.name=n1')
  const [more, own] = edge.copies
  assert.ok(more !== undefined && own !== undefined)
  edge.connect()
  await world.until(() => more.refusal !== undefined && own.version > 0)
  const change = async (specs: Readonly<Record<string, object>>) => {
    policies.set(specs)
    await world.peers.policed()
    await world.settle()
  }
  const interests = [{ apiGroups: [''], resources: ['configmaps'], namespaces: ['a'] }]
  await change({ p: { interests } })
  edge.resubscribe(more)
  await world.until(() => more.version > 0)
  assert.deepEqual(more.names, ['a/c'])

  await change({ p: { interests: [{ ...interests[0], namespaces: ['b'] }] } })
  assert.equal(more.refusal?.reason, 'forbidden')
  server.put('configmaps', 'a/unheard')
  await world.settle()
  assert.deepEqual(more.names, ['a/c'])

  await change({ p: { interests }, q: { neverMirrored: [{ apiGroups: ['*'], resources: ['*'], namespaces: ['a'] }] } })
  edge.resubscribe(more)
  await world.settle()
  assert.equal(more.refusal?.reason, 'never')
  assert.match(more.refusal?.sentence ?? '', /policy\/q spec.neverMirrored\[0\]/)
  assert.equal(edge.line?.isOver, false)

  // Also what its node may have by itself.
  assert.ok(own.version > 0 && own.refusal === undefined)
  await change({ q: { neverMirrored: [{ apiGroups: [''], resources: ['nodes'] }] } })
  assert.equal(edge.copies[1]?.refusal?.reason, 'never')
})

test('[I1] before policies were read nothing is given: they may forbid it', async () => {
  const policies = new SetPolicies()
  policies.isKnown = false
  await using world = await proven({ trustsEdges: true, policies })
  world.mirror.server.put('secrets', 'a/s')
  const edge = world.edge('n1', 'v1/secrets')
  edge.connect()
  await world.until(() => edge.copy().refusal !== undefined)
  assert.equal(edge.copy().refusal?.reason, 'busy')
  assert.match(edge.copy().refusal?.sentence ?? '', /cannot tell which policies there are: not read yet/)
  assert.deepEqual(terms(edge), [])
  policies.isKnown = true
  await world.peers.policed()
  edge.resubscribe(edge.copy())
  await world.until(() => edge.copy().version > 0)
  assert.equal(terms(edge).length, 1)
})

test('[L30] what an edge may have without any caller is denied for certain only where all was read that could give it', async () => {
  const policies = new SetPolicies()
  let rights: ProvenRights | undefined
  const open = () =>
    HubWorld.open({
      rights: ({ mirror, sources }) => {
        const nodes = new NodeRights({ sources, clock: mirror.server.clock })
        nodes.start()
        rights = new ProvenRights({ nodes, callers: noCallerProofs, trustsEdges: false, policies })
        return rights
      },
    })
  const own = (name: string) => rights?.own({ name: 'n1' }, wantedOf(name) as Interest)
  await using world = await open()
  world.mirror.server.put('pods', 'a/p', { node: 'n1', spec: secretVolume('mine') })
  await world.settle()
  const [mine, other] = ['v1/secrets@a?&metadata.name=mine', 'v1/secrets@a?&metadata.name=other']
  assert.deepEqual([await own(mine), await own(other), await own('v1/configmaps@a')], [true, false, false])
  policies.set({ p: { interests: [{ apiGroups: [''], resources: ['configmaps'] }] } })
  assert.deepEqual([await own('v1/configmaps@a'), await own(other)], [true, false])
  policies.set({ p: { trust: true } })
  assert.equal(await own(other), true)
  // That is told by its refusal.
  policies.set({ p: { neverMirrored: [{ apiGroups: [''], resources: ['secrets'] }] } })
  assert.equal(await own(mine), undefined)
  policies.set({})
  policies.isWhole = false
  assert.deepEqual([await own(mine), await own(other)], [true, undefined])
  policies.isWhole = true
  policies.isKnown = false
  assert.equal(await own(other), undefined)
  policies.isKnown = true

  // A hub that may not read roles goes by none, and is not certain.
  await using blind = await open()
  blind.mirror.server.fault = ({ resource }) =>
    resource === 'clusterroles' ? { kind: 'status', code: 403 } : undefined
  await blind.settle()
  await blind.pass(30_000)
  assert.equal(await own(other), undefined)
})

test('[L13] an edge is told what policies say of it behind the welcome, and again only when that changes', async () => {
  const policies = new SetPolicies({ p: { offline: { tokenAge: '1h', serveAge: '2h' } } })
  await using world = await proven({ policies })
  const edge = world.edge('n1')
  edge.connect()
  await world.settle()
  const limits = { kind: 'terms', tokenAgeMs: 3_600_000, serveAgeMs: 7_200_000 }
  assert.deepEqual(edge.received.map(({ kind }) => kind).slice(0, 2), ['welcome', 'terms'])
  assert.deepEqual(terms(edge), [{ ...limits, trusts: 0 }])
  await world.peers.policed()
  await world.settle()
  assert.equal(terms(edge).length, 1)
  policies.set({ p: { trust: true } })
  await world.peers.policed()
  await world.settle()
  assert.deepEqual(terms(edge).at(-1), { kind: 'terms', trusts: 1, tokenAgeMs: 0, serveAgeMs: 0 })
})

function terms({ received }: { readonly received: readonly LinkFrame[] }): LinkFrame[] {
  return received.filter(({ kind }) => kind === 'terms')
}
