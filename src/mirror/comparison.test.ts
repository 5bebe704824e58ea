import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { createLog, silentLog } from '../base/log.ts'
import { makeItem } from '../cache/item.ts'
import { planFields } from '../kube/object.ts'
import { ApiServer } from './apiserver.test-support.ts'
import { Client, stepping } from './client.test-support.ts'
import { Comparison, suspectsOf } from './comparison.ts'
import { Switch } from './line.test-support.ts'
import type { MirroredInterest } from './mirrored.ts'
import { MirrorWorld, settle } from './world.test-support.ts'

/** Something happens that no watch is told of. */
function inSilence(server: ApiServer, act: () => void): void {
  const watches = [...server.watches]
  server.watches.clear()
  act()
  for (const watch of watches) server.watches.add(watch)
}

const silences: Record<string, (server: ApiServer) => void> = {
  'a change': (server) => server.put('pods', 'a/k1', { value: 'missed' }),
  'a creation': (server) => server.put('pods', 'a/k9'),
  'a deletion': (server) => server.remove('pods', 'a/k1'),
  'an object made again': (server) => {
    server.remove('pods', 'a/k1')
    server.put('pods', 'a/k1')
  },
}

for (const [name, act] of Object.entries(silences)) {
  test(`[L6] ${name} that no watch told is found, said, counted and healed, and no client lists again`, async () => {
    const server = new ApiServer()
    server.pageMax = 2
    for (let i = 0; i < 5; i++) server.put('pods', `a/k${i}`)
    const lines: string[] = []
    const log = createLog({ level: 'warn', write: (line) => void lines.push(line) })
    await using world = await MirrorWorld.open({ server, log, compares: true })
    const client = new Client(world, {})
    await stepping(world, [client], () => client.idle)
    inSilence(server, () => act(server))
    server.put('pods', 'a/k0', { value: 'told' })
    await stepping(world, [client], () => client.objects.get('a/k0') === server.get('pods', 'a/k0')?.text)
    assert.equal(client.isRight(), false)
    server.put('configmaps', 'a/x')
    server.bookmark()
    // A list that is not above what the copy has seen cannot be told: in a cluster something always happens.
    await stepping(
      world,
      [client],
      () => {
        if (world.comparison.found > 0 && server.version < 20) server.put('configmaps', 'a/x')
        return client.isRight()
      },
      1_200,
    )
    assert.equal(world.comparison.found, 1)
    assert.ok(
      lines.some((line) => line.includes('mirror.differs')),
      lines.join(''),
    )
    assert.deepEqual([client.lists, client.expired], [1, []])
  })
}

test('[L6] what changes while it is compared is no difference', async () => {
  const server = new ApiServer()
  server.pageMax = 3
  for (let i = 0; i < 9; i++) server.put('pods', `a/k${i}`)
  await using world = await MirrorWorld.open({ server, compares: true })
  const client = new Client(world, {})
  await stepping(world, [client], () => client.idle)
  for (let step = 0; step < 600; step++) {
    const key = `a/k${step % 11}`
    if (step % 5 === 0) server.remove('pods', key)
    else server.put('pods', key, { value: `${step}` })
    // A watch that is late: the list is ahead of the copy.
    if (step % 50 === 0) server.cutWatches()
    await world.pass(2_000, 2)
    client.step()
  }
  assert.ok(server.count('identities') > 20, `${server.count('identities')} parts were compared`)
  assert.equal(world.comparison.found, 0)
  assert.equal(server.count('list'), 1)
})

const endless: Record<string, (asked: number, items: string) => readonly [next: string, items: string]> = {
  'parts without objects': (asked) => [`t${asked}`, ''],
  'the same part': (_, items) => ['again', items],
}

for (const [name, answer] of Object.entries(endless)) {
  test(`[L6] an API server that sends ${name} without end stops the comparison of nothing else, and is compared later`, async () => {
    const server = new ApiServer()
    for (let i = 0; i < 3; i++) server.put('pods', `a/k${i}`)
    server.put('configmaps', 'a/c')
    await using world = await MirrorWorld.open({ server, compares: true })
    const clients = [new Client(world, {}), new Client(world, { resource: 'configmaps' })]
    await stepping(world, clients, () => clients.every((client) => client.idle))
    const asked = { pods: 0, configmaps: 0 }
    let isEndless = true
    const [uid, resourceVersion] = ['uid', '1']
    const items = JSON.stringify({ metadata: { name: 'a', namespace: 'a', uid, resourceVersion } })
    server.fault = ({ what, resource }) => {
      if (what !== 'identities') return undefined
      asked[resource as keyof typeof asked]++
      if (resource !== 'pods' || !isEndless) return undefined
      const [next, listed] = answer(asked.pods, items)
      const metadata = JSON.stringify({ resourceVersion: '1', continue: next })
      const text = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":${metadata},"items":[${listed}]}\n`
      return { kind: 'text', text }
    }
    await world.until(() => asked.pods > 0, 600)
    const before = asked.configmaps
    await world.until(() => asked.configmaps >= before + 2, 3_600)
    assert.ok(asked.pods > 1 && asked.pods < 60, `${asked.pods} parts`)
    isEndless = false
    const pods = asked.pods
    await world.until(() => asked.pods > pods, 1_200)
    assert.equal(world.comparison.found, 0)
  })
}

/** What a day of comparing one interest that never ends costs the line. */
async function dayOf(limits: { readonly bytesPerDayMax?: number }): Promise<number> {
  const clock = fakeClock()
  await using world = await MirrorWorld.open()
  const mirrored = world.begin({}) as MirroredInterest
  await world.until(() => mirrored.state.kind === 'synced')
  const { interest, fed, readable, state, differs } = mirrored
  let bytes = 0
  // Each part says that there is another.
  const identities = async () => {
    bytes += 40_000
    return { version: 1, entries: [], next: 'more', bytes: 40_000 }
  }
  const endless = { interest, fed, readable, state, differs, identities }
  const parts = { all: () => [endless], reachability: new Switch(clock), clock, log: silentLog, random: () => 0.5 }
  const comparison = new Comparison({ ...parts, ...limits })
  const stop = new AbortController()
  const running = comparison.run(stop.signal)
  for (let minute = 0; minute < 24 * 60; minute++) {
    clock.advance(60_000)
    await settle()
  }
  stop.abort()
  await running
  return bytes
}

test('a day of comparisons costs the line no more than its limit, whatever there is', async () => {
  const bytes = await dayOf({})
  assert.ok(bytes > 4_000_000 && bytes <= 5_040_000, `${bytes} bytes`)
})

test('a line on which a comparison finds more with fewer bytes has a limit of its own', async () => {
  const bytes = await dayOf({ bytesPerDayMax: 500_000 })
  assert.ok(bytes > 400_000 && bytes <= 540_000, `${bytes} bytes`)
})

const plan = planFields([])
const itemOf = (key: string, uid: string, version: number) => {
  const [namespace, name] = key.split('/')
  return makeItem(Buffer.from(JSON.stringify({ metadata: { name, namespace, uid } })), version, plan)
}

test('[L6] a part is compared by key, uid and version, and only as far as it reaches', () => {
  const items = [itemOf('a/1', 'u1', 10), itemOf('a/2', 'u2', 11), itemOf('a/3', 'u3', 12), itemOf('b/1', 'u4', 13)]
  const held = {
    version: 20,
    peek: (key: string) => items.find((item) => item.key === key),
    all: () => items,
  }
  const entry = (key: string, uid: string, version: number) => ({ key, uid, version })
  const suspects = (entries: ReturnType<typeof entry>[], next = '', after = '', version = 20) =>
    [...suspectsOf(held, { version, entries, next, bytes: 0 }, after).differing.keys()].sort()
  const whole = items.map(({ key, uid, version }) => entry(key, uid, version))
  assert.deepEqual(suspects(whole), [])
  assert.deepEqual(suspects(whole.slice(0, 3)), ['b/1'], 'gone')
  assert.deepEqual(suspects(whole.slice(0, 3), 'more'), [], 'the next part may have it')
  assert.deepEqual(suspects(whole.slice(2), '', 'a/2'), [], 'the part before had it')
  assert.deepEqual(suspects([entry('a/1', 'other', 10), ...whole.slice(1)]), ['a/1'])
  assert.deepEqual(suspects([entry('a/1', 'u1', 9), ...whole.slice(1)]), ['a/1'])
  assert.deepEqual(suspects([...whole, entry('c/1', 'u9', 3)]), ['c/1'])
  assert.deepEqual(suspects([...whole, entry('c/1', 'u9', 3)], '', '', 19), [], 'the copy may have seen it go')
  const late = { version: 19, entries: [...whole, entry('c/1', 'u9', 3)], next: '', bytes: 0 }
  assert.deepEqual(suspectsOf(held, late, '').unclear, ['c/1'])
  assert.deepEqual(suspects(whole.slice(1), '', '', 9), [], 'what came after the part was read says nothing')
  assert.deepEqual(suspects([...whole].reverse().slice(0, 3)), [], 'without order nothing is known to be missing')
})
