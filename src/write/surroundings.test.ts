/** The engine knows resources, not what their surroundings call the interests these live in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GroupVersionResource } from '../kube/resource.ts'
import { type Answer, FakeWorld } from './fakeworld.test-support.ts'

/** As the catalog of an edge names the interests of what discovery lists. */
const asAtAnEdge = ({ group, version, resource }: GroupVersionResource) => `${group}/${version}/${resource}`

const core = '/api/v1/namespaces'
const inDefault = `${core}/default`
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const container = { name: 'c', image: 'i' }
const pod = (name: string, more: object = {}) => ({ metadata: { name }, spec: { containers: [container], ...more } })
const schema = { openAPIV3Schema: { type: 'object' } }
const gadgets = {
  metadata: { name: 'gadgets.we.dev' },
  spec: {
    group: 'we.dev',
    scope: 'Namespaced',
    names: { plural: 'gadgets', kind: 'Gadget' },
    versions: [{ name: 'v1', served: true, storage: true, schema }],
  },
}

/** Everything a resource has a rule of its own for, one write after the other. */
async function writes(world: FakeWorld): Promise<Record<string, Answer>> {
  const told: Record<string, Answer> = {}
  const send = async (what: string, ...sent: Parameters<FakeWorld['send']>) => {
    told[what] = await world.send(...sent)
  }
  const levels = { 'pod-security.kubernetes.io/enforce': 'baseline' }
  await send('namespace', 'POST', core, { metadata: { name: 'n', labels: levels } })
  await send('immortal', 'DELETE', inDefault)
  await send('nowhere', 'POST', `${core}/absent/configmaps`, { metadata: { name: 'a' } })
  await send('name', 'POST', `${inDefault}/services`, { metadata: { name: 'a.b' }, spec: { ports: [{ port: 1 }] } })
  await send('secret', 'POST', `${inDefault}/secrets`, { metadata: { name: 's' }, stringData: { k: 'v' } })
  await send('immutable', 'POST', `${inDefault}/configmaps`, { metadata: { name: 'm' }, immutable: true })
  const changed = { data: { k: 'w' } }
  await send('frozen', 'PATCH', `${inDefault}/configmaps/m`, changed, 'application/merge-patch+json')
  await send('volume', 'POST', '/api/v1/persistentvolumes', { metadata: { name: 'v' }, spec: {} })
  await send('pod', 'POST', `${inDefault}/pods`, pod('p'))
  await send('resized', 'PUT', `${inDefault}/pods/p/resize`, pod('p'))
  await send('bound', 'POST', `${inDefault}/bindings`, { metadata: { name: 'p' }, target: { kind: 'Node', name: 'x' } })
  await send('graceful', 'DELETE', `${inDefault}/pods/p`)
  await send('job', 'DELETE', '/apis/batch/v1/namespaces/default/jobs/j')
  await send('quota', 'POST', `${inDefault}/resourcequotas`, { metadata: { name: 'q' }, spec: {} })
  await send('node', 'POST', '/api/v1/nodes', { metadata: { name: 'x' } })
  await send('uid', 'PUT', '/api/v1/nodes/x', { metadata: { name: 'x', uid: 'other', resourceVersion: '1' } })
  await send('definition', 'POST', definitions, gadgets)
  await send('custom', 'POST', '/apis/we.dev/v1/namespaces/n/gadgets', {
    apiVersion: 'we.dev/v1',
    kind: 'Gadget',
    metadata: { name: 'g' },
  })
  await send('leaving', 'DELETE', `${core}/n`)
  await send('late', 'POST', `${core}/n/configmaps`, { metadata: { name: 'late' } })
  await world.writer.sweeper.sweep()
  await send('left', 'GET', `${core}/n`)
  await send('undefined', 'DELETE', `${definitions}/gadgets.we.dev`)
  await world.writer.sweeper.sweep()
  await send('over', 'GET', `${definitions}/gadgets.we.dev`)
  return told
}

test('a write has the same answer where interests are spelled as at an edge', async () => {
  const authority = await writes(new FakeWorld())
  const edge = await writes(new FakeWorld(undefined, asAtAnEdge))
  const codes = Object.fromEntries(Object.entries(authority).map(([what, { code }]) => [what, code]))
  assert.deepEqual(codes, {
    ...{
      namespace: 201,
      immortal: 403,
      nowhere: 404,
      name: 422,
      secret: 201,
      immutable: 201,
      frozen: 422,
      volume: 201,
    },
    ...{
      pod: 201,
      resized: 200,
      bound: 201,
      graceful: 200,
      job: 404,
      quota: 201,
      node: 201,
      uid: 409,
      definition: 201,
    },
    ...{ custom: 201, leaving: 200, late: 403, left: 404, undefined: 200, over: 404 },
  })
  for (const what of Object.keys(authority)) assert.deepEqual(edge[what], authority[what], what)
})

test('two versions of one resource share the locks of their objects, wherever those live', async () => {
  const world = new FakeWorld(undefined, asAtAnEdge)
  const sent = { spec: { group: 'we.dev', scope: 'Namespaced', names: gadgets.spec.names } }
  const versions = ['v1', 'v2'].map((name) => ({ name, served: true, storage: name === 'v1', schema }))
  const metadata = gadgets.metadata
  assert.equal((await world.send('POST', definitions, { metadata, spec: { ...sent.spec, versions } })).code, 201)
  const gate = Promise.withResolvers<void>()
  world.gates.set('we.dev/v1/gadgets', gate.promise)
  const create = (version: string) =>
    world.send('POST', `/apis/we.dev/${version}/namespaces/default/gadgets`, {
      apiVersion: `we.dev/${version}`,
      kind: 'Gadget',
      metadata: { name: 'g' },
    })
  const first = create('v1')
  await new Promise((resolve) => setImmediate(resolve))
  const second = create('v2')
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(
    world.events.filter(({ interest }) => interest.startsWith('we.dev')),
    [],
    'the second one waits',
  )
  gate.resolve()
  await Promise.all([first, second])
})
