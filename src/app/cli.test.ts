import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { UsageError } from '../base/fault.ts'
import { sentenceOf } from './cli.ts'

async function listenError(port: number, host: string): Promise<unknown> {
  const server = createServer().listen(port, host)
  return (await once(server, 'error'))[0]
}

test('an address that is taken, not ours or unknown becomes a sentence', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  const inUse = sentenceOf(await listenError(port, '127.0.0.1'))
  assert.equal(inUse, `127.0.0.1:${port} is in use: choose another address with --listen, or port 0 for a free one`)
  taken.close()
  const foreign = sentenceOf(await listenError(0, '192.0.2.99'))
  assert.match(foreign ?? '', /^cannot listen on 192\.0\.2\.99:0 \(address not available\): choose another/)
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND x'), { syscall: 'getaddrinfo', hostname: 'x' })
  assert.match(sentenceOf(unknown) ?? '', /cannot find the address of x: give an IP/)
})

test('faults of ours are not dressed up', () => {
  assert.equal(sentenceOf(new UsageError('say so')), 'say so')
  assert.equal(sentenceOf(new TypeError('x is undefined')), undefined)
  assert.equal(sentenceOf('text'), undefined)
})
