// What kube-apiserver 1.36.3 prints and owns of such objects; the corpus of the differential step asks it again.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld } from './fakeworld.test-support.ts'

const merge = 'application/merge-patch+json'
const strategic = 'application/strategic-merge-patch+json'

test('a list that Go cannot leave out is null, and nobody’s', async () => {
  const world = new FakeWorld()
  const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles'
  const { body } = await world.send('POST', roles, { metadata: { name: 'a' } })
  assert.equal(body.rules, null)
  assert.equal(body.metadata.managedFields, undefined)
  const again = await world.send('PUT', `${roles}/a`, { metadata: { name: 'a' }, rules: null })
  assert.equal(again.body.metadata.resourceVersion, body.metadata.resourceVersion)
})

test('a time that nobody has told is null, however it was left out, and belongs to who made the condition', async () => {
  for (const type of [merge, strategic]) {
    const world = new FakeWorld()
    const path = '/api/v1/namespaces/default/status'
    for (const more of [{}, { lastTransitionTime: null }]) {
      const sent = { status: { conditions: [{ type: 'Checked', status: 'True', ...more }] } }
      const { body } = await world.send('PATCH', path, sent, type)
      assert.deepEqual(body.status.conditions, [{ type: 'Checked', status: 'True', lastTransitionTime: null }])
      const owned = body.metadata.managedFields.at(-1).fieldsV1['f:status']['f:conditions']
      assert.deepEqual(Object.keys(owned['k:{"type":"Checked"}']).sort(), [
        '.',
        'f:lastTransitionTime',
        'f:status',
        'f:type',
      ])
    }
  }
})

test('inside lists too', async () => {
  const world = new FakeWorld()
  const sent = { metadata: { name: 'a' }, spec: { drivers: [{ name: 'd', nodeID: 'x' }] } }
  const { body } = await world.send('POST', '/apis/storage.k8s.io/v1/csinodes', sent)
  assert.deepEqual(body.spec.drivers, [{ name: 'd', nodeID: 'x', topologyKeys: null }])
})
