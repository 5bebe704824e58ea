/** Events of edges, at an API server that takes them, or not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import type { UpstreamRequest, UpstreamResponse } from '../../upstream/upstream.ts'
import { FleetEvents } from './fleetevents.ts'

type Made = {
  readonly metadata: { readonly name: string }
  readonly involvedObject: { readonly name: string; readonly uid: string }
  readonly reason: string
  readonly type: string
  readonly message: string
}

function open(hub = 'h1') {
  const clock = fakeClock()
  const made: Made[] = []
  const lines: string[] = []
  const server = { status: 201 }
  const ask = async ({ method, path, body }: UpstreamRequest): Promise<UpstreamResponse> => {
    assert.deepEqual([method, path], ['POST', '/api/v1/namespaces/default/events'])
    if (server.status < 300) made.push(JSON.parse((body as Buffer).toString()) as Made)
    return { status: server.status, headers: {}, body: (async function* () {})(), heardAt: () => 0 }
  }
  const log = createLog({ level: 'warn', write: (line) => void lines.push(line) })
  const events = new FleetEvents({ upstream: { ask }, hub, clock, log })
  const ending = new AbortController()
  const running = events.run(ending.signal)
  const pass = async (ms: number) => {
    for (let at = 0; at < ms; at += 100) {
      clock.advance(100)
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    }
  }
  const close = async () => {
    ending.abort()
    await running
  }
  return { clock, made, lines, server, events, pass, [Symbol.asyncDispose]: close }
}

test('one of each kind for a node in ten minutes, whatever is shown again and again; all are counted', async () => {
  await using it = open()
  const { made, events, pass } = it
  for (let at = 0; at < 50; at++) {
    events.tell({ node: 'n1', reason: 'EdgeRevoked', message: `x${at}` })
    events.tell({ node: 'n2', uid: 'u2', reason: 'EdgeJoined', message: 'came' })
    await pass(1_000)
  }
  assert.deepEqual(
    made.map(({ reason, type, involvedObject: { name, uid } }) => [reason, type, name, uid]),
    [
      ['EdgeRevoked', 'Warning', 'n1', 'n1'],
      ['EdgeJoined', 'Normal', 'n2', 'u2'],
    ],
  )
  await pass(600_000)
  events.tell({ node: 'n1', reason: 'EdgeRevoked', message: 'again' })
  await pass(1_000)
  assert.equal(made.length, 3)
  assert.match(events.figures().join(), /ake_hub_edge_events_total\{reason="EdgeRevoked"\} 51/)
})

test('what several hubs tell of is one Event; what is told by one of them at two times is two', async () => {
  await using one = open('h1')
  await using other = open('h2')
  for (const { events, pass } of [one, other]) {
    events.tell({ node: 'n1', reason: 'EdgeJoined', message: 'came', once: 'fingerprint' })
    events.tell({ node: 'n1', reason: 'EdgeRevoked', message: 'x' })
    await pass(1_000)
  }
  assert.equal(one.made[0]?.metadata.name, other.made[0]?.metadata.name)
  assert.notEqual(one.made[1]?.metadata.name, other.made[1]?.metadata.name)
})

test('an API server that takes none is asked seldom, told of once, and no more than so many wait for it', async () => {
  await using it = open()
  const { made, lines, server, events, pass } = it
  server.status = 403
  for (let at = 0; at < 1_000; at++) events.tell({ node: `n${at}`, reason: 'EdgeRevoked', message: 'x' })
  await pass(180_000)
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /may not create Events/)
  server.status = 201
  await pass(200_000)
  assert.equal(made.length, 256)
})
