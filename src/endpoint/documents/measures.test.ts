/** What /metrics tells of the requests and interests of an edge: the field's names, few series, and no name of an object. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequest } from '../../kube/request.ts'
import { aliceToken, EdgeWorld } from '../edgeworld.test-support.ts'

const shown = (world: EdgeWorld) => String(world.measures.answer(parseRequest('GET', '/metrics'))?.body)
const linesOf = (world: EdgeWorld) => shown(world).split('\n')

test('what is refused while the cloud is away counts under its resource, also when nothing has succeeded since the start', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.reachability.set('unreachable')
  await world.restart()
  const pod = '/api/v1/namespaces/a/pods/p'
  await world.ask('PATCH', `${pod}/status`, { token: aliceToken, body: {} })
  await world.ask('POST', '/api/v1/namespaces/a/pods', { token: aliceToken, body: {} })
  await world.ask('PUT', `${pod}/invented`, { token: aliceToken, body: {} })
  await world.ask('PUT', '/api/v1/namespaces/a/invented/p', { token: aliceToken, body: {} })
  const counted = linesOf(world).filter((line) => line.startsWith('ake_requests_total') && line.includes('code="5'))
  assert.deepEqual(counted, [
    'ake_requests_total{verb="patch",group="",resource="pods",subresource="status",code="503"} 1',
    'ake_requests_total{verb="create",group="",resource="pods",subresource="",code="503"} 1',
    'ake_requests_total{verb="update",group="",resource="",subresource="",code="503"} 2',
  ])
})

test('what the API server answered is counted apart, by resource; an upgrade is a request, too', async () => {
  await using world = await EdgeWorld.open()
  world.cloud.server.put('pods', 'a/p')
  await world.synced('pods')
  await world.get('/api/v1/pods?resourceVersion=0')
  await world.get('/api/v1/namespaces/a/events/e')
  const nothing = { body: async () => Buffer.alloc(0), stream: async function* () {} }
  const exec = { method: 'GET', url: '/api/v1/namespaces/a/pods/p/exec', headers: {}, hasBody: false, peer: {} }
  await world.endpoint.upgrade({ ...exec, ...nothing })
  const text = shown(world)
  assert.match(text, /^ake_passed_through_total\{verb="get",group="",resource="events"\} 1$/m)
  assert.doesNotMatch(text, /^ake_passed_through_total\{.*resource="pods"/m)
  assert.match(text, /^ake_requests_total\{verb="\w+",group="",resource="pods",subresource="exec",code="503"\} 1$/m)
})

test('a hundred objects mirrored by name are a few more lines, and none of them is named', async () => {
  await using world = await EdgeWorld.open()
  const read = async (name: string, namespace: string) => {
    world.cloud.server.put('configmaps', `${namespace}/${name}`)
    assert.equal((await world.get(`/api/v1/namespaces/${namespace}/configmaps/${name}`)).status, 200)
  }
  await read('secret-name', 'place')
  await world.pass(1_000)
  const before = linesOf(world).length
  for (let at = 0; at < 100; at++) await read(`secret-name-${at}`, `place-${at}`)
  await world.until(() => [...world.interests.all].every(({ cache }) => cache !== undefined))
  const lines = linesOf(world)
  assert.equal(lines.length, before)
  assert.ok(lines.includes('ake_objects{group="",resource="configmaps",interest="name"} 101'), lines.join('\n'))
  assert.ok(!lines.some((line) => /secret-name|place/.test(line)))
})

test('figures are written as they are meant: quantiles exactly, what only grows as a counter', async () => {
  await using world = await EdgeWorld.open()
  const text = shown(world)
  assert.deepEqual(
    [...text.matchAll(/quantile="([^"]*)"/g)].map(([, one]) => one),
    ['0.5', '0.99', '0.999'],
  )
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    assert.equal(type === 'counter', name.endsWith('_total'), name)
  assert.doesNotMatch(text, /^ake_version /m)
})
