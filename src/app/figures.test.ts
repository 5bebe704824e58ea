/** What an edge tells of its mirror and its API server in /metrics. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../base/log.ts'
import { EdgeWorld } from '../endpoint/edgeworld.test-support.ts'
import { ClusterGate } from '../mirror/clustergate.ts'
import { edgeFigures } from './figures.ts'

async function figuresOf(world: EdgeWorld): Promise<(name: string) => Record<string, number>> {
  const { cloud, interests, store, contact } = world
  const { clock } = cloud
  const gate = await ClusterGate.open({ store, clock, log: silentLog, spanMs: 60_000 })
  return (name) => {
    const text = edgeFigures({ upstream: cloud, interests, comparison: { found: 0 }, gate, contact }).join('')
    const found = text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))
    return Object.fromEntries([...found].map(([, series = '', value]) => [series, Number(value)]))
  }
}

test('every state of interests and of the API server is told, also where nothing is in it', async () => {
  await using world = await EdgeWorld.open()
  const figure = await figuresOf(world)
  const none = ['synced', 'syncing', 'waiting', 'refused', 'failing', 'tooLarge', 'fed', 'withdrawn']
  assert.deepEqual(figure('ake_interests'), Object.fromEntries(none.map((state) => [`state="${state}"`, 0])))
  await world.synced('pods')
  assert.equal(figure('ake_interests')['state="synced"'], 1)
  assert.equal(figure('ake_interests')['state="refused"'], 0)
  world.cloud.reachability.set('unreachable')
  assert.deepEqual(figure('ake_upstream_state'), {
    'state="reachable"': 0,
    'state="suspect"': 0,
    'state="unreachable"': 1,
  })
})

test('the age of the data and the last contact stand still when the line is cut, and what they tell grows', async () => {
  await using world = await EdgeWorld.open()
  const { clock, reachability, server } = world.cloud
  const figure = await figuresOf(world)
  const contact = () => figure('ake_upstream_last_contact_timestamp_seconds')[''] ?? Number.NaN
  const pods = 'group="",resource="pods",interest="all"'
  await world.synced('pods')
  assert.equal(contact(), Math.round(clock.now() / 1000))
  server.cutWatches()
  reachability.set('unreachable')
  const atMs = clock.now()
  await world.pass(60_000)
  assert.ok(contact() <= atMs / 1000 + 1 && contact() > 0, `${contact()}`)
  assert.ok((figure('ake_data_age_seconds')[pods] ?? 0) >= 60)
  reachability.set('reachable')
  await world.pass(10_000)
  assert.ok((figure('ake_data_age_seconds')[pods] ?? 60) < 60)
})
