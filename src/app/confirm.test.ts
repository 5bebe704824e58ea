/** When a refusal is believed: never without a ready API server, complete discovery, or its own word. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { answered, EdgeCloud } from '../endpoint/edgeworld.test-support.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import { parseLabelSelector } from '../kube/selector.ts'
import type { CloudCatalog } from '../mirror/documents/catalog.ts'
import { interestOf } from '../mirror/interest.ts'
import type { UpstreamRequest } from '../upstream/upstream.ts'
import { confirmRefusal } from './confirm.ts'

const interest = interestOf({
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  namespace: 'a',
  labels: parseLabelSelector('app=web'),
  fields: parseFieldSelector('metadata.name=x'),
})

function setUp(known: { complete: boolean; exists: boolean } = { complete: true, exists: true }) {
  const cloud = new EdgeCloud(fakeClock())
  const catalog = { complete: known.complete, find: () => (known.exists ? {} : undefined) } as unknown as CloudCatalog
  return { cloud, confirm: confirmRefusal({ upstream: cloud, catalog }) }
}

test('404 is believed only when complete discovery does not name the resource', async () => {
  for (const complete of [true, false]) {
    for (const exists of [true, false]) {
      const { confirm } = setUp({ complete, exists })
      assert.equal(await confirm(interest, 404), complete && !exists, `${complete} ${exists}`)
    }
  }
  const { cloud, confirm } = setUp({ complete: true, exists: false })
  cloud.reachability.set('suspect')
  assert.equal(await confirm(interest, 404), false)
})

test('403 is believed only when a review in the edge’s own name says no to exactly this', async () => {
  const { cloud, confirm } = setUp()
  const rows: [number, object | string, boolean][] = [
    [201, { status: { allowed: false } }, true],
    [201, { status: { allowed: true } }, false],
    [201, { status: { allowed: false, evaluationError: 'webhook: timeout' } }, false],
    [201, { status: { allowed: false, denied: true, evaluationError: 'webhook: timeout' } }, true],
    [201, { status: {} }, false],
    [201, {}, false],
    [403, { status: { allowed: false } }, false],
    [503, {}, false],
  ]
  let asked: UpstreamRequest | undefined
  for (const [status, reply, believed] of rows) {
    cloud.script = (one) => {
      asked = one
      return answered(status, JSON.stringify(reply))
    }
    assert.equal(await confirm(interest, 403), believed, `${status} ${JSON.stringify(reply)}`)
  }
  assert.deepEqual(asked?.identity, { kind: 'edge' })
  assert.deepEqual(JSON.parse(String(asked?.body)).spec.resourceAttributes, {
    verb: 'list',
    group: 'apps',
    version: 'v1',
    resource: 'deployments',
    namespace: 'a',
    labelSelector: { rawSelector: 'app=web' },
    fieldSelector: { rawSelector: 'metadata.name=x' },
  })
})

test('401 and anything else is never believed, nor anything while the API server is away', async () => {
  const { cloud, confirm } = setUp({ complete: true, exists: false })
  cloud.script = () => answered(201, '{"status":{"allowed":false}}')
  for (const code of [401, 410, 500]) assert.equal(await confirm(interest, code), false)
  for (const state of ['suspect', 'unreachable'] as const) {
    cloud.reachability.set(state)
    for (const code of [403, 404]) assert.equal(await confirm(interest, code), false)
  }
})
