/** Rights that change while a caller reads: what was decided counts for moments, and open watches end with the right. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { piecesOf } from '../../answer/pieces.ts'
import { admin, aliceToken, answered, EdgeCloud, EdgeWorld, settle, statusText } from '../../edgeworld.test-support.ts'
import { EventMessages } from '../../sockets/websocket/events.ts'
import { closeFrame } from '../../sockets/websocket/frames.ts'

const maps = '/api/v1/namespaces/a/configmaps'
const rbac = 'rbac.authorization.k8s.io'

function publishRoles(cloud: EdgeCloud): void {
  cloud.publish(rbac, 'v1', { resource: 'rolebindings', kind: 'RoleBinding', namespaced: true })
  cloud.publish(rbac, 'v1', { resource: 'clusterrolebindings', kind: 'ClusterRoleBinding', namespaced: false })
}

async function opened(publish = publishRoles): Promise<EdgeWorld> {
  const cloud = new EdgeCloud()
  publish(cloud)
  cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  cloud.server.put('rolebindings', 'a/alice-reads')
  cloud.server.put('clusterrolebindings', 'all')
  const world = await EdgeWorld.open({ cloud })
  await world.synced('configmaps')
  return world
}

/** The edge itself keeps its rights. */
function takeAway({ cloud }: EdgeWorld): void {
  cloud.judge.allows = ({ name }) => name === 'edge'
  cloud.script = ({ identity, path }) =>
    identity.kind === 'token' && path.startsWith('/api/v1/') ? answered(403, statusText(403, 'theirs')) : undefined
}

async function seesRoles(world: EdgeWorld, seconds = 60): Promise<void> {
  const followed = () => [...world.cloud.server.watches].filter(({ resource }) => resource.endsWith('rolebindings'))
  await world.until(() => followed().length === 2, seconds)
}

type Watching = { readonly frames: string[]; over: boolean }

async function watch(world: EdgeWorld, asking = {}, url = `${maps}?watch=1&resourceVersion=0`): Promise<Watching> {
  const response = await world.response('GET', url, { token: aliceToken, ...asking })
  assert.equal(response.status, 200)
  return follow(piecesOf(response.body))
}

function follow(pieces: AsyncIterator<Buffer>): Watching {
  const state: Watching = { frames: [], over: false }
  const read = async () => {
    for (;;) {
      const { value, done } = await pieces.next()
      if (done === true) break
      state.frames.push(value.toString('latin1'))
    }
    state.over = true
  }
  void read()
  return state
}

test('[I5] nothing is shown 10 s after its binding is gone, while the API server can be asked', async () => {
  await using world = await opened()
  assert.equal((await world.get(`${maps}/c1?resourceVersion=0`)).json.value, 'one')
  takeAway(world)
  await world.pass(10_000)
  for (const url of [`${maps}/c1?resourceVersion=0`, `${maps}?resourceVersion=0`]) {
    assert.deepEqual([(await world.get(url)).status, (await world.get(url)).passedThrough], [403, true], url)
  }
})

test('[I5] where reviews fail and the decision is old, the API server answers the read itself', async () => {
  await using world = await opened()
  await world.get(`${maps}?resourceVersion=0`)
  world.cloud.judge.mode = 'error'
  await world.pass(10_000)
  const { status, passedThrough } = await world.get(`${maps}?resourceVersion=0`)
  assert.deepEqual([status, passedThrough], [200, true])
})

test('[I5] a change of bindings ends the watches of who lost the right, in order, and their next meets the refusal', async () => {
  await using world = await opened()
  await seesRoles(world)
  const streams = [
    await watch(world),
    await watch(world, {}, `${maps}?watch=1&resourceVersion=0&allowWatchBookmarks=1`),
  ]
  const socket = await world.response('GET', `${maps}?watch=1&resourceVersion=0`, { token: aliceToken })
  const messages = follow(new EventMessages(socket))
  const own = await watch(world, { token: undefined, peer: admin })
  await world.pass(20_000)
  takeAway(world)
  world.cloud.server.remove('rolebindings', 'a/alice-reads')
  await world.pass(3_000)
  world.cloud.server.put('configmaps', 'a/c1', { value: 'two' })
  await world.pass(1_000)
  for (const stream of [...streams, messages]) {
    assert.ok(stream.over)
    assert.ok(!stream.frames.join('').includes('two'))
    assert.ok(!stream.frames.join('').includes('ERROR'))
  }
  assert.match(streams[1]?.frames.at(-1) ?? '', /BOOKMARK/)
  assert.equal(messages.frames.at(-1), closeFrame().toString('latin1'))
  assert.ok(!own.over && own.frames.join('').includes('two'), 'the administrator’s goes on')
  assert.equal((await world.get(`${maps}?watch=1&resourceVersion=0`)).status, 403)
})

test('[I5] what changed before the roles were mirrored counts when they are', async () => {
  await using world = await opened(() => {})
  const stream = await watch(world)
  await world.pass(20_000)
  takeAway(world)
  await world.pass(20_000)
  assert.equal(stream.over, false, 'nobody has told of it')
  publishRoles(world.cloud)
  world.documents.refresh()
  await seesRoles(world)
  await world.pass(2_000)
  assert.equal(stream.over, true)
})

test('[I5] without such a change a watch ends within minutes, and none ends while the cloud is away', async () => {
  await using world = await opened()
  const stream = await watch(world)
  takeAway(world)
  world.cloud.reachability.set('unreachable')
  await world.pass(400_000)
  assert.equal(stream.over, false)
  world.cloud.reachability.set('reachable')
  await world.pass(70_000)
  assert.equal(stream.over, true)
})

const watchList = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

test('[I5] who loses the right while a first sync is awaited gets nothing of it', async () => {
  await using world = await opened()
  await seesRoles(world)
  await world.get(`${maps}?resourceVersion=0`)
  world.cloud.server.fault = ({ resource }) => (resource === 'pods' ? { kind: 'slow', ms: 5_000 } : undefined)
  world.cloud.server.put('pods', 'a/p1', { value: 'hidden' })
  const list = world.later('GET', '/api/v1/namespaces/a/pods?resourceVersion=0')
  const stream = await watch(world, {}, `/api/v1/namespaces/b/pods?${watchList}`)
  await world.pass(1_000)
  takeAway(world)
  world.cloud.server.remove('clusterrolebindings', 'all')
  await world.pass(9_000)
  assert.equal((await list.answer).status, 403)
  assert.deepEqual([stream.over, stream.frames], [true, []])
})

test('an edge that may not read roles does without, asks rarely, and says nothing', async () => {
  const cloud = new EdgeCloud()
  publishRoles(cloud)
  for (const resource of ['roles', 'clusterroles'])
    cloud.publish(rbac, 'v1', { resource, kind: resource, namespaced: false })
  let may = false
  cloud.judge.allows = (_, { resourceAttributes }) => may || resourceAttributes?.group !== rbac
  await using world = await EdgeWorld.open({ cloud })
  await world.pass(10_000)
  const asked = () => cloud.judge.specs.filter(({ resourceAttributes }) => resourceAttributes?.group === rbac).length
  assert.equal(asked(), 4)
  await world.pass(500_000)
  assert.equal(asked(), 4)
  assert.deepEqual(
    [...world.interests.all].filter(({ interest }) => interest.group === rbac),
    [],
  )
  assert.ok(!world.lines.some((line) => line.includes(rbac)))
  may = true
  await world.pass(120_000)
  await settle()
  assert.equal([...world.interests.all].filter(({ interest }) => interest.group === rbac).length, 4)
})

/** An edge that mirrors all of the roles by which its API server judges: alice reads the ConfigMaps of a. */
async function openedWithRoles(): Promise<EdgeWorld> {
  const cloud = new EdgeCloud()
  publishRoles(cloud)
  cloud.publish(rbac, 'v1', { resource: 'roles', kind: 'Role', namespaced: true })
  cloud.publish(rbac, 'v1', { resource: 'clusterroles', kind: 'ClusterRole', namespaced: false })
  const rules = [{ verbs: ['get', 'list', 'watch'], apiGroups: [''], resources: ['configmaps'] }]
  cloud.server.put('roles', 'a/reads', { more: { rules } })
  const subjects = [{ kind: 'User', name: 'alice' }]
  cloud.server.put('rolebindings', 'a/alice-reads', { more: { roleRef: { kind: 'Role', name: 'reads' }, subjects } })
  cloud.judge.allows = ({ name }, { resourceAttributes: { resource, namespace } = {} }) =>
    name === 'edge' || (resource === 'configmaps' && namespace === 'a')
  cloud.server.put('configmaps', 'a/c1', { value: 'one' })
  cloud.server.put('configmaps', 'b/c2', { value: 'hidden' })
  const world = await EdgeWorld.open({ cloud })
  await world.until(() => world.access.evaluation.isCurrent(cloud.clock.steady()), 60)
  await world.synced('configmaps', 'a')
  return world
}

test('[I2] what a caller asks for the first time while the cloud is away is judged by roles, after a restart too', async () => {
  await using world = await openedWithRoles()
  world.cloud.reachability.set('unreachable')
  const judged = async () => {
    const [one, others] = [await world.get(`${maps}/c1?resourceVersion=0`), await world.get(maps.replace('/a/', '/b/'))]
    assert.deepEqual([one.status, others.status], [200, 403], `${one.text} ${others.text}`)
    const text =
      'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "b"'
    assert.equal(others.json.message, text)
  }
  await judged()
  await world.restart()
  await judged()
})

test('[I2] a binding that was seen to go gives nothing any more when the cloud goes away', async () => {
  await using world = await openedWithRoles()
  assert.equal((await world.get(`${maps}?resourceVersion=0`)).status, 200)
  world.cloud.server.remove('rolebindings', 'a/alice-reads')
  await world.pass(100)
  world.cloud.reachability.set('unreachable')
  assert.equal((await world.get(`${maps}?resourceVersion=0`)).status, 403)
})

test('[I5] a caller that reads all the time costs a review in minutes where roles are mirrored, not one in seconds', async () => {
  await using world = await openedWithRoles()
  const reviews = () => world.cloud.judge.asked.filter((one) => one === 'access alice').length
  await world.pass(15_000)
  const before = reviews()
  for (let seconds = 0; seconds < 170; seconds += 2) {
    for (const { body } of world.cloud.server.watches) body.heardAtMs = world.cloud.clock.steady()
    assert.equal((await world.get(`${maps}?resourceVersion=0`)).status, 200)
    await world.pass(2_000)
  }
  assert.equal(reviews() - before, 1)
})

test('[I1] a watch for another caller is judged by roles while the cloud is away, and by the API server when that is back', async () => {
  await using world = await openedWithRoles()
  await world.pass(20_000)
  world.cloud.reachability.set('unreachable')
  const as = (user: string) => ({ token: undefined, peer: admin, headers: { 'impersonate-user': user } })
  const stream = await watch(world, as('alice'), `${maps}?watch=1&resourceVersion=0&allowWatchBookmarks=1`)
  const others = await world.response('GET', `${maps}?watch=1&resourceVersion=0`, { ...as('mallory'), token: '' })
  assert.equal(others.status, 403)
  await world.pass(60_000)
  assert.equal(stream.over, false)
  world.cloud.reachability.set('reachable')
  await world.pass(1_000)
  assert.equal(stream.over, true)
  assert.match(stream.frames.at(-1) ?? '', /BOOKMARK/, 'its client goes on from there')
  assert.ok(!stream.frames.join('').includes('ERROR'))
})
