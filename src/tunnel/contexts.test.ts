import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LinkFault } from '../link/frames/bytes.ts'
import { HeldContexts, SentContexts, type StreamContext } from './contexts.ts'
import { encodeDifference } from './difference.ts'
import { type CarriedFrame, encodeTunnelFrame, type TunnelFrame } from './frames.ts'
import { contextsMax, keptFrameBytesMax, pieceBytesMax, standardTunnelLimits } from './limits.ts'
import { begin, begun, give, takeAll } from './oneend.test-support.ts'

const carried = (payload: Buffer): CarriedFrame => ({ kind: 'tunnel', type: 0x84, payload })
const head = Buffer.from(Array.from({ length: 40 }, (_, at) => `header-${at * 7919}`).join('\n'))
const like = (caller: string, subject: string): StreamContext => ({
  caller,
  subject,
  headBytes: head.length,
  isWhole: true,
})
const secret = Buffer.from(Array.from({ length: 30 }, (_, at) => `secret-${at * 104_729}`).join(' '))

const frames = fc.array(
  fc.record({
    caller: fc.constantFrom('a', 'b', 'c'),
    subject: fc.nat(9).map(String),
    headBytes: fc.nat(30),
    isWhole: fc.boolean(),
    size: fc.oneof({ weight: 9, arbitrary: fc.nat(200) }, { weight: 1, arbitrary: fc.nat(2_000) }),
    seed: fc.nat(3),
  }),
  { minLength: 60, maxLength: 300, size: 'max' },
)

test('[L10, L25] both sides hold the same, within their limits, and each frame is what was sent', () => {
  let [differences, smaller] = [0, 0]
  const runs = fc.property(frames, fc.constantFrom(150, 600, 5_000), fc.boolean(), (sent, bytesMax, isLess) => {
    const packing = new SentContexts(bytesMax)
    // A side may keep more than the other uses.
    const unpacking = new HeldContexts(isLess ? bytesMax * 2 : bytesMax)
    for (const { size, seed, ...context } of sent) {
      const payload = Buffer.from(Array.from({ length: size }, (_, at) => (at * (seed + 7)) % 97))
      const packed = packing.pack(context, carried(payload))
      assert.ok(packing.bytes <= bytesMax && unpacking.bytes <= 2 * bytesMax)
      if (packed === undefined) continue
      assert.deepEqual(unpacking.unpack(packed), carried(payload))
      if (!isLess) assert.equal(packing.bytes, unpacking.bytes)
      if (packed.base > 0) differences++
      if (packed.bytes.length < size / 2) smaller++
    }
  })
  fc.assert(runs, { numRuns: 100 })
  assert.ok(differences > 1_000 && smaller > 500, `${differences} differences, ${smaller} of less than half`)
})

test('[L25] what one caller was answered never makes the same bytes of another smaller, nor of its other objects', () => {
  const packing = new SentContexts(standardTunnelLimits.contextBytes)
  const payload = Buffer.concat([head, secret])
  packing.pack(like('a', 'GET /secret'), carried(payload))
  const other = packing.pack(like('b', 'GET /secret'), carried(payload))
  assert.equal(other?.base, 0)
  assert.deepEqual(other.bytes, payload)
  // Of the same caller: its head, and nothing behind it.
  const guessed = packing.pack(like('a', 'GET /other'), carried(payload))
  assert.equal(guessed?.share, head.length)
  assert.ok(guessed.bytes.length > encodeDifference(secret, head).length - 20, `${guessed.bytes.length} bytes`)
  const again = packing.pack(like('a', 'GET /secret'), carried(payload))
  assert.ok(again !== undefined && again.bytes.length < 30)
})

test('[L25] of a frame that is not compared as a whole nothing behind its head is kept, on either side', () => {
  const [packing, unpacking] = [new SentContexts(10_000), new HeldContexts(10_000)]
  const create = { ...like('a', 'POST'), isWhole: false }
  const payload = Buffer.concat([head, secret])
  for (let round = 0; round < 2; round++) {
    const packed = packing.pack(create, carried(payload))
    assert.ok(packed !== undefined)
    assert.deepEqual(unpacking.unpack(packed), carried(payload))
    assert.ok(packed.bytes.length > encodeDifference(secret, head).length - 20, `${packed.bytes.length} bytes`)
    assert.deepEqual([packing.bytes, unpacking.bytes], [head.length, head.length])
  }
})

test('[L25] a number that was given to another is no base of the first any more', () => {
  const packing = new SentContexts(standardTunnelLimits.contextBytes)
  packing.pack(like('a', 'x'), carried(secret))
  for (let at = 0; at < contextsMax; at++) packing.pack(like(`b${at}`, 'x'), carried(secret))
  assert.equal(packing.pack(like('a', 'x'), carried(secret))?.base, 0)
})

test('[L25] what is too large to be kept is sent as a difference, or as it is', () => {
  const packing = new SentContexts(standardTunnelLimits.contextBytes)
  const large = Buffer.concat([head, Buffer.alloc(keptFrameBytesMax, 'x')])
  assert.equal(packing.pack(like('a', 'x'), carried(large)), undefined)
  packing.pack(like('a', 'x'), carried(head))
  const packed = packing.pack(like('a', 'x'), carried(large))
  assert.ok(packed !== undefined && packed.keep === 0 && packed.base > 0 && packed.bytes.length < 60)
})

test('[L8, L11, L25] what only a broken or hostile side sends is a fault, and makes no more than a frame', () => {
  const held = () => {
    const contexts = new HeldContexts(1_000)
    contexts.unpack({ kind: 'packed', type: 0x82, bytes: secret, keep: 1, base: 0, share: 0, kept: 0 })
    return contexts
  }
  const next = Buffer.concat([secret, head])
  const honest = {
    kind: 'packed',
    type: 0x84,
    bytes: encodeDifference(next, secret),
    keep: 2,
    base: 1,
    share: 0,
    kept: 0,
  } as const
  assert.deepEqual(held().unpack(honest).payload, next)
  const bomb = encodeDifference(Buffer.alloc(pieceBytesMax * 2), secret)
  const damaged = Buffer.from(honest.bytes)
  damaged.writeUInt8(damaged.readUInt8(damaged.length - 3) ^ 0x55, damaged.length - 3)
  const hostile: Partial<TunnelFrame & { kind: 'packed' }>[] = [
    ...[{ type: 0x80 }, { type: 0x85 }, { type: 0x87 }, { type: 0x90 }],
    ...[{ base: 2 }, { base: 1_000_000 }, { share: secret.length + 1 }, { share: 1 }, { kept: 10_000 }],
    ...[{ keep: contextsMax + 1 }, { base: 0, bytes: Buffer.alloc(1_001) }],
    ...[
      { bytes: bomb },
      { bytes: damaged },
      { bytes: Buffer.alloc(0) },
      { bytes: encodeDifference(next, Buffer.from(`x${secret}x`)) },
    ],
  ]
  for (const one of hostile) assert.throws(() => held().unpack({ ...honest, ...one }), LinkFault, JSON.stringify(one))
})

const payloadOf = (frame: TunnelFrame) => encodeTunnelFrame(frame).payload

test('[L13, L25] only a side that says that it keeps contexts is sent packed frames', () => {
  for (const contexts of [0, 1_000]) {
    const tunnel = begun('edge', { ...standardTunnelLimits }, { ...begin, window: 1_000, contexts })
    const kinds = [1, 2].map(() => {
      const stream = tunnel.open({ purpose: 'test' })
      assert.ok(stream)
      stream.context = like('a', 'x')
      tunnel.write(stream, head)
      return takeAll(tunnel).map(({ kind }) => kind)
    })
    assert.deepEqual(kinds, contexts === 0 ? [['open'], ['open']] : [['packed'], ['packed']])
  }
})

test('[L16, L25] a frame of a stream that was given up, or is refused, is kept all the same', () => {
  const hub = begun('hub', { ...standardTunnelLimits, streamsMax: 1 })
  const open = (stream: number): TunnelFrame => ({
    ...{ kind: 'open', stream, purpose: 'test', credential: 0, last: 1, bytes: head },
  })
  const packed = (frame: TunnelFrame, base?: TunnelFrame): TunnelFrame => ({
    ...{ kind: 'packed', type: 0x82, keep: 1, share: 0, kept: 0, base: base === undefined ? 0 : 1 },
    bytes: base === undefined ? payloadOf(frame) : encodeDifference(payloadOf(frame), payloadOf(base)),
  })
  const [opened] = give(hub, packed(open(1)))
  assert.ok(opened?.type === 'opened')
  hub.reset(opened.stream, 'cancelled', '')
  takeAll(hub)
  give(hub, { kind: 'reset', stream: 1, reason: 'cancelled', sentence: '' })
  const effects = give(hub, packed(open(3), open(1)))
  assert.deepEqual(
    effects.map(({ type }) => type),
    ['opened', 'data', 'ended'],
  )
  assert.throws(() => give(hub, packed(open(5), open(1))), LinkFault)
})
