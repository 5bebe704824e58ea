/** A dial that fails says why: from the reason follows whether a second attempt is worth its time. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { systemClock } from '../base/clock.ts'
import { dialTcp } from './dial.ts'
import { standardLimits } from './limits.ts'
import { isCertain, reasonOf } from './reason.ts'
import { secure } from './secure.ts'

function dialTo(port: number): Promise<unknown> {
  return secure({
    dial: dialTcp(),
    url: new URL(`https://127.0.0.1:${port}`),
    trust: { insecure: true },
    pair: undefined,
    protocols: ['h2'],
    clock: systemClock,
    limits: standardLimits,
    signal: new AbortController().signal,
  })
}

test('a port where nobody listens: refused, which is certain', async () => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  const error = await dialTo(port).catch((error: unknown) => error)
  assert.equal(reasonOf(error), 'connection refused')
  assert.equal(isCertain(error), true)
})

test('a connection that is reset before TLS is agreed: reset, which is certain', async (context) => {
  const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => server.close())
  const error = await dialTo((server.address() as AddressInfo).port).catch((error: unknown) => error)
  assert.equal(reasonOf(error), 'connection reset')
  assert.equal(isCertain(error), true)
})
