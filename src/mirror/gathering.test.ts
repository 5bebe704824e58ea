/** Many names of one namespace become the namespace, where the edge may read it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { MirrorWorld } from './world.test-support.ts'

const many = 25

async function opened(): Promise<MirrorWorld> {
  const server = new ApiServer()
  for (const resource of ['configmaps', 'secrets', 'nodes'])
    for (let at = 0; at < 2 * many; at++) server.put(resource, resource === 'nodes' ? `x${at}` : `a/x${at}`)
  return await MirrorWorld.open({ server })
}

function gets(world: MirrorWorld, count: number, { caller = 'operator', resource = 'configmaps' } = {}): void {
  const namespace = resource === 'nodes' ? '' : 'a'
  for (let at = 0; at < count; at++) {
    const key = namespace === '' ? `x${at}` : `a/x${at}`
    const wish = { resource, namespace, fields: `metadata.name=x${at}` }
    if (world.place('get', wish, { caller, key }).kind === 'forward') world.found(wish, { caller, key })
  }
}

const names = (world: MirrorWorld) => [...world.interests.all].map(({ interest }) => interest.name)

test('many names of one namespace become the namespace; the names are fed, and end when it is synced', async () => {
  await using world = await opened()
  gets(world, many)
  await world.until(() => world.mirrored({ resource: 'configmaps', namespace: 'a' })?.state.kind === 'synced')
  assert.equal(world.interests.size, many + 1)
  assert.deepEqual(world.mirrored({ resource: 'configmaps', namespace: 'a' })?.record.by, ['operator'])
  // From here on any name is known, those that do not exist as well, and nothing more is begun.
  gets(world, 2 * many)
  assert.equal(world.interests.size, many + 1)
  await world.until(() => world.interests.size === 1)
  assert.deepEqual([names(world), world.server.watches.size], [['v1/configmaps@a'], 1])
  world.server.reachability.set('unreachable')
  const get = (name: string) => {
    const wish = { resource: 'configmaps', namespace: 'a', fields: `metadata.name=${name}` }
    return world.place('get', wish, { caller: 'operator', key: `a/${name}` }).kind
  }
  assert.deepEqual([get('x1'), get('x40'), get('absent')], ['local', 'local', 'local'])
})

test('names that find no room are counted too: their caller has its share of others', async () => {
  const server = new ApiServer()
  const interestsPerCallerMax = 30
  await using world = await MirrorWorld.open({ server, budget: { interestsPerCallerMax } })
  gets(world, interestsPerCallerMax, { resource: 'secrets' })
  gets(world, 10)
  gets(world, 10)
  await world.pass(10_000)
  assert.equal(world.interests.size, interestsPerCallerMax, 'ten names, however often')
  gets(world, many)
  await world.until(() => world.mirrored({ resource: 'configmaps', namespace: 'a' })?.state.kind === 'synced')
  assert.equal(world.interests.size, interestsPerCallerMax)
})

test('what the edge may not read as a whole, or has no room for, stays names; it is asked about rarely', async () => {
  await using world = await opened()
  world.confirms = true
  gets(world, many)
  await world.pass(60_000)
  assert.equal(world.interests.size, many)
  assert.equal(world.confirmed.length, 1)
  assert.equal(world.confirmed[0]?.name, 'v1/configmaps@a')
  // The review allows it, and the list is refused all the same.
  await world.pass(3_600_000, 900)
  world.confirms = false
  world.server.fault = ({ path, query }) =>
    path.endsWith('/configmaps') && !query.has('fieldSelector') ? { kind: 'status', code: 403 } : undefined
  await world.until(() => world.confirmed.length === 2, 600)
  await world.until(() => world.interests.size === many)
  gets(world, many)
  await world.pass(60_000)
  assert.equal(world.interests.size, many)
  assert.ok([...world.interests.all].every(({ readable }) => readable !== undefined))
})

test('Secrets, what has no namespace, and what the kubelet asks for stay what was asked for', async () => {
  await using world = await opened()
  gets(world, many, { resource: 'secrets' })
  gets(world, many, { resource: 'nodes' })
  gets(world, many, { caller: 'system:node:n1' })
  await world.pass(30_000)
  assert.equal(world.interests.size, 3 * many)
  // Nor does a list of another caller stand for the kubelet's.
  world.place('list', { resource: 'configmaps', namespace: 'a' }, { caller: 'operator' })
  await world.pass(180_000)
  assert.equal(names(world).filter((name) => name.startsWith('v1/configmaps@a?')).length, many)
})

test('[A2] a name that a client watches stays: its versions are those of its own history', async () => {
  await using world = await opened()
  const client = new Client(world, { resource: 'configmaps', namespace: 'a', fields: 'metadata.name=x0' })
  await stepping(world, [client], () => client.idle)
  gets(world, many)
  await world.until(() => world.interests.size === 2)
  assert.deepEqual(names(world).sort(), ['v1/configmaps@a', 'v1/configmaps@a?&metadata.name=x0'])
  world.server.put('configmaps', 'a/x0', { value: 'new' })
  await stepping(world, [client], () => client.isRight())
  assert.deepEqual(client.expired, [])
})
