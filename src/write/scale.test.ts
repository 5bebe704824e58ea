import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, parseJson, printJson } from '../kube/json/json.ts'
import { readScale } from '../kube/schema/scale.ts'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const deployment = '/apis/apps/v1/namespaces/default/deployments/d'
const merge = 'application/merge-patch+json'

async function worldWithDeployment(): Promise<FakeWorld> {
  const world = new FakeWorld()
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'a', image: 'b' }] } }
  const selector = { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'A', operator: 'NotIn', values: ['y', 'x'] }] }
  const made = await world.send('POST', '/apis/apps/v1/namespaces/default/deployments', {
    metadata: { name: 'd' },
    spec: { selector, template },
  })
  assert.equal(made.code, 201)
  return world
}

test('a Scale is read out of the object and its replicas are written back', async () => {
  const world = await worldWithDeployment()
  const put = await world.send('PUT', `${deployment}/scale`, { metadata: { name: 'd' }, spec: { replicas: 3 } })
  assert.equal(put.code, 200)
  assert.deepEqual(put.body, {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: {
      name: 'd',
      namespace: 'default',
      uid: 'uid-1',
      resourceVersion: '103',
      creationTimestamp: '2026-01-02T03:04:05Z',
    },
    spec: { replicas: 3 },
    status: { replicas: 0, selector: 'A notin (x,y),a=b' },
  })
  const patched = await world.send('PATCH', `${deployment}/scale`, { spec: { replicas: 0 } }, merge)
  assert.deepEqual(Object.keys(patched.body.spec), [])
  const { body } = await world.send('GET', deployment)
  assert.deepEqual([body.spec.replicas, body.metadata.generation], [0, 3])
})

test('refusals of a Scale', async () => {
  const world = await worldWithDeployment()
  const put = async (metadata: object, replicas: unknown, url = deployment) => {
    const { code, body } = await world.send('PUT', `${url}/scale`, { metadata, spec: { replicas } })
    return `${code} ${body.message}`
  }
  assert.match(
    await put({ name: 'd' }, -1),
    /^422 Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be/,
  )
  assert.match(await put({ name: 'd', resourceVersion: '3' }, 1), /^409/)
  assert.match(await put({ name: 'e' }, 1), /^400/)
  assert.match(await put({ name: 'e' }, 1, deployment.replace(/d$/, 'e')), /^404 deployments.apps "e" not found/)
})

test('a custom resource scales along the paths of its definition', async () => {
  const world = new FakeWorld()
  world.serve(...widgets())
  const url = '/apis/we.dev/v1/namespaces/default/widgets'
  await world.send('POST', url, { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' } })
  await world.send('PATCH', `${url}/w/status`, { status: { replicas: 2, selector: 'a=b' } }, merge)
  const { body } = await world.send('PATCH', `${url}/w/scale`, { spec: { replicas: 8 } }, merge)
  assert.deepEqual([body.spec.replicas, body.status.replicas, body.status.selector], [8, 2, 'a=b'])
  const negative = await world.send('PATCH', `${url}/w/scale`, { spec: { replicas: -8 } }, merge)
  assert.match(negative.body.message, /\.spec\.replicas: Invalid value: -8: should be a non-negative integer/)
  world.unserve('we.dev/widgets')
  world.serve(...widgets({ unscaled: true }))
  assert.equal((await world.send('PATCH', `${url}/w/scale`, { spec: { replicas: 1 } }, merge)).code, 405)
})

test('a custom resource without replicas has no Scale to read, and can be given one', async () => {
  const world = new FakeWorld()
  const [resource, definition] = widgets()
  world.serve(resource, definition)
  const url = '/apis/we.dev/v1/namespaces/default/widgets'
  await world.send('POST', url, { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' } })
  const stored = () => {
    const found = world.objectsOf('we.dev/widgets').get('default/w')
    assert.ok(found)
    return parseJson(found.bytes) as JsonObject
  }
  const kept = { custom: true, scale: definition.scale }
  assert.throws(() => readScale(kept, stored()), {
    message: 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
  })
  assert.equal((await world.send('PATCH', `${url}/w/scale`, { spec: { replicas: 2 } }, merge)).code, 200)
  assert.equal(JSON.parse(printJson(readScale(kept, stored()))).spec.replicas, 2)
})

test('a Scale is decoded like any object', async () => {
  const world = await worldWithDeployment()
  const patched = await world.send('PATCH', `${deployment}/scale`, { spec: { replicas: 'x' } }, merge)
  assert.match(
    patched.body.message,
    /^ "" is invalid: patch: Invalid value: "\{\\"apiVersion\\":\\"autoscaling\/v1\\",.*: json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32$/,
  )
  const other = await world.send('PATCH', `${deployment}/scale`, { kind: 'Foo' }, merge)
  assert.match(other.body.message, /no kind "Foo" is registered for version "autoscaling\/v1"/)
  const strange = await world.send('PUT', `${deployment}/scale`, { metadata: { name: 'd' }, spec: { foo: 1 } })
  assert.deepEqual([strange.code, ...strange.warnings], [200, 'unknown field "spec.foo"'])
  const wrong = await world.send('PUT', `${deployment}/scale`, { apiVersion: 'apps/v1', kind: 'Scale' })
  assert.match(wrong.body.message, /^Scale in version "v1" cannot be handled as a Scale: no kind "Scale" is registered/)
})
