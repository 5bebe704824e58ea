import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failure } from '../kube/status.ts'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'

test('a created object is stored as a list item: server fields set, Go’s order, no kind', async () => {
  const world = new FakeWorld()
  const sent = `{"data":{"k":"v","n":"9007199254740993"},"kind":"ConfigMap","apiVersion":"v1","metadata":{
    "labels":{"b":"1","a":"2"},"name":"a","uid":"mine","selfLink":"x","managedFields":[],"deletionTimestamp":"2020-01-01T00:00:00Z","annotations":{}}}`
  const { code, body } = await world.send('POST', `${configMaps}?fieldManager=m`, sent)
  assert.equal(code, 201)
  assert.equal(body.kind, 'ConfigMap')
  assert.equal(
    world.bytes('/configmaps', 'default/a'),
    '{"metadata":{"name":"a","namespace":"default","uid":"uid-1","resourceVersion":"102","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"b":"1","a":"2"},"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{},"f:n":{}},"f:metadata":{"f:labels":{".":{},"f:a":{},"f:b":{}}}}}]},"data":{"k":"v","n":"9007199254740993"}}',
  )
})

test('[A5] a custom resource keeps int64 and float spelling and its keys’ order, defaults filled, unknown fields pruned', async () => {
  const world = new FakeWorld()
  const schema = {
    type: 'object',
    properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  }
  world.serve(...widgets({ schema, unscaled: true }))
  const sent =
    '{"apiVersion":"we.dev/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"z":9223372036854775807,"a":1.0},"gone":1}'
  const { warnings } = await world.send('POST', '/apis/we.dev/v1/namespaces/default/widgets', sent)
  assert.deepEqual(warnings, ['unknown field "gone"'])
  assert.equal(
    world.bytes('we.dev/widgets', 'default/a'),
    '{"apiVersion":"we.dev/v1","kind":"Widget","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"managedFields":[{"apiVersion":"we.dev/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:a":{},"f:z":{}}},"manager":"unknown","operation":"Update","time":"2026-01-02T03:04:05Z"}],"name":"a","namespace":"default","resourceVersion":"102","uid":"uid-1"},"spec":{"z":9223372036854775807,"a":1.0}}',
  )
})

test('generateName is tried eight times', async () => {
  let calls = 0
  const world = new FakeWorld(() => {
    calls++
    return 0
  })
  const sent = { metadata: { generateName: 'gen-' } }
  assert.equal((await world.send('POST', configMaps, sent)).body.metadata.name, 'gen-bbbbb')
  calls = 0
  const { code, body } = await world.send('POST', configMaps, sent)
  assert.equal(code, 409)
  assert.match(body.message, /"gen-bbbbb" already exists, the server was not able to generate a unique name/)
  assert.equal(calls, 40)
})

test('what the body says must agree with the URL', async () => {
  const world = new FakeWorld()
  const cases: readonly (readonly [body: string, code: number, message: RegExp])[] = [
    ['{"apiVersion":"v2","kind":"ConfigMap"}', 400, /no kind "ConfigMap" is registered for version "v2"/],
    ['{"apiVersion":"v1","kind":"Secret"}', 400, /converting \(v1.Secret\) to \(core.ConfigMap\): unknown conversion/],
    [
      '{"apiVersion":"a/b/c","kind":"ConfigMap"}',
      400,
      /^the object provided is unrecognized \(must be of type ConfigMap\): unexpected GroupVersion string: a\/b\/c \(\{"apiVersion":"a\/b\/c","kind":" \.\.\.\)$/,
    ],
    ['{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService"}', 400, /no kind "APIService" is registered for/],
    ['{"apiVersion":"v1","kind":"Status"}', 400, /converting \(v1.Status\) to \(core.ConfigMap\): unknown conversion/],
    ['{"apiVersion":"v1","kind":"List"}', 400, /converting \(v1.List\) to \(core.ConfigMap\): unknown conversion/],
    ['{"apiVersion":"apps/v1","kind":"DeploymentList"}', 400, /converting \(v1.DeploymentList\) to \(core.ConfigMap\)/],
    ['{"metadata":{"name":"a"', 400, /json parse error: unexpected end of JSON input \(\{"metadata":\{"name":"a"\)/],
    ['[1]', 400, /cannot unmarshal array into Go value .* \(5b315d\)/],
    ['', 400, /\(<empty>\)/],
    ['{"metadata":{"name":"a","namespace":"x"}}', 400, /^the namespace of the provided object does not match/],
    ['{"metadata":{"name":"a","resourceVersion":"1"}}', 500, /^resourceVersion should not be set on objects/],
    ['{"metadata":{}}', 422, /metadata.name: Required value: name or generateName is required/],
    ['{"metadata":{"name":"a","finalizers":["x"]}}', 422, /metadata.finalizers\[0\].*neither a standard finalizer/],
    ['{"metadata":{"name":"a"},"data":{"a":1}}', 400, /cannot unmarshal number into Go struct field ConfigMap.data/],
  ]
  for (const [sent, code, message] of cases) {
    const answer = await world.send('POST', configMaps, sent)
    assert.equal(answer.code, code, sent)
    assert.match(answer.body.message, message)
  }
  assert.deepEqual(world.events, [])
})

test('fieldValidation: warn, refuse or ignore', async () => {
  const world = new FakeWorld()
  const sent = (name: string) => `{"metadata":{"name":"${name}","foo":1},"bar":2,"data":{"a":"1","a":"2"}}`
  const findings = ['unknown field "metadata.foo"', 'unknown field "bar"', 'duplicate field "data.a"']
  assert.deepEqual((await world.send('POST', configMaps, sent('a'))).warnings, findings)
  assert.deepEqual((await world.send('POST', `${configMaps}?fieldValidation=Ignore`, sent('b'))).warnings, [])
  const refused = await world.send('POST', configMaps, sent('A_'))
  assert.deepEqual([refused.code, refused.warnings], [422, findings], 'refusals carry them too')
  const strict = await world.send('POST', `${configMaps}?fieldValidation=Strict`, sent('c'))
  assert.equal(strict.code, 400)
  assert.ok(strict.body.message.endsWith(`strict decoding error: ${findings.join(', ')}`))
})

test('a namespace must exist and not be leaving', async () => {
  const world = new FakeWorld()
  const missing = await world.send('POST', '/api/v1/namespaces/nope/configmaps', { metadata: { name: 'a' } })
  assert.deepEqual([missing.code, missing.body.message], [404, 'namespaces "nope" not found'])
  await world.send('POST', '/api/v1/namespaces', { metadata: { name: 'n' } })
  await world.send('DELETE', '/api/v1/namespaces/n')
  const { code, body } = await world.send('POST', '/api/v1/namespaces/n/configmaps', { metadata: { name: 'late' } })
  assert.equal(code, 403)
  assert.equal(body.details.causes[0].reason, 'NamespaceTerminating')
})

test('a dry run answers with the object and stores nothing; its version is absent', async () => {
  const world = new FakeWorld()
  const { code, body } = await world.send('POST', `${configMaps}?dryRun=All`, { metadata: { name: 'a' } })
  assert.equal(code, 201)
  assert.deepEqual([body.metadata.name, body.metadata.resourceVersion], ['a', undefined])
  assert.deepEqual(world.events, [])
  const wrong = await world.send('POST', `${configMaps}?dryRun=Some&fieldValidation=Bad`, {})
  assert.equal(wrong.body.details.causes.length, 2)
})

test('status is the server’s where the kind says so; namespaces, pods and secrets are completed', async () => {
  const world = new FakeWorld()
  const spec = { containers: [{ name: 'a', image: 'b', resources: { requests: { cpu: '1' } } }] }
  const pod = { metadata: { name: 'p' }, spec, status: { phase: 'Running' } }
  const { body } = await world.send('POST', '/api/v1/namespaces/default/pods', pod)
  assert.deepEqual(body.status, { phase: 'Pending', qosClass: 'Burstable' })
  const secret = await world.send('POST', '/api/v1/namespaces/default/secrets', {
    metadata: { name: 's' },
    stringData: { a: 'b' },
  })
  assert.deepEqual([secret.body.data.a, secret.body.type, secret.body.stringData], ['Yg==', 'Opaque', undefined])
  const namespace = await world.send('POST', '/api/v1/namespaces', { metadata: { name: 'n' } })
  assert.deepEqual(namespace.body.metadata.labels, { 'kubernetes.io/metadata.name': 'n' })
  assert.deepEqual([...namespace.body.spec.finalizers, namespace.body.status.phase], ['kubernetes', 'Active'])
})

test('YAML bodies are read, and aliases cannot blow one up', async () => {
  const world = new FakeWorld()
  const good = await world.send(
    'POST',
    configMaps,
    'metadata:\n  name: from-yaml\ndata:\n  a: "1"\n',
    'application/yaml',
  )
  assert.deepEqual([good.code, good.body.data.a], [201, '1'])
  const bomb = ['a0: &a0 [x,x,x,x,x,x,x,x,x,x]']
  for (let i = 1; i < 9; i++) bomb.push(`a${i}: &a${i} [${Array(10).fill(`*a${i - 1}`)}]`)
  const { code, body } = await world.send('POST', configMaps, bomb.join('\n'), 'application/yaml')
  assert.equal(code, 400)
  assert.match(body.message, /alias/)
})

test('a refusing disk is told to the client, and the next write works', async () => {
  const world = new FakeWorld()
  world.refusal = failure(507, '', 'no space')
  assert.equal((await world.send('POST', configMaps, { metadata: { name: 'a' } })).code, 507)
  world.refusal = undefined
  assert.equal((await world.send('POST', configMaps, { metadata: { name: 'a' } })).code, 201)
})

test('of many creators of one name exactly one succeeds', async () => {
  const world = new FakeWorld()
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => world.send('POST', configMaps, { metadata: { name: 'a' } })),
  )
  assert.equal(answers.filter(({ code }) => code === 201).length, 1)
  assert.equal(answers.filter(({ code }) => code === 409).length, 19)
})

test('a finalizer is complained about once for each rule', async () => {
  const world = new FakeWorld()
  const { body } = await world.send('POST', configMaps, { metadata: { name: 'a', finalizers: ['a b'] } })
  assert.deepEqual(
    body.details.causes.map(
      (cause: { field: string; message: string }) => `${cause.field} ${cause.message.slice(0, 30)}`,
    ),
    ['metadata.finalizers Invalid value: "a b": name par', 'metadata.finalizers[0] Invalid value: "a b": name is '],
  )
})

test('a service may begin with a digit, and has no dots', async () => {
  const world = new FakeWorld()
  const make = (name: string) =>
    world.send('POST', '/api/v1/namespaces/default/services', { metadata: { name }, spec: { ports: [{ port: 80 }] } })
  assert.equal((await make('1web')).code, 201)
  assert.match((await make('a.b')).body.message, /: must not contain dots$/)
})

test('a field manager must be printable', async () => {
  const world = new FakeWorld()
  const answer = async (manager: string) => {
    const { body } = await world.send('POST', `${configMaps}?fieldManager=${encodeURIComponent(manager)}`, {
      metadata: { name: 'a' },
    })
    return body.message as string | undefined
  }
  assert.equal(
    await answer('é\nb'),
    'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "é\\nb": invalid character U+000A (at position 2)',
  )
  assert.match((await answer('a\u00a0b')) ?? '', /"a\\u00a0b": invalid character U\+00A0 \(at position 1\)$/)
  assert.equal(await answer('a b 😀'), undefined)
})
