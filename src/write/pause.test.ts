import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeWorld, widgets } from './fakeworld.test-support.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'

/** How often others were let in while something was done. */
async function roundsDuring(work: () => Promise<unknown>): Promise<number> {
  let rounds = 0
  let isOver = false
  const count = () => {
    if (isOver) return
    rounds++
    setImmediate(count)
  }
  setImmediate(count)
  await work()
  isOver = true
  return rounds
}

const much = { data: { k: 'v'.repeat(100_000) } }

test('[A8] a write of much lets others in between its steps, one of little is not put off', async () => {
  const world = new FakeWorld()
  const named = (name: string, more: object) => ({ metadata: { name }, ...more })
  const create = (name: string, more: object) => () => world.send('POST', configMaps, named(name, more))
  assert.ok((await roundsDuring(create('little', {}))) <= 1)
  assert.ok((await roundsDuring(create('much', much))) >= 4)
  const replace = (name: string, more: object) => () => world.send('PUT', `${configMaps}/${name}`, named(name, more))
  assert.ok((await roundsDuring(replace('little', { data: { a: 'b' } }))) <= 1)
  assert.ok((await roundsDuring(replace('much', { ...much, immutable: false }))) >= 4)
  // A short patch of a long object is as much work as the object.
  for (const type of ['merge-patch+json', 'strategic-merge-patch+json', 'apply-patch+yaml']) {
    const patch = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'much', annotations: { by: type } } }
    const url = `${configMaps}/much?fieldManager=m${type.startsWith('apply') ? '&force=true' : ''}`
    assert.ok((await roundsDuring(() => world.send('PATCH', url, patch, `application/${type}`))) >= 4, type)
  }
  const item = JSON.parse(world.bytes('/configmaps', 'default/much') ?? '')
  assert.deepEqual([item.data, item.metadata.annotations.by], [much.data, 'apply-patch+yaml'])
})

test('[A8] a write that has paused looks again whether there is a definition still', async () => {
  const world = new FakeWorld()
  world.serve(...widgets({ unscaled: true }))
  const object = { apiVersion: 'we.dev/v1', kind: 'Widget', metadata: { name: 'a', annotations: much.data } }
  const sent = world.send('POST', '/apis/we.dev/v1/namespaces/default/widgets', object)
  setImmediate(() => setImmediate(() => world.unserve('we.dev/widgets')))
  assert.equal((await sent).code, 404)
})

test('[A8] fields nobody knows may be more than a call has arguments', async () => {
  const world = new FakeWorld()
  world.serve(...widgets({ schema: { type: 'object' }, unscaled: true }))
  const unknown = Array.from({ length: 250_000 }, (_, at) => `"f${at}":1`).join()
  const object = `{"apiVersion":"we.dev/v1","kind":"Widget","metadata":{"name":"a"},${unknown}}`
  const { code, warnings } = await world.send('POST', '/apis/we.dev/v1/namespaces/default/widgets', object)
  assert.deepEqual([code, warnings.length], [201, 250_000])
})
