import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMap = '/api/v1/namespaces/default/configmaps/m'
const deployments = '/apis/apps/v1/namespaces/default/deployments'
const apply = 'application/apply-patch+yaml'
const merge = 'application/merge-patch+json'

type Entry = { manager: string; operation: string; fieldsV1: unknown }

const named = (data: unknown, meta = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'm', ...meta },
  data,
})

function owners(body: { metadata: { managedFields?: Entry[] } }): string[] {
  return (body.metadata.managedFields ?? []).map(
    ({ manager, operation, fieldsV1 }) => `${manager} ${operation} ${JSON.stringify(fieldsV1)}`,
  )
}

async function refusal(world: FakeWorld, body: unknown, query = 'fieldManager=a', url = configMap): Promise<string> {
  const { code, body: status } = await world.send('PATCH', `${url}?${query}`, body, apply)
  return `${code} ${status.message}`
}

test('an apply creates, merges, and gives up what it does not name any more', async () => {
  const world = new FakeWorld()
  const made = await world.send('PATCH', `${configMap}?fieldManager=a`, named({ x: '1', y: '1' }), apply)
  assert.equal(made.code, 201)
  assert.deepEqual(owners(made.body), ['a Apply {"f:data":{"f:x":{},"f:y":{}}}'])
  await world.send('PATCH', `${configMap}?fieldManager=u`, { data: { z: '1' } }, merge)
  const { code, body } = await world.send('PATCH', `${configMap}?fieldManager=a`, named({ x: '2' }), apply)
  assert.equal(code, 200)
  assert.deepEqual(body.data, { x: '2', z: '1' })
  assert.deepEqual(owners(body), ['a Apply {"f:data":{"f:x":{}}}', 'u Update {"f:data":{"f:z":{}}}'])
})

test('applying the same again is no new version', async () => {
  const world = new FakeWorld()
  const { body } = await world.send('PATCH', `${configMap}?fieldManager=a`, named({ x: '1' }), apply)
  world.clock.advance(5000)
  const { body: again } = await world.send('PATCH', `${configMap}?fieldManager=a`, named({ x: '1' }), apply)
  assert.deepEqual(again, body)
})

test('what another owns with another value is a conflict, unless it is taken by force', async () => {
  const world = new FakeWorld()
  await world.send('PATCH', `${configMap}?fieldManager=a`, named({ x: '1', y: '1' }), apply)
  await world.send('PATCH', `${configMap}?fieldManager=u`, { data: { z: '1' } }, merge)
  const { code, body } = await world.send('PATCH', `${configMap}?fieldManager=b`, named({ x: '2' }), apply)
  assert.equal(code, 409)
  assert.equal(body.message, 'Apply failed with 1 conflict: conflict with "a": .data.x')
  assert.deepEqual(body.details, {
    causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "a"', field: '.data.x' }],
  })
  assert.equal(
    await refusal(world, named({ x: '2', y: '2', z: '2' }), 'fieldManager=b'),
    '409 Apply failed with 3 conflicts: conflicts with "a":\n- .data.x\n- .data.y\nconflicts with "u" using v1:\n- .data.z',
  )
  const taken = await world.send('PATCH', `${configMap}?fieldManager=b&force=true`, named({ x: '2' }), apply)
  assert.deepEqual(owners(taken.body), [
    'a Apply {"f:data":{"f:y":{}}}',
    'b Apply {"f:data":{"f:x":{}}}',
    'u Update {"f:data":{"f:z":{}}}',
  ])
  // The same value is shared, not fought over.
  assert.equal((await world.send('PATCH', `${configMap}?fieldManager=c`, named({ x: '2' }), apply)).code, 200)
})

test('a dry run tells what would be, and changes nothing', async () => {
  const world = new FakeWorld()
  const { code, body } = await world.send('PATCH', `${configMap}?fieldManager=a&dryRun=All`, named({ x: '1' }), apply)
  assert.equal(code, 201)
  assert.equal(body.metadata.resourceVersion, undefined)
  assert.equal((await world.send('GET', configMap)).code, 404)
})

test('bodies may be YAML; keys that stand twice are warned of or refused', async () => {
  const world = new FakeWorld()
  const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  x: "1"\n  x: "2"\n'
  const { body, warnings } = await world.send('PATCH', `${configMap}?fieldManager=a`, yaml, apply)
  assert.equal(body.data.x, '2')
  assert.deepEqual(warnings, ['line 7: key "x" already set in map'])
  assert.equal(
    await refusal(world, yaml, 'fieldManager=a&fieldValidation=Strict'),
    '400 error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key "x" already set in map',
  )
  const ignored = await world.send('PATCH', `${configMap}?fieldManager=a&fieldValidation=Ignore`, yaml, apply)
  assert.deepEqual(ignored.warnings, [])
})

test('bodies that are no configuration are refused as the real server does', async () => {
  const world = new FakeWorld()
  const type = 'into Go value of type map[string]interface {}'
  const reading = 'error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal'
  assert.equal(await refusal(world, '[]'), `400 ${reading} array ${type}`)
  assert.equal(await refusal(world, ''), '400 invalid object type: /, Kind=')
  assert.equal(await refusal(world, { ...named({}), kind: 'Secret' }), '400 invalid object type: /v1, Kind=Secret')
  assert.equal(await refusal(world, { ...named({}), apiVersion: 'a/b/c' }), '400 invalid object type: /, Kind=')
  assert.equal(await refusal(world, named({}, { managedFields: [] })), '400 metadata.managedFields must be nil')
  assert.equal(
    await refusal(world, named({ x: 1 })),
    '500 failed to create typed patch object (/m; /v1, Kind=ConfigMap): .data.x: expected string, got &value.valueUnstructured{Value:1}',
  )
  assert.equal(
    await refusal(world, { ...named({}), more: 1 }),
    '500 failed to create typed patch object (/m; /v1, Kind=ConfigMap): .more: field not declared in schema',
  )
  assert.match(await refusal(world, named({}, { name: 'n' })), /^400 the name of the object \(n\) does not match/)
  assert.match(await refusal(world, named({}, { namespace: 'n' })), /^400 the namespace of the provided object/)
  assert.match(
    await refusal(world, named({}, { uid: 'x' })),
    /^409 .*uid mismatch: the provided object specified uid x/,
  )
  assert.match(await refusal(world, named({}), ''), /^422 .*fieldManager: Required value: is required for apply patch$/)
  const elsewhere = '/api/v1/namespaces/none/configmaps/m'
  assert.equal(await refusal(world, named({}), 'fieldManager=a', elsewhere), '404 namespaces "none" not found')
  await world.send('PATCH', `${configMap}?fieldManager=a`, named({}), apply)
  assert.match(await refusal(world, named({}, { uid: 'x' })), /^422 .*metadata.uid: .*field is immutable$/)
  assert.match(await refusal(world, named({}, { resourceVersion: '1' })), /^409 .*the object has been modified/)
})

test('a status or a Scale can be applied, but not created', async () => {
  const world = new FakeWorld()
  const spec = { selector: { matchLabels: { a: 'b' } }, template: { metadata: { labels: { a: 'b' } }, spec: {} } }
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'd' } }
  const status = { ...deployment, spec: { replicas: 7 }, status: { replicas: 2 } }
  assert.equal((await world.send('PATCH', `${deployments}/d/status?fieldManager=a`, status, apply)).code, 404)
  const containers = [{ name: 'c', image: 'i' }]
  const full = { ...deployment, spec: { ...spec, replicas: 1, template: { ...spec.template, spec: { containers } } } }
  assert.equal((await world.send('PATCH', `${deployments}/d?fieldManager=a`, full, apply)).code, 201)
  const { body } = await world.send('PATCH', `${deployments}/d/status?fieldManager=s`, status, apply)
  assert.deepEqual(body.status, { replicas: 2 })
  assert.equal(body.spec.replicas, 1)
  assert.equal(owners(body)[1], 's Apply {"f:status":{"f:replicas":{}}}')
  const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'd' }, spec: { replicas: 5 } }
  assert.equal(
    await refusal(world, scale, 'fieldManager=s', `${deployments}/d/scale`),
    '409 Apply failed with 1 conflict: conflict with "a": .spec.replicas',
  )
  const scaled = await world.send('PATCH', `${deployments}/d/scale?fieldManager=s&force=1`, scale, apply)
  assert.deepEqual(scaled.body.spec, { replicas: 5 })
  const { body: after } = await world.send('GET', `${deployments}/d`)
  assert.equal(after.spec.replicas, 5)
  assert.equal(owners(after)[0], 's Apply {"f:spec":{"f:replicas":{}}}')
})

test('a custom resource: defaults come, a null is for validation to judge', async () => {
  const world = new FakeWorld()
  world.serve(...widgets())
  const url = '/apis/we.dev/v1/namespaces/default/widgets/w'
  const widget = (spec: unknown) => ({ apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'w' }, spec })
  const { body } = await world.send('PATCH', `${url}?fieldManager=a`, widget({ replicas: 1 }), apply)
  assert.deepEqual(body.spec, { replicas: 1, color: 'red' })
  assert.deepEqual(owners(body), ['a Apply {"f:spec":{"f:replicas":{}}}'])
  assert.match(
    await refusal(world, widget({ replicas: null }), 'fieldManager=a', url),
    /^422 .*spec.replicas: Invalid value: "null": spec.replicas in body must be of type integer: "null"/,
  )
  assert.match(
    await refusal(world, widget({ size: 1 }), 'fieldManager=a', url),
    /^500 .*\(\/w; we.dev\/v1, Kind=Widget\): .spec.size: field not declared in schema$/,
  )
})

const annotation = 'kubectl.kubernetes.io/last-applied-configuration'

test('kubectl takes over what it had applied itself, and keeps its record in step', async () => {
  const world = new FakeWorld()
  const last = { ...named({ x: '1', y: '1' }), metadata: { name: 'm' } }
  const before = {
    ...named({ x: '1', y: '1' }),
    metadata: { name: 'm', annotations: { [annotation]: JSON.stringify(last) } },
  }
  await world.send('POST', '/api/v1/namespaces/default/configmaps?fieldManager=kubectl-client-side-apply', before)
  assert.match(await refusal(world, named({ x: '2' }), 'fieldManager=other'), /^409/)
  const { code, body } = await world.send('PATCH', `${configMap}?fieldManager=kubectl`, named({ x: '2' }), apply)
  assert.equal(code, 200)
  assert.deepEqual(body.data, { x: '2', y: '1' })
  assert.equal(
    body.metadata.annotations[annotation],
    '{"apiVersion":"v1","data":{"x":"2"},"kind":"ConfigMap","metadata":{"name":"m"}}\n',
  )
  // What another manager has changed since is a conflict to kubectl too.
  await world.send('PATCH', `${configMap}?fieldManager=u`, { data: { y: '5' } }, merge)
  assert.match(await refusal(world, named({ x: '2', y: '6' }), 'fieldManager=kubectl'), /^409 .*conflict with "u"/)
})

test('what was there before the first apply has an owner', async () => {
  const world = new FakeWorld()
  world.seed('/configmaps', '{"metadata":{"name":"m","namespace":"default","uid":"u"},"data":{"x":"1","y":"1"}}')
  assert.equal(
    await refusal(world, named({ x: '2' })),
    '409 Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.x',
  )
  const { body } = await world.send('PATCH', `${configMap}?fieldManager=a&force=true`, named({ x: '2' }), apply)
  assert.deepEqual(owners(body), [
    'a Apply {"f:data":{"f:x":{}}}',
    'before-first-apply Update {"f:data":{".":{},"f:y":{}}}',
  ])
})
