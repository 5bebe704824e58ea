import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { frameBytesMax } from '../../../kube/frames.ts'
import type { ResponseBody } from '../../endpoint.ts'
import { EventCutter, EventMessages } from './events.ts'
import { closeFrame, frameOf, opcodes } from './frames.ts'

const json = { 'content-type': 'application/json' }
const protobuf = { 'content-type': 'application/vnd.kubernetes.protobuf;stream=watch' }

function prefixed(event: Uint8Array): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(event.length)
  return Buffer.concat([length, event])
}

async function messagesOf(body: ResponseBody, headers: Record<string, string>): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of new EventMessages({ body, headers })) parts.push(part)
  return Buffer.concat(parts)
}

test('each event is a message of its own, text with its line end, and the end is a close', async () => {
  const text = ['{"type":"ADDED"}\n', '{"type":"MODIFIED"}\n'].map((line) => Buffer.from(line))
  const expected = [...text.map((line) => frameOf(opcodes.text, line)), closeFrame()]
  assert.deepEqual(await messagesOf(Buffer.concat(text), json), Buffer.concat(expected))
  assert.deepEqual(await messagesOf(text, json), Buffer.concat(expected))
})

test('events in protobuf are binary messages without their length', async () => {
  const events = [Buffer.from('one'), Buffer.alloc(0), Buffer.alloc(70_000, 'x')]
  const expected = [...events.map((event) => frameOf(opcodes.binary, event)), closeFrame()]
  assert.deepEqual(await messagesOf(events.map(prefixed), protobuf), Buffer.concat(expected))
})

test('however a stream is cut, its events are the same', () => {
  const events = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 10 })
  const cuts = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 })
  fc.assert(
    fc.property(events, cuts, fc.boolean(), (made, sizes, byLength) => {
      const whole = made.map((event) =>
        byLength ? Buffer.from(event) : Buffer.from(`${Buffer.from(event).toString('hex')}\n`),
      )
      const bytes = Buffer.concat(byLength ? whole.map(prefixed) : whole)
      const cutter = new EventCutter(byLength)
      const found: Buffer[] = []
      for (let at = 0, cut = 0; at < bytes.length; cut++) {
        const size = sizes[cut % sizes.length] as number
        found.push(...cutter.push(bytes.subarray(at, at + size)))
        at += size
      }
      assert.deepEqual(found.map(String), whole.map(String))
    }),
  )
})

test('an event that is too large, or says so, ends the stream', () => {
  assert.throws(() => new EventCutter(true).push(Buffer.from('fffffffff0', 'hex')), /over/)
  const cutter = new EventCutter(false)
  const part = Buffer.alloc(frameBytesMax / 2, 'x')
  cutter.push(part)
  cutter.push(part)
  assert.throws(() => cutter.push(part), /over/)
})

test('a client that leaves does not wait for the next event, and no event follows', async () => {
  let left = false
  let say: (result: IteratorResult<Buffer>) => void = () => {}
  const body: AsyncIterableIterator<Buffer> = {
    [Symbol.asyncIterator]: () => body,
    next: () => new Promise((resolve) => (say = resolve)),
    return: async () => {
      left = true
      return { value: undefined, done: true }
    },
  }
  const messages = new EventMessages({ body, headers: json })
  const next = messages.next()
  await messages.return()
  assert.ok(left)
  say({ value: Buffer.from('{}\n'), done: false })
  assert.equal((await next).done, true)
})
