/** The log of an outage: a few lines, however much is mirrored. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../base/log.ts'
import { aliceToken, EdgeWorld } from '../endpoint/edgeworld.test-support.ts'
import { Outage } from './outage.ts'
import { sinceMsOf } from './statusdocument.ts'

/** A world whose outages are told; `told` is what an operator reads, since it was last asked. */
async function opened() {
  const world = await EdgeWorld.open()
  const { clock, reachability } = world.cloud
  const log = createLog({ level: 'debug', write: (line) => world.lines.push(line) })
  const stop = new AbortController()
  const refused = () => world.measures.unavailable
  const sinceMs = () => sinceMsOf(reachability, world.contact)
  const outage = new Outage({ reachability, interests: () => world.interests, refused, sinceMs, clock, log })
  const running = outage.run(stop.signal)
  const told = () =>
    world.lines
      .splice(0)
      .map((line) => line.trim().split(' ').slice(1).join(' '))
      .filter((line) => !line.startsWith('debug '))
  const end = async () => {
    stop.abort()
    await running
    await world.stop()
  }
  return { world, told, end, [Symbol.asyncDispose]: end }
}

test('an outage is told in a few lines: what is held, how long, what was refused, what came', async () => {
  await using it = await opened()
  const { world, told } = it
  const { reachability, server } = world.cloud
  for (let at = 0; at < 3; at++) server.put('pods', `a/p${at}`)
  await world.synced('pods')
  for (let at = 0; at < 20; at++) await world.synced('configmaps', `n${at}`)
  told()
  reachability.set('unreachable')
  server.cutWatches()
  for (let at = 0; at < 4; at++) {
    const { status } = await world.ask('POST', '/api/v1/namespaces/a/pods', { token: aliceToken, body: {} })
    assert.equal(status, 503)
  }
  await world.get('/api/v1/pods')
  await world.pass(90_000)
  const [began, ...more] = told()
  assert.match(String(began), /^warn outage\.began since=\S+ held=21 objects=3 notHeld=0$/)
  assert.deepEqual(more, [])
  for (let at = 0; at < 5; at++) server.put('pods', `a/new${at}`)
  server.remove('pods', 'a/p0')
  reachability.set('reachable')
  await world.until(() => world.lines.some((line) => line.includes('outage.caughtUp')))
  const lines = told()
  assert.deepEqual(lines.slice(0, 1), ['info outage.over seconds=90 refused=4'])
  assert.match(lines.slice(1).join('\n'), /^info outage\.caughtUp changes=6 interests=21 seconds=[\d.]+$/)
})

test('a cut during the return is another outage; what does not catch up is named', async () => {
  await using it = await opened()
  const { world, told } = it
  const { reachability, server } = world.cloud
  await world.synced('pods')
  told()
  for (let cut = 0; cut < 2; cut++) {
    reachability.set('unreachable')
    server.cutWatches()
    await world.pass(5_000)
    if (cut === 1) server.fault = ({ what }) => (what === 'watch' ? { kind: 'refuse' } : undefined)
    reachability.set('reachable')
  }
  assert.deepEqual(
    told().map((line) => line.split(' ')[1]),
    ['outage.began', 'outage.over', 'outage.began', 'outage.over'],
  )
  await world.pass(6 * 60_000)
  assert.match(told().join('\n'), /warn outage\.behind interests=1 first=v1\/pods /)
})

test('the mirror has not caught up while the API server refuses the credential of the edge', async () => {
  await using it = await opened()
  const { world, told } = it
  const { reachability, server } = world.cloud
  await world.synced('pods')
  told()
  reachability.set('unreachable')
  server.cutWatches()
  await world.pass(5_000)
  server.fault = () => ({ kind: 'status', code: 401 })
  reachability.set('reachable')
  await world.pass(60_000)
  const events = () => told().map((line) => line.split(' ')[1])
  assert.deepEqual(events(), ['outage.began', 'outage.over', 'mirror.refused'])
  server.fault = () => undefined
  world.interests.hurry()
  await world.until(() => world.lines.some((line) => line.includes('outage.caughtUp')))
})

test('a refusal is told once for each cause: a credential, or a right to a resource', async () => {
  await using it = await opened()
  const { world, told } = it
  const { server } = world.cloud
  for (const resource of ['pods', 'configmaps']) {
    for (let at = 0; at < 5; at++) await world.synced(resource, `n${at}`)
  }
  for (const [code, causes] of [
    [401, 1],
    [403, 2],
  ] as const) {
    await world.pass(10_000)
    told()
    server.fault = () => ({ kind: 'status', code })
    server.cutWatches()
    await world.pass(60_000)
    assert.equal([...world.interests.all].filter(({ state }) => state.kind === 'refused').length, 10)
    assert.equal(told().filter((line) => line.startsWith('warn mirror.refused')).length, causes)
    server.fault = () => undefined
    await world.pass(60_000)
  }
})

test('an edge that starts during an outage tells since when it is, and how long it was', async () => {
  await using it = await opened()
  const { world, told, end } = it
  const { clock, reachability } = world.cloud
  await world.synced('pods')
  const since = new Date(clock.now()).toISOString()
  reachability.set('unreachable')
  await world.pass(600_000)
  await end()
  await world.start({ waits: false })
  const log = createLog({ level: 'info', write: (line) => world.lines.push(line) })
  const stop = new AbortController()
  const sinceMs = () => sinceMsOf(reachability, world.contact)
  told()
  reachability.restarted()
  const parts = { reachability, interests: () => world.interests, refused: () => 0, sinceMs, clock, log }
  const running = new Outage(parts).run(stop.signal)
  await using _ = {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
  reachability.set('unreachable')
  assert.match(told().join('\n'), new RegExp(`^warn outage.began since=${since.slice(0, -5)}`))
  reachability.set('reachable')
  assert.match(told()[0] ?? '', /^info outage.over seconds=6\d\d /)
})
