/** The contract of every upstream over a whole link in memory; then what the link says of whether the API server can be reached. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import { upstreamContract, type World } from '../contract.test-support.ts'
import { openDirect } from '../contractworld.test-support.ts'
import { Unreachable } from '../upstream.ts'
import { EdgeLink } from './edgelink.ts'
import { LinkedUpstream } from './linkedupstream.ts'
import { knownBy, MemoryLine, ModelHub } from './modelhub.test-support.ts'
import { type Handle, passOn } from './passon.test-support.ts'

const address = new URL('wss://hub.example:10002')

function openLink(handle: Handle) {
  const hub = new ModelHub({ clock: systemClock, interest: 'v1/pods', handle })
  const lines: MemoryLine[] = []
  const state = { isThere: true }
  const connect = async (signal: AbortSignal) => {
    await until(() => state.isThere || signal.aborted)
    if (signal.aborted) return undefined
    const line = new MemoryLine(address.href)
    lines.push(line)
    hub.accept(line.hub)
    return line.edge
  }
  const credential = {
    ...{ user: 'kubelet', complaints: [], life: { use: 'edge' } as const },
    ...{ observe: () => () => {}, run: () => Promise.resolve() },
  }
  const link = new EdgeLink({
    ...{
      hubs: { connect, lived: () => {}, moveOn: () => {}, leaveAlone: () => {}, hurry: () => {} },
      edge: 'e1',
      release: '1',
    },
    ...{ ...knownBy(new Map()), clock: systemClock, log: silentLog },
  })
  const upstream = new LinkedUpstream({
    ...{ link, addresses: [address], credential: credential, userAgent: 'ake/test (edge)' },
    ...{ clock: systemClock, log: silentLog, limits: { suspectEveryMs: 20, hurryEveryMs: 5, probeMsMax: 100 } },
    probeEveryMs: 50,
  })
  const ending = new AbortController()
  const running = upstream.run(ending.signal)
  return {
    upstream,
    hub,
    link,
    state,
    /** The line breaks, and the hub is not reached again. */
    leave: async () => {
      state.isThere = false
      lines.at(-1)?.cut()
      await until(() => link.current === undefined)
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await running
    },
  }
}

async function openLinked(leaving: 'the hub' | 'the API server'): Promise<World> {
  const world = await openDirect(true)
  const way = openLink(passOn(world.upstream))
  const { upstream, link, leave } = way
  await until(() => link.current !== undefined)
  return {
    ...world,
    upstream,
    own: 'kubelet',
    leave: leaving === 'the hub' ? leave : () => world.leave(),
    end: async () => {
      await way[Symbol.asyncDispose]()
      await world.end()
    },
  }
}

upstreamContract('over a link', () => openLinked('the hub'))
upstreamContract('over a link whose API server leaves', () => openLinked('the API server'))

const ok: Handle = async () => ({ status: 200, headers: [], body: Buffer.from('ok') })
const get = { method: 'GET', path: '/api', identity: { kind: 'anonymous' } } as const

test('a link that is welcomed is reachable, one that broke is not, with the reason of its end', async () => {
  await using it = openLink(ok)
  const { upstream, state, leave } = it
  const { reachability } = upstream
  await until(() => reachability.state === 'reachable')
  assert.ok(reachability.heardAt > 0)
  assert.deepEqual(upstream.addresses(), [{ url: address.href, current: true, why: 'the hub answers' }])
  await leave()
  await until(() => reachability.state === 'unreachable')
  assert.match(reachability.why, /connection closed/)
  assert.match(upstream.addresses()[0]?.why ?? '', /connection closed/)
  await assert.rejects(upstream.ask(get), Unreachable)
  state.isThere = true
  await until(() => reachability.state === 'reachable')
  assert.equal((await upstream.ask(get)).status, 200)
})

test('whether a hub passes on what an administrator asks is what it said of the link that there is', async () => {
  await using it = openLink(ok)
  const { upstream, hub, link, state, leave } = it
  for (const trustsEdges of [false, true, false]) {
    await until(() => link.current !== undefined)
    assert.equal(upstream.keepsAdministrator, !hub.trustsEdges)
    hub.trustsEdges = !trustsEdges
    await leave()
    assert.equal(upstream.keepsAdministrator, false)
    state.isThere = true
  }
})

test('a hub that says nothing is suspected by a probe, before the session gives it up', async () => {
  await using it = openLink(ok)
  const { upstream, hub } = it
  const { reachability } = upstream
  await until(() => reachability.state === 'reachable')
  for (const one of hub.ends) one.isStill = true
  assert.equal(await reachability.probe(), false)
  assert.notEqual(reachability.state, 'reachable')
  for (const one of hub.ends) one.isStill = false
  await until(() => reachability.state !== 'suspect')
})

test('a hub whose API server is gone counts as not reachable until that answers', async () => {
  let isThere = false
  await using it = openLink(async (request) => {
    if (!isThere) return { status: 503, headers: [], body: Buffer.from('nobody') }
    assert.ok(request.path === '/api' || request.identity.kind === 'node')
    return await ok(request)
  })
  const { upstream } = it
  const { reachability } = upstream
  await until(() => reachability.state === 'reachable')
  assert.equal((await upstream.ask(get)).status, 503)
  await until(() => reachability.state === 'unreachable')
  assert.match(reachability.why, /not ready/)
  isThere = true
  await until(() => reachability.state === 'reachable')
})
