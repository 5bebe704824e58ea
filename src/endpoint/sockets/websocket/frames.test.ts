import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { acceptOf, ClientFrames, closeFrame, frameOf, type Heard, opcodes } from './frames.ts'

/** As a client sends it: masked. */
function clientFrame(opcode: number, payload: Buffer, { mask = 0x0102_0304, final = true } = {}): Buffer {
  const plain = frameOf(opcode, payload)
  const head = Buffer.from(plain.subarray(0, plain.length - payload.length))
  head[0] = (final ? 0x80 : 0) | opcode
  head[1] = (head[1] as number) | 0x80
  const key = Buffer.alloc(4)
  key.writeUInt32BE(mask >>> 0)
  return Buffer.concat([head, key, payload.map((byte, i) => byte ^ (key[i & 3] as number))])
}

function hear(chunks: readonly Buffer[]): Heard[] {
  const frames = new ClientFrames()
  return chunks.flatMap((chunk) => frames.push(chunk))
}

test('the answer to a key is the one of RFC 6455', () => {
  assert.equal(acceptOf('dGhlIHNhbXBsZSBub25jZQ=='), 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
})

test('frames carry their length in the shortest form', () => {
  for (const [length, head] of [
    [0, '8100'],
    [125, '817d'],
    [126, '817e007e'],
    [65_535, '817effff'],
    [65_536, '817f0000000000010000'],
  ] as const) {
    const frame = frameOf(opcodes.text, Buffer.alloc(length, 'x'))
    assert.equal(frame.subarray(0, frame.length - length).toString('hex'), head)
    assert.ok(frame.subarray(frame.length - length).every((byte) => byte === 0x78))
  }
  assert.equal(closeFrame().toString('hex'), '880203e8')
})

test('a ping is heard with its payload, a close ends it, messages mean nothing', () => {
  const heard = hear([
    clientFrame(opcodes.text, Buffer.from('hello'), { final: false }),
    clientFrame(opcodes.ping, Buffer.from('there?')),
    clientFrame(0, Buffer.alloc(70_000)),
    clientFrame(opcodes.pong, Buffer.from('here')),
    clientFrame(3, Buffer.from('reserved')),
    clientFrame(opcodes.ping, Buffer.alloc(0)),
    clientFrame(opcodes.close, Buffer.from([3, 0xe9])),
    clientFrame(opcodes.ping, Buffer.from('too late')),
  ])
  assert.deepEqual(heard, [
    { kind: 'ping', payload: Buffer.from('there?') },
    { kind: 'ping', payload: Buffer.alloc(0) },
    { kind: 'close', code: 1000 },
  ])
})

test('an unmasked frame is a fault, one that is too large an end, a long ping is answered by its beginning', () => {
  assert.deepEqual(hear([frameOf(opcodes.text, Buffer.from('x'))]), [{ kind: 'close', code: 1002 }])
  const huge = Buffer.from('81ff0000000002000001', 'hex')
  assert.deepEqual(hear([huge, Buffer.alloc(4)]), [{ kind: 'close', code: 1000 }])
  const lying = Buffer.from('81ffffffffffffffffff', 'hex')
  assert.deepEqual(hear([lying, Buffer.alloc(4)]), [{ kind: 'close', code: 1000 }])
  const [long] = hear([clientFrame(opcodes.ping, Buffer.alloc(300, 'p'))])
  assert.deepEqual(long, { kind: 'ping', payload: Buffer.alloc(125, 'p') })
})

test('however frames are cut, the same is heard', () => {
  const frame = fc.record({
    opcode: fc.constantFrom(0, 1, 2, 9, 9, 10),
    payload: fc.uint8Array({ maxLength: 200 }),
    mask: fc.nat(0xffff_ffff),
  })
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 9 })), (frames, cuts) => {
      const bytes = Buffer.concat(
        frames.map(({ opcode, payload, mask }) => clientFrame(opcode, Buffer.from(payload), { mask })),
      )
      const chunks: Buffer[] = []
      for (let at = 0, cut = 0; at < bytes.length; cut++) {
        const size = cuts[cut % cuts.length] ?? bytes.length
        chunks.push(bytes.subarray(at, at + size))
        at += size
      }
      const pings = frames.filter(({ opcode }) => opcode === opcodes.ping)
      assert.deepEqual(
        hear(chunks),
        pings.map(({ payload }) => ({ kind: 'ping', payload: Buffer.from(payload.subarray(0, 125)) })),
      )
    }),
  )
})

test('any bytes at all are heard without a fault, and never remembered', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 20 }), (chunks) => {
      for (const heard of hear(chunks.map((chunk) => Buffer.from(chunk)))) {
        assert.ok(heard.kind === 'close' || heard.payload.length <= 125)
      }
    }),
    { numRuns: 2_000 },
  )
})
