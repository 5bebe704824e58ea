// All texts are what kube-apiserver 1.36.3 says; the corpus of the differential step asks it again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Schema } from '../kube/schema/schema.ts'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'

test('an object of another kind is read as what it says it is before it is refused', async () => {
  const world = new FakeWorld()
  const refusals: readonly (readonly [sent: object, why: string])[] = [
    [{ kind: 'Secret', apiVersion: 'v1', data: { a: '!' } }, 'illegal base64 data at input byte 0'],
    [
      { kind: 'Secret', apiVersion: 'v1', data: 'x' },
      'json: cannot unmarshal string into Go struct field Secret.data of type map[string][]uint8',
    ],
    [
      { kind: 'Deployment', apiVersion: 'apps/v1', spec: { replicas: 'x' } },
      'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      { kind: 'Deployment', apiVersion: 'apps/v1', spec: { nonsense: 1 } },
      'converting (v1.Deployment) to (core.ConfigMap): unknown conversion',
    ],
  ]
  for (const [sent, why] of refusals) {
    const { code, body } = await world.send('POST', configMaps, { ...sent, metadata: { name: 'x' } })
    assert.equal(code, 400)
    assert.match(body.message, / in version "v1" cannot be handled as a ConfigMap: /)
    assert.ok(body.message.endsWith(why), body.message)
  }
})

test('a custom resource sent as another version is read by that version before it is refused', async () => {
  const world = new FakeWorld()
  const schemaOf = (field: string): Schema => ({
    type: 'object',
    properties: { spec: { type: 'object', properties: { [field]: { type: 'string' } } } },
  })
  const [resource, definition] = widgets({ schema: schemaOf('a'), unscaled: true })
  world.serve(resource, definition)
  world.serve({ ...resource, version: 'v2' }, { ...definition, schema: schemaOf('b') })
  const path = '/apis/we.dev/v1/namespaces/default/widgets'
  const sent = (version: string) => ({
    apiVersion: `we.dev/${version}`,
    kind: 'Widget',
    metadata: { name: 'x' },
    spec: { a: '1', b: '2' },
  })
  const warned = await world.send('POST', path, sent('v2'))
  assert.equal(warned.code, 400)
  assert.match(warned.body.message, /the API version in the data \(we.dev\/v2\) does not match the expected/)
  assert.deepEqual(warned.warnings, ['unknown field "spec.a"'])
  // A version that there is not knows nothing.
  assert.deepEqual((await world.send('POST', path, sent('v9'))).warnings, ['unknown field "spec"'])
  assert.deepEqual((await world.send('POST', `${path}?fieldValidation=Ignore`, sent('v2'))).warnings, [])
  const strict = await world.send('POST', `${path}?fieldValidation=Strict`, sent('v2'))
  assert.equal(
    strict.body.message,
    'Widget in version "v2" cannot be handled as a Widget: strict decoding error: unknown field "spec.a"',
  )
  await world.send('POST', path, { ...sent('v1'), metadata: { name: 'y' }, spec: { a: '1' } })
  const patch = { apiVersion: 'we.dev/v2', spec: { c: '1' } }
  const patched = await world.send('PATCH', `${path}/y`, patch, 'application/merge-patch+json')
  assert.equal(patched.code, 422)
  assert.deepEqual(patched.warnings, ['unknown field "spec.a"', 'unknown field "spec.c"'])
  const other = { ...sent('v1'), kind: 'Gadget' }
  assert.match((await world.send('PUT', `${path}/y`, other)).body.message, /does not match the name on the URL \(y\)/)
})
