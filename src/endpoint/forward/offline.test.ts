/** What an edge says while the cloud is away: what it knows, and never a success for something that was not done. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configMap } from '../../kube/protobuf/messages.test-support.ts'
import { Unreachable } from '../../upstream/upstream.ts'
import { admin, aliceToken, answered, EdgeWorld, statusText, whole } from '../edgeworld.test-support.ts'

const maps = '/api/v1/namespaces/pbwork/configmaps'

const reasons: Record<number, string> = { 404: 'NotFound', 405: 'MethodNotAllowed', 503: 'ServiceUnavailable' }

const status = async (world: EdgeWorld) => (await world.ask('GET', '/ake/status', { peer: admin })).json

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
  ]
  for (const [method, url] of rows) {
    const { status, json, headers } = await world.ask(method, url, { peer: admin, body: '{"metadata":{"name":"new"}}' })
    assert.deepEqual([status, json.reason, json.kind], [503, 'ServiceUnavailable', 'Status'], `${method} ${url}`)
    assert.equal(headers['retry-after'], undefined)
    assert.equal(json.details?.retryAfterSeconds, undefined)
    assert.match(json.message, /nothing was written/)
  }
})

test('what the API does not have is 404 or 405 offline too, to a caller that is known, and nothing is counted as a write', async () => {
  await using world = await offline()
  const rows: [method: string, url: string, code: number][] = [
    ['GET', '/api/v1/nosuch', 404],
    ['GET', '/api/v2/pods', 404],
    ['GET', '/apis/apps/v1/namespaces/a/nosuch', 404],
    ['POST', `${maps}/cm/whatever`, 404],
    ['GET', '/api/v1/namespaces/a/pods/p/whatever', 404],
    ['GET', '/api/v1/namespaces/a/nodes', 404],
    ['POST', `${maps}/cm`, 405],
    ['PUT', maps, 405],
    ['DELETE', '/api/v1/componentstatuses/x', 405],
    ['POST', '/api/v1/namespaces/a/pods/p/status', 405],
    ['DELETE', '/version', 405],
    ['PUT', '/api/v1', 405],
    // Younger than the discovery that is held, or of another server: that is not known.
    ['GET', '/apis/young.example/v1/things', 503],
    ['GET', '/api/v1/namespaces/../pods', 503],
  ]
  for (const [method, url, code] of rows) {
    const body = method === 'GET' ? {} : { body: '{}' }
    const { status, json } = await world.ask(method, url, { peer: admin, ...body })
    assert.deepEqual([status, json.reason], [code, reasons[code]], `${method} ${url}`)
  }
  assert.equal((await status(world)).refusedWrites, undefined)
  for (const [method, url] of rows) {
    const body = method === 'GET' ? {} : { body: '{}' }
    assert.equal((await world.ask(method, url, { token: 'a-stranger', ...body })).status, 503, `${method} ${url}`)
  }
})

test('logs, exec and the end of a pod say what does the same on the node, in words that a shell can be given', async () => {
  await using world = await offline()
  const pod = '/api/v1/namespaces/shop/pods/web-0'
  const why = 'the API server cannot be reached, and only it can answer this: the test says so'
  const labels = '--label io.kubernetes.pod.name=web-0 --label io.kubernetes.pod.namespace=shop'
  const instead = (command: string) => `${why}; the same on the node of the pod: ${command}`
  const message = async (url: string) => (await world.ask('GET', url, { peer: admin })).json.message
  assert.equal(await message(`${pod}/log`), instead(`crictl logs $(crictl ps -q ${labels})`))
  assert.equal(
    await message(`${pod}/log?container=app`),
    instead(`crictl logs $(crictl ps -q ${labels} --name '^app$')`),
  )
  assert.equal(await message(`${pod}/exec`), instead(`crictl exec -it $(crictl ps -q ${labels}) sh`))
  assert.equal(
    await message(`${pod}/portforward`),
    instead(`crictl port-forward $(crictl pods -q ${labels}) LOCAL:REMOTE`),
  )
  assert.equal(await message(`${pod}/proxy/metrics`), why)
  assert.equal(await message(`${pod}/log?container=%24%28reboot%29`), why, 'what is no name is not repeated')
  const upgrade = { hasBody: false, body: async () => Buffer.alloc(0), stream: async function* () {}, peer: admin }
  const refused = await world.endpoint.upgrade({ method: 'POST', url: `${pod}/exec`, headers: {}, ...upgrade })
  assert.ok('body' in refused)
  assert.match((await whole(refused.body)).toString(), /crictl exec -it/)
  const deleted = async (url: string) => (await world.ask('DELETE', url, { peer: admin })).json.message
  const kept = 'the API server cannot be reached, and nothing was written: the test says so'
  assert.equal(
    await deleted(pod),
    `${kept}; to restart its containers on the node: crictl stop $(crictl ps -q ${labels})`,
    'a pod is deleted to have it started again',
  )
  assert.equal(await deleted('/api/v1/namespaces/shop/pods/%24%28reboot%29'), kept)
  assert.equal(await deleted('/api/v1/namespaces/shop/pods'), kept, 'not all of them')
})

test('writes refused since the cut are counted by resource and caller, in a bounded number of rows', async () => {
  await using world = await offline()
  const put = (url: string, token?: string) =>
    world.ask('PUT', url, { ...(token === undefined ? { peer: admin } : { token }), body: '{}' })
  for (let n = 0; n < 3; n++) await put('/api/v1/namespaces/a/pods/p/status', aliceToken)
  await put(`${maps}/cm`, aliceToken)
  await put(`${maps}/cm`)
  await put(`${maps}/cm?dryRun=All`)
  await world.ask('GET', '/api/v1/secrets', { peer: admin })
  const { since, ...counted } = (await status(world)).refusedWrites
  assert.equal(since, new Date(world.cloud.clock.now()).toISOString())
  const row = { group: '', subresource: '' }
  assert.deepEqual(counted, {
    over: false,
    total: 5,
    writes: [
      { ...row, resource: 'pods', subresource: 'status', caller: 'alice', count: 3 },
      { ...row, resource: 'configmaps', caller: 'alice', count: 1 },
      { ...row, resource: 'configmaps', caller: 'ake-admin', count: 1 },
    ],
  })
  for (let n = 0; n < 100; n++) await put(`/apis/invented${n}.example/v1/things/x`)
  const { total, writes } = (await status(world)).refusedWrites
  assert.deepEqual([total, writes.length, writes[0].resource, writes[0].count], [105, 51, '', 53])
  // The morning after it can still be seen; the next cut begins another.
  world.cloud.reachability.set('reachable')
  assert.deepEqual([(await status(world)).refusedWrites.over, (await status(world)).refusedWrites.total], [true, 105])
  world.cloud.script = ({ method }) => {
    if (method === 'PUT') throw new Unreachable('its connection went away', false)
    return undefined
  }
  assert.equal((await put(`${maps}/cm`)).status, 503)
  const after = (await status(world)).refusedWrites
  assert.deepEqual([after.over, after.total], [true, 105], 'one that did not get through is no cut')
  world.cloud.reachability.set('unreachable')
  await put(`${maps}/cm`)
  assert.equal((await status(world)).refusedWrites.total, 1)
})

test('writes that were refused are a figure by resource over every cut, from 0 on, in which a caller invents no names', async () => {
  await using world = await offline()
  const put = (url: string) => world.ask('PUT', url, { peer: admin, body: '{}' })
  const figure = async () =>
    (await world.ask('GET', '/metrics', { peer: admin })).text.match(/^ake_refused_writes_total.*$/gm)
  assert.deepEqual(await figure(), ['ake_refused_writes_total{group="",resource="",subresource=""} 0'])
  await put('/api/v1/namespaces/a/pods/p/status')
  await put(`${maps}/cm`)
  await put(`${maps}/cm?dryRun=All`)
  for (let n = 0; n < 3; n++) await put(`/apis/invented${n}.example/v1/things/x`)
  world.cloud.reachability.set('reachable')
  world.cloud.reachability.set('unreachable')
  await put(`${maps}/cm`)
  assert.deepEqual(await figure(), [
    'ake_refused_writes_total{group="",resource="",subresource=""} 3',
    'ake_refused_writes_total{group="",resource="pods",subresource="status"} 1',
    'ake_refused_writes_total{group="",resource="configmaps",subresource=""} 2',
  ])
})

test('creating what exists is 409, in JSON and in protobuf, to a caller that may create', async () => {
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

test('[I1] a caller that speaks for another is answered here what that one may read, without the cloud alone', async () => {
  await using world = await offline()
  world.cloud.judge.users.set('jane-token', { name: 'jane', uid: '', groups: ['system:authenticated'] })
  world.cloud.reachability.set('reachable')
  assert.equal((await world.ask('GET', `${maps}?resourceVersion=0`, { token: 'jane-token' })).status, 200)
  world.cloud.reachability.set('unreachable')
  const headers = { 'impersonate-user': 'jane' }
  const rows = [
    // Jane has listed before, and never asked for this one.
    ['GET', `${maps}/cm`, [503, 503, 403]],
    ['GET', `${maps}?resourceVersion=0`, [200, 503, 403]],
    ['GET', `${maps}?watch=1`, [503, 503, 403]],
    // Documents, and whatever is written, are the API server's.
    ['GET', '/api', [503, 503, 503]],
    ['POST', maps, [503, 503, 503]],
  ] as const
  for (const [method, url, expected] of rows) {
    const asking = method === 'POST' ? { body: { metadata: { name: 'cm' } } } : {}
    const found = [
      await world.ask(method, url, { peer: admin, headers, ...asking }),
      await world.ask(method, url, { peer: admin, headers: { 'impersonate-user': 'mallory' }, ...asking }),
      await world.ask(method, url, { peer: {}, headers, ...asking }),
    ]
    assert.deepEqual(
      found.map(({ status }) => status),
      expected,
      `${method} ${url}`,
    )
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
