import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorld } from './world.test-support.ts'

test('an object passes through its storage version, whichever it came in by', async () => {
  const world = await openWorld()
  const spec = { type: 'object', default: {}, properties: { a: { type: 'string', default: 'A' } } }
  const version = (name: string, storage: boolean, openAPIV3Schema: object) => {
    return { name, served: true, storage, schema: { openAPIV3Schema } }
  }
  const made = await world.ask('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: 'boats.sea.dev' },
    spec: {
      group: 'sea.dev',
      scope: 'Cluster',
      names: { plural: 'boats', kind: 'Boat' },
      versions: [
        version('v1', true, { type: 'object', properties: { spec } }),
        version('v1beta1', false, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }),
      ],
    },
  })
  assert.equal(made.status, 201)
  const boat = { apiVersion: 'sea.dev/v1beta1', kind: 'Boat', metadata: { name: 'b' }, extra: 1 }
  const { json } = await world.ask('POST', '/apis/sea.dev/v1beta1/boats', boat)
  assert.deepEqual([json.apiVersion, json.spec, json.extra], ['sea.dev/v1beta1', { a: 'A' }, undefined])
})
