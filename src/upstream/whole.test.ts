import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Unreachable } from './upstream.ts'
import { AnswerTooLarge, readWhole } from './whole.ts'

function answer(chunks: Buffer[], headers: Record<string, string> = {}) {
  let left = false
  async function* body() {
    try {
      yield* chunks
    } finally {
      left = true
    }
  }
  return { headers, body: body() as AsyncIterableIterator<Buffer>, left: () => left }
}

test('a body comes in one piece, unpacked', async () => {
  const gzip = { 'content-encoding': 'gzip' }
  const packed = gzipSync('hello')
  assert.equal(String(await readWhole(answer([Buffer.from('hel'), Buffer.from('lo')]), 5)), 'hello')
  assert.equal(String(await readWhole(answer([packed.subarray(0, 7), packed.subarray(7)], gzip), 100)), 'hello')
  assert.equal((await readWhole(answer([], gzip), 5)).length, 0)
})

test('beyond the limit it is refused and left, also when it only unpacks to too much', async () => {
  const plain = answer([Buffer.alloc(3), Buffer.alloc(3), Buffer.alloc(3)])
  await assert.rejects(readWhole(plain, 5), AnswerTooLarge)
  assert.ok(plain.left())
  const bomb = answer([gzipSync(Buffer.alloc(100_000))], { 'content-encoding': 'gzip' })
  await assert.rejects(readWhole(bomb, 10_000), AnswerTooLarge)
  await assert.rejects(readWhole(answer([Buffer.from('garbage')], { 'content-encoding': 'gzip' }), 100), Unreachable)
})

test('whatever gzip says of its own length, it is unpacked as it is', async () => {
  const text = 'hello '.repeat(10_000)
  for (const said of [0, 1, 59_999, 60_000, 60_001, 2 ** 32 - 1]) {
    const packed = gzipSync(text)
    const unpacked = readWhole(answer([packed], { 'content-encoding': 'gzip' }), 100_000)
    assert.equal(String(await unpacked), text)
    // A length that is not the true one is a fault of the answer, in all of its sizes.
    packed.writeUInt32LE(said, packed.length - 4)
    const lying = readWhole(answer([packed], { 'content-encoding': 'gzip' }), 100_000)
    if (said === 60_000) assert.equal(String(await lying), text)
    else await assert.rejects(lying, Unreachable)
  }
})
