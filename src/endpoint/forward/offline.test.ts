/** What an edge says while the cloud is away: what it knows, and never a success for something that was not done. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configMap } from '../../kube/protobuf/messages.test-support.ts'
import { admin, aliceToken, answered, EdgeWorld, statusText } from '../edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/pbwork/configmaps'

/** Alice has created here before, so that she is known to be allowed. */
async function offline(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.server.put('configmaps', 'pbwork/cm', { value: 'one' })
  await world.synced('configmaps', 'pbwork')
  world.cloud.script = ({ method, path }) => (method === 'POST' && path === maps ? answered(201, '{}') : undefined)
  await world.ask('POST', maps, { token: aliceToken, body: {} })
  world.cloud.script = () => undefined
  world.cloud.reachability.set('unreachable')
  return world
}

test('writes are 503 without Retry-After: client-go would ask ten times within the call', async () => {
  await using world = await offline()
  const rows: [string, string][] = [
    ['POST', maps],
    ['PUT', `${maps}/cm`],
    ['PATCH', `${maps}/cm`],
    ['DELETE', `${maps}/cm`],
    ['DELETE', maps],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'],
    ['POST', `${maps}/cm/whatever`],
  ]
  for (const [method, url] of rows) {
    const { status, json, headers } = await world.ask(method, url, { peer: admin, body: '{"metadata":{"name":"new"}}' })
    assert.deepEqual([status, json.reason, json.kind], [503, 'ServiceUnavailable', 'Status'], `${method} ${url}`)
    assert.equal(headers['retry-after'], undefined)
    assert.equal(json.details?.retryAfterSeconds, undefined)
    assert.match(json.message, /nothing was written/)
  }
})

test('creating what exists is 409, in JSON and in protobuf, to whoever may create', async () => {
  await using world = await offline()
  const body = { kind: 'ConfigMap', metadata: { name: 'cm' } }
  const protobuf = { 'content-type': 'application/vnd.kubernetes.protobuf' }
  for (const asking of [{ body }, { body: configMap, headers: protobuf }]) {
    const { status, json } = await world.ask('POST', maps, { token: aliceToken, ...asking })
    assert.deepEqual([status, json.reason, json.message], [409, 'AlreadyExists', 'configmaps "cm" already exists'])
  }
  const create = async (more: object, url = maps) => (await world.ask('POST', url, { body, ...more })).status
  assert.equal(await create({ peer: admin }), 409)
  assert.equal(await create({ token: aliceToken, body: { metadata: { name: 'other' } } }), 503)
  assert.equal(await create({ token: aliceToken, body: { metadata: { generateName: 'cm' } } }), 503)
  assert.equal(await create({ token: aliceToken, body: 'not JSON' }), 503)
  assert.equal(await create({ peer: admin }, '/api/v1/namespaces/b/configmaps'), 503, 'another namespace')
  // Whether it exists is not told to a caller that may not create.
  assert.notEqual(await create({ token: 'a-stranger' }), 409)
  assert.notEqual(await create({ peer: admin, headers: { 'impersonate-user': 'x' } }), 409)
})

test('[I1] whoever speaks for somebody else is never answered here: reads and writes', async () => {
  await using world = await offline()
  const headers = { 'impersonate-user': 'alice' }
  for (const peer of [admin, {}]) {
    for (const [method, url] of [
      ['GET', `${maps}/cm`],
      ['GET', `${maps}?resourceVersion=0`],
      ['GET', `${maps}?watch=1`],
      ['GET', '/api'],
      ['POST', maps],
    ] as const) {
      const asking = method === 'POST' ? { body: { metadata: { name: 'cm' } } } : {}
      const { status } = await world.ask(method, url, { peer, headers, ...asking })
      assert.equal(status, 503, `${method} ${url}`)
    }
  }
  world.cloud.reachability.set('reachable')
  world.cloud.script = ({ headers: sent }) =>
    sent?.['impersonate-user'] === undefined ? undefined : answered(403, statusText(403, 'theirs'))
  const { json } = await world.ask('GET', `${maps}/cm?resourceVersion=0`, { peer: admin, headers })
  assert.equal(json.message, 'theirs')
})

test('a caller that was told no hears no, not that the cloud is away', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.judge.users.set('mallory-token', { name: 'mallory', uid: 'm', groups: [] })
  world.cloud.judge.allows = ({ name }) => name !== 'mallory'
  world.cloud.script = ({ method, identity }) =>
    method === 'PUT' && identity.kind === 'token' ? answered(403, statusText(403, 'theirs')) : undefined
  const put = () => world.ask('PUT', `${maps}/cm`, { token: 'mallory-token', body: '{}' })
  assert.equal((await put()).json.message, 'theirs')
  world.cloud.reachability.set('unreachable')
  const { status, json } = await put()
  assert.equal(status, 403)
  assert.match(json.message, /"mallory" cannot update resource "configmaps"/)
})
