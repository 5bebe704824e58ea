import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { systemClock } from '../../base/clock.ts'
import { credentialOf, type HubParts, startHub } from './hub.test-support.ts'
import type { PlainRequest } from './plain.ts'

async function world(parts: Pick<HubParts, 'limits' | 'clock' | 'revoked'> = {}) {
  const asked: PlainRequest[] = []
  const plain = (one: PlainRequest) => {
    asked.push(one)
    return Promise.resolve({ status: 200, content: { bytes: one.body.length } })
  }
  const hub = await startHub({ plain, ...parts })
  const say = async (text: string, { pair, ends = true }: { pair?: object; ends?: boolean } = {}) => {
    const socket = connect({ host: '127.0.0.1', port: hub.port, rejectUnauthorized: false, ...pair })
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    socket.write(text)
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk.toString()
    })
    await once(socket, ends ? 'end' : 'close')
    socket.destroy()
    return heard
  }
  return { hub, asked, say, [Symbol.asyncDispose]: hub.close }
}

const post = (bytes: number, body: string) =>
  `POST /join/v1/requests HTTP/1.1\r\nhost: h\r\ncontent-length: ${bytes}\r\n\r\n${body}`

test('one request to a connection, with where it comes from, and the node of a certificate that counts', async () => {
  await using it = await world()
  const { hub, asked, say } = it
  const head = 'GET /join/v1/authorities HTTP/1.1\r\nhost: h\r\nauthorization: Bearer x\r\n\r\n'
  const heard = await say(head + head)
  assert.equal(heard.match(/HTTP\/1\.1 200/g)?.length, 1)
  assert.match(heard, /cache-control: no-store\r\n/)
  assert.match(heard, /Date: /i, 'by which a joiner knows the time')
  const { body: _, ...rest } = asked[0] as PlainRequest
  assert.deepEqual(rest, {
    ...{ method: 'GET', path: '/join/v1/authorities', authorization: 'Bearer x', from: '127.0.0.1' },
    ...{ node: undefined, endedNode: undefined },
  })
  await say(head, { pair: credentialOf(hub.state).pair })
  assert.equal(asked.at(-1)?.node, 'edge-1')
  await using foreign = await world()
  await say(head, { pair: credentialOf(foreign.hub.state).pair })
  assert.equal(asked.at(-1)?.node, undefined, 'of another authority')
})

test('of a certificate that has ended it is told whose it was, unless it was revoked', async () => {
  let nowMs = Date.now()
  let revoked: string | undefined
  await using it = await world({ clock: { ...systemClock, now: () => nowMs }, revoked: () => revoked })
  const { hub, asked, say } = it
  const { pair } = credentialOf(hub.state)
  nowMs += 3 * 365 * 24 * 3600_000
  const shown = async () => {
    await say('GET /join/v1/authorities HTTP/1.1\r\nhost: h\r\n\r\n', { pair })
    const { node, endedNode } = asked.at(-1) as PlainRequest
    return { node, endedNode }
  }
  assert.deepEqual(await shown(), { node: undefined, endedNode: 'edge-1' })
  revoked = 'revoked'
  assert.deepEqual(await shown(), { node: undefined, endedNode: undefined })
})

test('a body that is too long is refused as soon as it is, one that never ends goes with its connection', async () => {
  await using it = await world({ limits: { arrivalMsMax: 700 } })
  const { asked, say } = it
  assert.match(await say(post(4, 'body')), /\{"bytes":4\}$/)
  assert.match(await say(post(1e9, 'x'.repeat(9_000))), /^HTTP\/1\.1 413/)
  const startedMs = performance.now()
  assert.equal(await say(post(100, 'x'), { ends: false }), '')
  assert.ok(performance.now() - startedMs < 5_000)
  assert.equal(asked.length, 1)
})
