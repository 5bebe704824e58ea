/** Writes and most-recent reads of an edge's clients where requests and events both come over a link, in whatever order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  aliceToken,
  answered,
  EdgeCloud,
  EdgeWorld,
  objectText,
  warningsOf,
} from '../../endpoint/edgeworld.test-support.ts'
import type { UpstreamRequest, UpstreamResponse } from '../upstream.ts'
import { LinkedRequests } from './linked.ts'
import { LinkedWorld } from './linkedworld.test-support.ts'
import { passOn } from './passon.test-support.ts'

/** What clients ask goes through the link; a write is done at once, and its event is told when the test says so. */
class CloudBehindHub extends EdgeCloud {
  readonly linked: LinkedWorld
  readonly #requests: LinkedRequests
  written = 0

  constructor() {
    super()
    const { server, clock, reachability } = this
    const beyond = {
      ...{ reachability, addresses: () => [], run: () => Promise.resolve() },
      ask: (asked: UpstreamRequest) => super.ask(asked),
      connect: (asked: UpstreamRequest) => super.connect(asked),
    }
    this.linked = new LinkedWorld({ server, handle: passOn(beyond) })
    this.#requests = new LinkedRequests({
      ...{ streams: () => this.linked.link.current?.streams, heardAt: () => clock.steady() },
      ...{ node: 'n1', userAgent: 'test', clock },
    })
    this.script = (asked) => this.write(asked)
  }

  write({ method, path, identity }: UpstreamRequest): UpstreamResponse | undefined {
    if (identity.kind !== 'token' || method === 'GET' || path !== p1) return undefined
    const { server } = this
    const isRemoval = method === 'DELETE'
    this.written = isRemoval ? server.remove('pods', 'a/p1') : server.put('pods', 'a/p1', { value: 'new' })
    const stored = server.get('pods', 'a/p1')
    const details = { name: 'p1', kind: 'pods', uid: 'u1' }
    const gone = JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Success', details })
    return answered(200, stored === undefined ? gone : objectText('pods', stored.text))
  }

  override ask(asked: UpstreamRequest): Promise<UpstreamResponse> {
    // Reviews are answered before time passes, as by a hub that is near.
    return asked.path === p1 ? this.#requests.ask(asked) : super.ask(asked)
  }
}

const p1 = '/api/v1/namespaces/a/pods/p1'

async function opened() {
  const cloud = new CloudBehindHub()
  const { linked } = cloud
  linked.put('a/p1', 'old')
  const edge = await EdgeWorld.open({ cloud, follow: linked.follow })
  const listing = edge.later('GET', '/api/v1/pods?resourceVersion=0')
  await edge.until(() => listing.done)
  assert.equal((await listing.answer).json.items.length, 1)
  return { cloud, linked, edge, [Symbol.asyncDispose]: () => edge.stop() }
}

const write = (edge: EdgeWorld, method: string) =>
  edge.later(method, p1, { token: aliceToken, body: '{}', headers: { 'content-type': 'application/json' } })
const shown = async (edge: EdgeWorld) => {
  const { status, json } = await edge.get(`${p1}?resourceVersion=0`)
  return status === 200 ? json.value : status
}

test('[A7] over a link a reply that passes its event waits at the edge, and costs no frame more', async () => {
  for (const [method, before, after] of [
    ['PUT', 'old', 'new'],
    ['DELETE', 'old', 404],
  ] as const) {
    await using it = await opened()
    const { cloud, linked, edge } = it
    await edge.pass(100)
    const { counts } = linked.hub
    const [sent, received] = [counts.sent, counts.received]
    const writing = write(edge, method)
    await edge.pass(1_000)
    // The answer has come; the event has not.
    assert.ok(cloud.written > 0)
    assert.deepEqual([writing.done, await shown(edge)], [false, before], method)
    assert.deepEqual([counts.sent - sent, counts.received - received], [1, 2], 'a token, a request, its answer')
    linked.tell('a/p1', cloud.written)
    await edge.until(() => writing.done, 1)
    assert.deepEqual([(await writing.answer).status, await shown(edge)], [200, after], method)
  }
})

test('[A7] over a link a reply behind its event goes out at once', async () => {
  await using it = await opened()
  const { cloud, linked, edge } = it
  cloud.script = (asked) => {
    const answer = cloud.write(asked)
    if (answer !== undefined) linked.tell('a/p1', cloud.written)
    return answer
  }
  const writing = write(edge, 'PUT')
  await edge.until(() => writing.done, 1)
  assert.equal(await shown(edge), 'new')
})

test('[A7] over a link whose hub lags the reply goes out after its time, and what was written is read back', async () => {
  await using it = await opened()
  const { cloud, linked, edge } = it
  const writing = write(edge, 'PUT')
  await edge.pass(1_900)
  assert.equal(writing.done, false)
  await edge.pass(200)
  assert.equal(writing.done, true)
  assert.equal(await shown(edge), 'new')
  const { json } = await edge.get('/api/v1/pods?resourceVersion=0')
  assert.equal(json.items[0].value, 'old', 'a list is of the copy')
  linked.tell('a/p1', cloud.written)
  await edge.pass(100)
  assert.equal((await edge.get('/api/v1/pods?resourceVersion=0')).json.items[0].value, 'new')
})

test('[A6] over a link a most-recent GET is never older than the API server, however far the hub is behind', async () => {
  await using it = await opened()
  const { cloud, linked, edge } = it
  const version = cloud.server.put('pods', 'a/p1', { value: 'not told yet' })
  const asking = edge.later('GET', p1)
  await edge.until(() => asking.done, 1)
  const recent = await asking.answer
  assert.deepEqual([recent.json.value, warningsOf(recent), await shown(edge)], ['not told yet', [], 'old'])
  linked.tell('a/p1', version)
  await edge.pass(100)
  assert.equal(await shown(edge), 'not told yet')
})
