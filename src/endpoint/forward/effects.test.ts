/** Read your writes where the reply does not hold the object: subresources, collections, and deletions that only try. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeMessage, messageOf, wrap } from '../../kube/protobuf/protobuf.ts'
import { tooManyRequests } from '../../kube/status.ts'
import { Unreachable, Unspoken } from '../../upstream/upstream.ts'
import { type Asking, aliceToken, answered, EdgeWorld, statusText, whole } from '../edgeworld.test-support.ts'

const pods = '/api/v1/namespaces/a/pods'
const done = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
const protobuf = 'application/vnd.kubernetes.protobuf'

/** Pods p1 and p2 of namespace a are kept, at version 3. */
async function synced(): Promise<EdgeWorld> {
  const world = await EdgeWorld.open()
  world.cloud.server.put('pods', 'a/p1', { value: 'one' })
  world.cloud.server.put('pods', 'a/p2', { value: 'one' })
  await world.synced('pods', 'a')
  return world
}

function replies(world: EdgeWorld, reply: string | Buffer, type = 'application/json', status = 200): void {
  world.cloud.script = async ({ method, path, body }) => {
    if (method === 'GET' || !path.startsWith('/api/')) return undefined
    if (body !== undefined) await whole(body)
    return answered(status, reply, { 'content-type': type })
  }
}

/** What happens from now on comes to the edge that much later. */
function lag(world: EdgeWorld, ms: number): void {
  for (const watch of world.cloud.server.watches) {
    const hear = watch.hear.bind(watch)
    watch.hear = (change) => void world.cloud.clock.setTimer(ms, () => hear(change))
  }
}

function write(world: EdgeWorld, method: string, url: string, asking: Asking = {}) {
  return world.later(method, url, { token: aliceToken, body: {}, ...asking })
}

async function listed(world: EdgeWorld, url = pods): Promise<string[]> {
  const { json } = await world.get(url)
  return json.items.map((item: { metadata: { name: string }; value: string }) => `${item.metadata.name} ${item.value}`)
}

const metadata = (name: string, version: number, more = {}) => {
  return { name, namespace: 'a', uid: name === 'p1' ? 'u1' : 'u2', resourceVersion: String(version), ...more }
}

test('[A7] a Scale is held until what it scales has reached its version', async () => {
  await using world = await synced()
  replies(world, JSON.stringify({ kind: 'Scale', apiVersion: 'autoscaling/v1', metadata: metadata('p1', 4) }))
  const put = write(world, 'PUT', `${pods}/p1/scale`)
  await world.pass(1_000)
  assert.equal(put.done, false)
  world.cloud.server.put('pods', 'a/p1', { value: 'scaled' })
  await world.until(() => put.done, 1)
  assert.deepEqual(await listed(world), ['p1 scaled', 'p2 one'])
  await world.pass(3_000)
  assert.equal((await world.get(`${pods}/p1?resourceVersion=0`)).json.kind, 'Pod', 'a Scale is never shown for it')
})

test('[A7] a binding or an eviction is held until the copy has the pod as the API server then has it', async () => {
  for (const subresource of ['binding', 'eviction']) {
    await using world = await synced()
    const { server } = world.cloud
    replies(world, done)
    // The watch lags: the look of the edge sees what the copy does not have yet.
    lag(world, 500)
    if (subresource === 'binding') server.put('pods', 'a/p1', { value: 'bound', node: 'n1' })
    else server.remove('pods', 'a/p1')
    const post = write(world, 'POST', `${pods}/p1/${subresource}`)
    await world.pass(100)
    assert.equal(post.done, false, subresource)
    await world.until(() => post.done, 2)
    assert.deepEqual(await listed(world), subresource === 'binding' ? ['p1 bound', 'p2 one'] : ['p2 one'])
    const looks = world.cloud.passed('GET', `${pods}/p1`)
    assert.deepEqual(
      looks.map(({ identity }) => identity.kind),
      ['edge'],
    )
  }
})

test('[A7] an interest that begins to show the object is waited for too, by its labels or its fields', async () => {
  await using world = await synced()
  const { server } = world.cloud
  for (const query of ['labelSelector=app%3Dx', 'fieldSelector=spec.nodeName%3Dn1']) {
    const url = `/api/v1/pods?${query}`
    const listing = world.later('GET', `${url}&resourceVersion=0`)
    await world.until(() => listing.done)
    assert.deepEqual(await listed(world, url), [])
  }
  await world.until(() => server.watches.size >= 3)
  const before = server.version
  lag(world, 400)
  const reply = { kind: 'Pod', apiVersion: 'v1', spec: { nodeName: 'n1' }, value: 'made' }
  const meta = { name: 'p9', namespace: 'b', uid: 'u9', resourceVersion: String(before + 1), labels: { app: 'x' } }
  replies(world, JSON.stringify({ ...reply, metadata: meta }), 'application/json', 201)
  server.put('pods', 'b/p9', { value: 'made', node: 'n1', labels: { app: 'x' } })
  const post = write(world, 'POST', '/api/v1/namespaces/b/pods')
  await world.pass(100)
  assert.equal(post.done, false)
  await world.until(() => post.done, 2)
  assert.deepEqual(await listed(world, '/api/v1/pods?labelSelector=app%3Dx'), ['p9 made'])
  assert.deepEqual(await listed(world, '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1'), ['p9 made'])
})

test('[A7] where only metadata is answered and a selector may choose the object, the edge looks at it', async () => {
  await using world = await synced()
  const { server } = world.cloud
  const url = '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1'
  const listing = world.later('GET', `${url}&resourceVersion=0`)
  await world.until(() => listing.done && server.watches.size >= 2)
  lag(world, 400)
  const version = server.put('pods', 'b/p9', { value: 'made', node: 'n1' })
  const meta = { name: 'p9', namespace: 'b', uid: 'u9', resourceVersion: String(version) }
  replies(world, JSON.stringify({ kind: 'PartialObjectMetadata', metadata: meta }), 'application/json', 201)
  const post = write(world, 'POST', '/api/v1/namespaces/b/pods')
  await world.pass(100)
  assert.equal(post.done, false)
  await world.until(() => post.done, 2)
  assert.deepEqual(await listed(world, url), ['p9 made'])
})

test('[A7] a write in one version of a resource is waited for in the others', async () => {
  await using world = await EdgeWorld.open()
  const { server } = world.cloud
  server.put('pods', 'a/p1', { value: 'one' })
  await world.synced('pods', 'a')
  replies(world, JSON.stringify({ kind: 'Pod', apiVersion: 'v2', metadata: metadata('p1', 3) }))
  const put = write(world, 'PUT', '/api/v2/namespaces/a/pods/p1')
  await world.pass(1_000)
  assert.equal(put.done, false)
  server.put('pods', 'a/p1', { value: 'two' })
  await world.until(() => put.done, 1)
})

test('[A7] where the edge may not look, as a node behind a hub, it looks in the name of who has written', async () => {
  await using world = await synced()
  const { server } = world.cloud
  lag(world, 500)
  server.put('pods', 'a/p1', { value: 'bound', node: 'n1' })
  world.cloud.script = ({ method, path, identity }) => {
    if (method === 'POST' && path.endsWith('/binding')) return answered(201, done)
    const isLook = method === 'GET' && path === `${pods}/p1`
    return isLook && identity.kind === 'edge' ? answered(403, statusText(403, 'no')) : undefined
  }
  const post = write(world, 'POST', `${pods}/p1/binding`)
  await world.pass(100)
  assert.equal(post.done, false)
  await world.until(() => post.done, 2)
  assert.deepEqual(await listed(world), ['p1 bound', 'p2 one'])
  assert.deepEqual(
    world.cloud.passed('GET', `${pods}/p1`).map(({ identity }) => identity.kind),
    ['edge', 'token'],
  )
})

test('[I1] a write that its caller makes in the name of another is not looked at in the name of who has written', async () => {
  await using world = await synced()
  world.cloud.script = ({ method, path }) => {
    if (method === 'POST' && path.endsWith('/binding')) return answered(201, done)
    return method === 'GET' && path === `${pods}/p1` ? answered(403, statusText(403, 'no')) : undefined
  }
  const post = write(world, 'POST', `${pods}/p1/binding`, { headers: { 'impersonate-user': 'bob' } })
  assert.equal((await post.answer).status, 201)
  assert.deepEqual(
    world.cloud.passed('GET', `${pods}/p1`).map(({ identity }) => identity.kind),
    ['edge'],
  )
})

test('[A7] where the edge may not look, or what it sees is what the copy shows, nobody waits', async () => {
  await using world = await synced()
  for (const status of [403, 500, 200]) {
    world.cloud.script = ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/binding')) return answered(201, done)
      return method === 'GET' && status !== 200 && path === `${pods}/p1`
        ? answered(status, statusText(status, 'no'))
        : undefined
    }
    const post = write(world, 'POST', `${pods}/p1/binding`)
    await world.pass(1)
    assert.equal(post.done, true, String(status))
  }
})

test('[A7] a look that the line turns away fails no write', async () => {
  await using world = await synced()
  const failures = [tooManyRequests('too many', 1), new Unspoken('not for alice'), new Unreachable('broke off', false)]
  for (const failure of failures) {
    world.cloud.script = ({ method, path }) => {
      if (method === 'POST' && path.endsWith('/binding')) return answered(201, done)
      if (path === `${pods}/p1`) throw failure
      return undefined
    }
    assert.equal((await write(world, 'POST', `${pods}/p1/binding`).answer).status, 201, failure.message)
  }
})

test('[A7] a look that nobody answers holds the reply no longer than a copy may', async () => {
  await using world = await synced()
  world.cloud.script = ({ method, path }) => {
    if (method === 'POST' && path.endsWith('/binding')) return answered(201, done)
    return path === `${pods}/p1` ? 'hang' : undefined
  }
  const post = write(world, 'POST', `${pods}/p1/binding`)
  await world.pass(1_900)
  assert.equal(post.done, false)
  await world.pass(200)
  assert.equal((await post.answer).status, 201)
  assert.equal(world.cloud.passed('GET', `${pods}/p1`).at(-1)?.signal?.aborted, true, 'it is given up')
})

test('[A7] the deletion of a collection is held until each object it names is gone or has changed', async () => {
  const items = [{ metadata: metadata('p1', 2) }, { metadata: metadata('p2', 3) }]
  const list = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '3' }, items }
  const message = messageOf('v1', 'PodList')
  assert.ok(message)
  const type = { kind: 'PodList', apiVersion: 'v1' }
  const rows: [Buffer | string, string][] = [
    [JSON.stringify(list), 'application/json'],
    [`${JSON.stringify(list, undefined, 2)}\n`, 'application/json'],
    [wrap(type, encodeMessage(message, Buffer.from(JSON.stringify(list)))), protobuf],
  ]
  for (const [body, contentType] of rows) {
    await using world = await synced()
    const { server } = world.cloud
    replies(world, body, contentType)
    const remove = write(world, 'DELETE', pods)
    await world.pass(500)
    server.remove('pods', 'a/p1')
    await world.pass(100)
    assert.equal(remove.done, false, 'one is still as it was')
    // A finalizer or its grace keeps it, marked.
    server.put('pods', 'a/p2', { value: 'ending' })
    await world.until(() => remove.done, 1)
    assert.deepEqual(await listed(world), ['p2 ending'])
    assert.equal(world.cloud.passed('GET', `${pods}/p1`).length, 0, 'the reply tells it all')
  }
})

test('[A7] what was being deleted already when its collection was is looked at, and not waited for in vain', async () => {
  await using world = await synced()
  const ending = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  const items = [{ metadata: metadata('p1', 2, ending) }, { metadata: metadata('p2', 3, ending) }]
  replies(world, JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items }))
  const { server } = world.cloud
  lag(world, 500)
  server.remove('pods', 'a/p2')
  const remove = write(world, 'DELETE', pods)
  await world.pass(100)
  assert.equal(remove.done, false, 'p2 is gone at the API server')
  await world.until(() => remove.done, 2)
  assert.deepEqual(await listed(world), ['p1 one'])
})

test('[A7] a deletion that only tries is not held, wherever and however it says so', async () => {
  const options = { dryRun: ['All'] }
  const encoded = (kind: string, apiVersion: string, object: object) => {
    const message = messageOf(apiVersion, kind)
    assert.ok(message, kind)
    return wrap({ kind, apiVersion }, encodeMessage(message, Buffer.from(JSON.stringify(object))))
  }
  const deleted = JSON.stringify({
    kind: 'Status',
    status: 'Success',
    details: { name: 'p1', kind: 'pods', uid: 'u1' },
  })
  const list = { kind: 'PodList', apiVersion: 'v1', metadata: {}, items: [{ metadata: metadata('p1', 2) }] }
  const eviction = { metadata: { name: 'p1' }, deleteOptions: options }
  const rows: [string, string, Buffer | string, string, string][] = [
    ['DELETE', `${pods}/p1`, JSON.stringify(options), 'application/json', deleted],
    ['DELETE', `${pods}/p1`, 'dryRun:\n- All\n', 'application/yaml', deleted],
    ['DELETE', `${pods}/p1`, encoded('DeleteOptions', 'meta.k8s.io/v1', options), protobuf, deleted],
    ['DELETE', pods, JSON.stringify(options), 'application/json', JSON.stringify(list)],
    ['POST', `${pods}/p1/eviction`, JSON.stringify(eviction), 'application/json', done],
    ['POST', `${pods}/p1/eviction`, encoded('Eviction', 'policy/v1', eviction), protobuf, done],
  ]
  await using world = await synced()
  for (const [method, url, body, type, reply] of rows) {
    replies(world, reply)
    const before = world.cloud.asked.length
    const asking = write(world, method, url, { body, headers: { 'content-type': type } })
    await world.pass(1)
    assert.equal(asking.done, true, `${method} ${url} ${type}`)
    assert.equal(world.cloud.asked.length, before + 1, 'nor looked at')
  }
  replies(world, deleted)
  const real = write(world, 'DELETE', `${pods}/p1`, { body: '{"dryRun":[]}' })
  await world.pass(1_000)
  assert.equal(real.done, false, 'one that is meant is')
  world.cloud.server.remove('pods', 'a/p1')
  await world.until(() => real.done, 1)
})
