/** An edge behind a hub: which of its documents are those of the cluster it hears by their signs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signOf, type ToldSigns, toldDocuments } from '../../upstream/told.ts'
import { aggregated, World } from './cloud.test-support.ts'

const openId = [
  { path: '/.well-known/openid-configuration', body: '{"issuer":"https://here"}' },
  { path: '/openid/v1/jwks', body: '{"keys":[]}' },
]
const acceptV2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'

/** Both ask the same API server; the edge hears what its hub says. */
async function started() {
  const hub = new World(undefined, false, { isForEdges: true })
  const listeners = new Set<() => void>()
  const told: ToldSigns = {
    of: (document) => {
      const sign = hub.documents.signs[toldDocuments.indexOf(document)]
      return sign?.length === 0 ? undefined : sign
    },
    observe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const edge = new World(undefined, true, { told })
  edge.cloud.documents = hub.cloud.documents
  hub.cloud.document('/openapi/v3', 'any').body = '{"paths":{}}'
  for (const { path, body } of openId)
    hub.cloud.documents.push({ path, body, accept: 'any', headers: { 'content-type': 'application/json' } })
  const v2 = { etag: '"v2"', 'content-type': acceptV2.replace('@', '.') }
  hub.cloud.documents.push({ path: '/openapi/v2', body: 'v2', accept: 'any', headers: v2 })
  await hub.start()
  hub.documents.observeSigns(() => {
    for (const listener of listeners) listener()
  })
  await hub.pass(5_000)
  await edge.start()
  // On a busy machine what it asks for at first takes longer than the minute that passes by its clock.
  for (let asked = -1; asked < edge.cloud.said.length; await edge.pass(60_000)) asked = edge.cloud.said.length
  edge.cloud.said.length = 0
  const end = async () => {
    await Promise.all([hub.stop(), edge.stop()])
    assert.equal(listeners.size, 0)
  }
  return { hub, edge, listeners, [Symbol.asyncDispose]: end }
}

test('[A6] what its hub says to be as it is held an edge does not ask for, for hours and after a cut; for a caller it asks', async () => {
  await using it = await started()
  const { hub, edge } = it
  await hub.pass(3_600_000)
  await edge.pass(3_600_000)
  edge.cloud.turn('unreachable')
  await edge.pass(1_000)
  edge.cloud.turn('reachable')
  await edge.pass(60_000)
  assert.equal((await edge.documents.content('/version', 'application/json'))?.toString(), version(edge).body)
  assert.deepEqual(edge.cloud.said, [])
  await edge.get('/apis', { accept: aggregated })
  await edge.get('/version', { accept: 'application/json' })
  assert.deepEqual(edge.cloud.said, ['/apis 304', '/version 200'])
  edge.cloud.said.length = 0
  // That a hub knows nothing of a resource either is no answer to who asks for it.
  edge.documents.seek()
  await edge.pass(1_000)
  assert.deepEqual(edge.cloud.said, ['/api 304', '/apis 304'])
})

test('[A6] of what changed an edge hears by another sign, and asks for that and nothing else', async () => {
  await using it = await started()
  const { hub, edge } = it
  const index = edge.cloud.document('/openapi/v3', 'any')
  index.body = index.body.replace('{', '{ ')
  await edge.pass(600_000)
  assert.deepEqual(edge.cloud.said, [], 'its hub has not looked yet')
  await hub.pass(60_000)
  await edge.pass(1_000)
  assert.deepEqual(edge.cloud.said, ['/openapi/v3 200'])
  edge.cloud.said.length = 0
  const apis = edge.cloud.document('/apis', 'aggregated')
  apis.headers = { ...apis.headers, etag: '"another"' }
  hub.documents.refresh()
  await hub.pass(1_000)
  await edge.pass(1_000)
  assert.deepEqual(edge.cloud.said, ['/apis 200'])
})

test('a hub that says nothing, or not of all, is asked for what it does not speak of', async () => {
  await using it = await started()
  const { hub, edge } = it
  const { signs } = hub.documents
  assert.equal(signs.length, toldDocuments.length)
  assert.deepEqual(signs.at(-1), signOf(...openId.map(({ body }) => body)))
  edge.cloud.told = undefined as never
  await edge.restart()
  const expected = ['/api 304', '/apis 304', '/openapi/v2 304', '/openapi/v3 200']
  const said = () => [...new Set(edge.cloud.said)].sort()
  // On a busy machine an answer takes longer than the second that passes by its clock.
  for (let second = 0; second < 30 && said().length < expected.length; second++) await edge.pass(1_000)
  assert.deepEqual(said(), expected)
  hub.cloud.documents.splice(
    hub.cloud.documents.findIndex(({ path }) => path === '/openid/v1/jwks'),
    1,
  )
  // On a busy machine the answer takes longer than the minute that passes by its clock.
  for (let minute = 0; minute < 30 && hub.documents.signs.at(-1)?.length !== 0; minute++) await hub.pass(60_000)
  assert.deepEqual(
    hub.documents.signs.map(({ length }) => length),
    [8, 8, 8, 8, 8, 0],
  )
})

function version(world: World) {
  return world.cloud.document('/version')
}
