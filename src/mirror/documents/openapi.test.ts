/** OpenAPI that is fetched ahead of its callers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { World } from './cloud.test-support.ts'

const json = { accept: 'application/json' }
const isOpenApi = (path: string) => path.startsWith('/openapi/')

async function ahead(): Promise<World> {
  const world = new World(undefined, true)
  const headers = { 'content-type': 'application/json', etag: '"v2"' }
  world.cloud.documents.push({ path: '/openapi/v2', accept: 'any', headers, body: 'all of it' })
  const index = world.cloud.document('/openapi/v3', 'any')
  index.body = JSON.stringify({ paths: { 'apis/pasture.test/v1': { serverRelativeURL: listed(world) } } })
  await world.start()
  return world
}

/** What the index names; the only one that is recorded. */
function listed(world: World): string {
  return /"(\/openapi\/v3\/[^"]+)"/.exec(world.cloud.document('/openapi/v3', 'any').body)?.[1] ?? ''
}

async function status(world: World, path: string): Promise<unknown> {
  const answer = await world.get(path, json)
  return typeof answer === 'string' ? answer : answer.status
}

test('without a caller every document that the index names is there when the cloud has gone, also after a restart', async () => {
  await using world = await ahead()
  await world.pass(5_000)
  world.cloud.turn('unreachable')
  await world.restart()
  for (const path of ['/openapi/v2', '/openapi/v3', listed(world)]) assert.equal(await status(world, path), 200, path)
})

test('what is the same is not fetched again; another hash is', async () => {
  await using world = await ahead()
  await world.pass(5_000)
  const asked = () => world.cloud.asked.filter(isOpenApi)
  const [first, before] = [listed(world), asked().length]
  await world.pass(10 * 60_000)
  assert.ok(asked().length > before, 'it looked')
  assert.deepEqual([...new Set(asked().slice(before))], ['/openapi/v3', '/openapi/v2'])
  const said = world.cloud.said.filter((one) => one.startsWith('/openapi/v2'))
  assert.deepEqual([...new Set(said.slice(1))], ['/openapi/v2 304'])

  const renewed = first.replace(/hash=.*/, 'hash=NEW')
  const document = world.cloud.document(first)
  const headers = { ...document.headers, etag: '"NEW"' }
  world.cloud.documents.push({ ...document, path: renewed, headers, body: '{"openapi":"3.0.0"}' })
  const index = world.cloud.document('/openapi/v3', 'any')
  index.body = index.body.replace(first, renewed)
  await world.pass(10 * 60_000)
  world.cloud.turn('unreachable')
  const answer = await world.get(renewed, json)
  assert.equal(typeof answer === 'string' ? answer : answer.body.toString(), '{"openapi":"3.0.0"}')
})

test('a cloud that comes late, or goes meanwhile, is asked again when it is there', async () => {
  const world = new World(undefined, true)
  world.cloud.turn('unreachable')
  await world.start()
  await using _ = world
  await world.pass(5_000)
  assert.deepEqual(world.cloud.asked.filter(isOpenApi), [])
  world.cloud.turn('reachable')
  await world.pass(5_000)
  world.cloud.turn('unreachable')
  assert.equal(await status(world, listed(world)), 200)
})

test('an index that is none, or names what is no document, costs nothing but its own look', async () => {
  const bodies = ['', 'no JSON', '{}', '{"paths":{"x":{}}}', '{"paths":{"x":{"serverRelativeURL":"/api/v1/secrets"}}}']
  for (const body of bodies) {
    const world = new World(undefined, true)
    world.cloud.document('/openapi/v3', 'any').body = body
    await world.start()
    await using _ = world
    await world.pass(5_000)
    assert.deepEqual(
      world.cloud.asked.filter((path) => isOpenApi(path) && path !== '/openapi/v3'),
      ['/openapi/v2'],
      body,
    )
    assert.ok(!world.cloud.asked.includes('/api/v1/secrets'))
  }
})
