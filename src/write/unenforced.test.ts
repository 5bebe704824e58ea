/** What kube-apiserver would act upon and this server only stores is said to the client that writes it, by whichever verb. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const merge = 'application/merge-patch+json'
const apply = 'application/apply-patch+yaml'
const admission = '/apis/admissionregistration.k8s.io/v1'
const namespaced = '/api/v1/namespaces/default'
const rules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] }]
const hook = {
  name: 'h.we.dev',
  clientConfig: { url: 'https://h' },
  rules,
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
}

const guards: readonly (readonly [url: string, kind: string, body: object, told: RegExp])[] = [
  [
    `${admission}/validatingwebhookconfigurations`,
    'ValidatingWebhookConfiguration',
    { webhooks: [hook] },
    /never called/,
  ],
  [`${admission}/mutatingwebhookconfigurations`, 'MutatingWebhookConfiguration', {}, /never called/],
  [
    `${admission}/validatingadmissionpolicies`,
    'ValidatingAdmissionPolicy',
    { spec: { validations: [{ expression: 'true' }] } },
    /never evaluated/,
  ],
  [
    `${admission}/validatingadmissionpolicybindings`,
    'ValidatingAdmissionPolicyBinding',
    { spec: { policyName: 'p', validationActions: ['Deny'] } },
    /never evaluated/,
  ],
  [`${admission}/mutatingadmissionpolicies`, 'MutatingAdmissionPolicy', { spec: {} }, /never evaluated/],
  [
    `${admission}/mutatingadmissionpolicybindings`,
    'MutatingAdmissionPolicyBinding',
    { spec: { policyName: 'p' } },
    /never evaluated/,
  ],
  [`${namespaced}/resourcequotas`, 'ResourceQuota', { spec: { hard: { pods: '1' } } }, /limit nothing/],
  [`${namespaced}/limitranges`, 'LimitRange', { spec: { limits: [{ type: 'Pod' }] } }, /limit and default nothing/],
]

test('a guard that is only stored: create, update, patch and apply say so', async () => {
  for (const [url, kind, body, told] of guards) {
    const world = new FakeWorld()
    const [, root = ''] = /^\/apis?\/((?:[^/]+\/)?v1)/.exec(url) ?? []
    const object = { apiVersion: root, kind, metadata: { name: 'g' }, ...body }
    const made = await world.send('POST', url, object)
    assert.equal(made.code, 201, JSON.stringify(made.body))
    assert.deepEqual(
      made.warnings.map((one) => told.test(one)),
      [true],
      kind,
    )
    const { resourceVersion } = made.body.metadata
    const labels = { a: 'b' }
    const put = await world.send('PUT', `${url}/g`, { ...object, metadata: { name: 'g', resourceVersion, labels } })
    const patched = await world.send('PATCH', `${url}/g`, { metadata: { labels: { a: 'c' } } }, merge)
    const applied = await world.send(
      'PATCH',
      `${url}/applied?fieldManager=me`,
      { ...object, metadata: { name: 'applied' } },
      apply,
    )
    for (const answer of [put, patched, applied]) {
      assert.ok(answer.code < 300, `${kind}: ${JSON.stringify(answer.body)}`)
      assert.deepEqual(
        answer.warnings.map((one) => told.test(one)),
        [true],
        kind,
      )
    }
    assert.deepEqual((await world.send('DELETE', `${url}/g`)).warnings, [])
  }
})

test('an API service is warned of where another server is to answer, a namespace where a level is set', async () => {
  const world = new FakeWorld()
  const url = '/apis/apiregistration.k8s.io/v1/apiservices'
  const service = (name: string, more: object) => ({
    metadata: { name: `v1.${name}` },
    spec: { group: name, version: 'v1', groupPriorityMinimum: 1, versionPriority: 1, ...more },
  })
  const local = await world.send('POST', url, service('a.we.dev', {}))
  assert.deepEqual([local.code, local.warnings], [201, []])
  const other = await world.send('POST', url, service('b.we.dev', { service: { name: 's', namespace: 'n' } }))
  assert.equal(other.code, 201)
  assert.match(other.warnings.join(), /passes no request on/)

  const level = { 'pod-security.kubernetes.io/enforce': 'restricted' }
  const made = await world.send('POST', '/api/v1/namespaces', { metadata: { name: 'strict', labels: level } })
  assert.match(made.warnings.join(), /pods are not checked/)
  const patch = (labels: object) => world.send('PATCH', '/api/v1/namespaces/strict', { metadata: { labels } }, merge)
  assert.deepEqual((await patch({ a: 'b' })).warnings, [])
  assert.match((await patch({ 'pod-security.kubernetes.io/enforce': 'baseline' })).warnings.join(), /not checked/)
  assert.deepEqual((await patch({ 'pod-security.kubernetes.io/enforce': null })).warnings, [])
})
