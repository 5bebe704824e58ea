/** What hubs write into policies, by whom and how often; over an API server that keeps two kinds of objects. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FakeClock, fakeClock } from '../../base/fakeclock.test-support.ts'
import { silentLog } from '../../base/log.ts'
import { concerns } from '../../policy/nodes.ts'
import { readPolicy } from '../../policy/reading.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../upstream/upstream.ts'
import { HubLease, leaseMs } from './lease.ts'
import { PolicyStatus } from './policystatus.ts'

type Stored = { metadata: { name: string; generation?: number; resourceVersion?: string }; spec?: object; status?: any }

/** Objects by path; a write with another resourceVersion is a conflict. */
class KeepingCloud {
  readonly objects = new Map<string, Stored>()
  readonly written: string[] = []
  forbids = (_path: string) => false
  #version = 0

  async ask({ method, path, body }: UpstreamRequest): Promise<UpstreamResponse> {
    const said = (status: number, object: unknown = {}) => {
      const bytes = Buffer.from(JSON.stringify(object))
      const stream = (async function* () {
        yield bytes
      })()
      return { status, headers: {}, body: stream, heardAt: () => 0 }
    }
    if (this.forbids(path)) return said(403, { message: 'forbidden' })
    const key = path.replace(/\/status$/, '')
    const present = this.objects.get(key)
    if (method === 'GET') return present === undefined ? said(404) : said(200, present)
    const given = JSON.parse(String(body)) as Stored
    const place = method === 'POST' ? `${path}/${given.metadata.name}` : key
    if (method === 'POST' && this.objects.has(place)) return said(409)
    if (present !== undefined && present.metadata.resourceVersion !== given.metadata.resourceVersion) return said(409)
    this.put(place, path.endsWith('/status') ? { ...(present as Stored), status: given.status } : given)
    this.written.push(`${method} ${path.split('/').slice(-2).join('/')}`)
    return said(method === 'POST' ? 201 : 200, this.objects.get(place))
  }

  put(place: string, object: Stored): void {
    const metadata = { ...object.metadata, resourceVersion: String(++this.#version) }
    this.objects.set(place, { ...object, metadata })
  }
}

const at = (name: string) => `/apis/ake.dev/v1alpha1/edgepolicies/${name}`
const place = { namespace: 'ake-system', name: 'hub-policies' }

class World {
  readonly cloud = new KeepingCloud()
  readonly clock: FakeClock = fakeClock()
  #generation = 0

  policy(name: string, spec: object): void {
    const status = this.cloud.objects.get(at(name))?.status
    this.cloud.put(at(name), { metadata: { name, generation: ++this.#generation }, spec, ...(status && { status }) })
  }

  hub(holder: string, edges: string[], isAlone = false) {
    const { cloud, clock } = this
    const lease = isAlone ? undefined : new HubLease({ upstream: cloud, place, holder, clock })
    const all = () =>
      [...cloud.objects]
        .filter(([key]) => key.startsWith(at('')))
        .map(([, object]) => readPolicy(JSON.stringify(object)))
    const policies = {
      ...{ isKnown: true, all },
      isFor: ({ nodes }: ReturnType<typeof readPolicy>, name: string) =>
        concerns(nodes, { name, labels: undefined }) === 'yes',
    }
    return new PolicyStatus({ upstream: cloud, policies, edges: () => edges, lease, clock, log: silentLog })
  }

  status(name: string) {
    return this.cloud.objects.get(at(name))?.status
  }
}

test('a policy says whether it was accepted, why not, since when, and for how many edges it is', async () => {
  const world = new World()
  const edges = ['n1', 'n2', 'm1']
  world.policy('good', { nodes: { names: ['n*'] }, trust: true })
  world.policy('bad', { nodes: { names: ['n*'] }, speakFor: [{ groups: ['system:masters'] }] })
  const hub = world.hub('one', edges, true)
  await hub.look()
  const good = world.status('good')
  assert.deepEqual([good.edges, good.observedGeneration], [2, 1])
  const [accepted] = good.conditions
  assert.deepEqual([accepted.type, accepted.status, accepted.reason], ['Accepted', 'True', 'Accepted'])
  const bad = world.status('bad').conditions[0]
  assert.deepEqual([bad.status, bad.reason], ['False', 'Invalid'])
  assert.match(bad.message, /^it allows nothing: spec\.speakFor\[0\]\.groups has system:masters/)

  // Nothing changes, nothing is written.
  const before = world.cloud.written.length
  world.clock.advance(120_000)
  await hub.look()
  assert.equal(world.cloud.written.length, before)

  // The time of a condition is that of its turn.
  world.policy('bad', { nodes: { names: ['n*'] }, speakFor: [{ groups: ['system:masters', ''] }] })
  await hub.look()
  assert.equal(world.status('bad').conditions[0].lastTransitionTime, bad.lastTransitionTime)
  assert.equal(world.status('bad').observedGeneration, 3)
  world.policy('bad', { nodes: { names: ['n*'] } })
  await hub.look()
  const turned = world.status('bad').conditions[0]
  assert.equal(turned.status, 'True')
  assert.notEqual(turned.lastTransitionTime, bad.lastTransitionTime)
  assert.match(hub.figures().join('\n'), /ake_hub_policies\{accepted="true"\} 2/)
})

test('edges that come and go are counted now and then, and a policy that changes at once', async () => {
  const world = new World()
  const edges: string[] = []
  world.policy('p', {})
  const hub = world.hub('one', edges, true)
  for (let at = 0; at < 60; at++) {
    edges.push(`n${at}`)
    await hub.look()
    world.clock.advance(1_000)
  }
  assert.ok(world.cloud.written.length <= 3, world.cloud.written.join())
  world.clock.advance(30_000)
  await hub.look()
  assert.equal(world.status('p').edges, 60)
  world.policy('p', { trust: true })
  await hub.look()
  assert.equal(world.status('p').observedGeneration, 2)
})

test('of several hubs one writes; another goes on when it is gone, and not before', async () => {
  const world = new World()
  world.policy('p', {})
  const [one, other] = [world.hub('one', ['n1']), world.hub('other', ['n2', 'n3'])]
  for (let at = 0; at < 10; at++) {
    await one.look()
    await other.look()
    world.clock.advance(leaseMs / 4)
  }
  assert.equal(world.status('p').edges, 1)
  assert.equal(world.cloud.written.filter((line) => line === 'PUT p/status').length, 1)
  // It has gone.
  await other.look()
  assert.equal(world.status('p').edges, 1)
  for (let at = 0; at < 6; at++) {
    world.clock.advance(leaseMs / 4)
    await other.look()
  }
  assert.equal(world.status('p').edges, 2)
})

test('a hub that may not have the Lease, or not write, says so and writes nothing', async () => {
  const world = new World()
  world.policy('p', {})
  world.cloud.forbids = (path) => path.includes('/leases')
  const hub = world.hub('one', [])
  await hub.look()
  assert.deepEqual(world.cloud.written, [])
  world.cloud.forbids = (path) => path.endsWith('/status')
  world.clock.advance(leaseMs)
  await hub.look()
  assert.equal(world.status('p'), undefined)
  assert.match(hub.figures().join('\n'), /writes_total\{result="refused"\} 1$/m)
  // Neither the API server nor the log hears of each policy at each look.
  for (const name of ['q', 'r', 's']) world.policy(name, {})
  for (let at = 0; at < 11; at++) {
    world.clock.advance(5_000)
    await hub.look()
  }
  assert.match(hub.figures().join('\n'), /writes_total\{result="refused"\} 1$/m)
  world.cloud.forbids = () => false
  world.clock.advance(leaseMs)
  await hub.look()
  assert.equal(world.status('p').edges, 0)
})
