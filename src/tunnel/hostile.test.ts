import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstSeed } from '../base/lives.test-support.ts'
import { LinkFault } from '../link/frames/bytes.ts'
import { type CarriedFrame, decodeTunnelFrame, encodeTunnelFrame, type TunnelFrame } from './frames.ts'
import { purposeBytesMax } from './limits.ts'
import { begun, give, limits, none, sides, some, takeAll } from './oneend.test-support.ts'
import type { TunnelStream } from './stream.ts'

const word = fc.string({ unit: 'grapheme', maxLength: 15 })
/** A grapheme can be more bytes than four. */
const purpose = word.filter((text) => Buffer.byteLength(text) <= purposeBytesMax)
const number = fc.oneof(fc.nat(9), fc.maxSafeNat())
const bytes = fc.uint8Array({ maxLength: 200 }).map((found) => Buffer.from(found))
const fields = <T>(of: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(of, { noNullPrototype: true })
const reason = fc.constantFrom('other', 'cancelled', 'unknown', 'busy', 'unsent', 'broken')
const credit = fc.oneof(fc.nat(200), fc.nat(64 << 20))
const arbitraries: { readonly [K in TunnelFrame['kind']]: fc.Arbitrary<Omit<TunnelFrame & { kind: K }, 'kind'>> } = {
  begin: fields({ streams: number, window: credit, credentials: number, contexts: number, certificates: number }),
  credential: fields({ number, token: word, is: fc.constantFrom('token', 'certificate', 'other') }) as never,
  open: fields({ stream: number, purpose, credential: fc.nat(3), last: fc.nat(1), bytes }),
  data: fields({ stream: number, bytes }),
  end: fields({ stream: number, bytes }),
  reset: fields({ stream: number, reason, sentence: word }) as never,
  credit: fields({ stream: number, bytes: credit }),
  packed: fields({
    type: fc.integer({ min: 0x80, max: 0x88 }),
    bytes,
    keep: fc.nat(3),
    base: fc.nat(3),
    share: fc.nat(9),
    kept: fc.nat(9),
  }),
}
const frames = fc.oneof(
  ...Object.entries(arbitraries).map(([kind, fields]) =>
    (fields as fc.Arbitrary<object>).map((values) => ({ kind, ...values }) as TunnelFrame),
  ),
)

test('[L10] every frame of a tunnel is read as it was written', () => {
  fc.assert(fc.property(frames, (frame) => assert.deepEqual(decodeTunnelFrame(encodeTunnelFrame(frame)), frame)))
})

test('[L13] an unknown frame of a tunnel is a fault below a0 and passed over from there on; added fields are passed over', () => {
  for (let type = 0x88; type <= 0xbf; type++) {
    const frame: CarriedFrame = { kind: 'tunnel', type, payload: some }
    if (type < 0xa0) assert.throws(() => begun('hub').receive(frame), LinkFault)
    else assert.deepEqual(begun('hub').receive(frame), [])
  }
  const { payload, ...rest } = encodeTunnelFrame({ kind: 'credit', stream: 1, bytes: 9 })
  const longer = { ...rest, payload: Buffer.concat([payload, some]) }
  assert.deepEqual(decodeTunnelFrame(longer), { kind: 'credit', stream: 1, bytes: 9 })
})

test('[L13] the bytes of a tunnel’s frames stay what they are', () => {
  const hex = (frame: TunnelFrame) => {
    const { type, payload } = encodeTunnelFrame(frame)
    return Buffer.concat([Buffer.from([type]), payload]).toString('hex')
  }
  assert.equal(
    hex({ kind: 'begin', streams: 256, window: 16384, credentials: 64, contexts: 0, certificates: 0 }),
    '80800280800140',
  )
  assert.equal(hex({ kind: 'credential', number: 1, token: 'ab', is: 'token' }), '8101026162')
  assert.equal(hex({ kind: 'credential', number: 1, token: 'ab', is: 'certificate' }), '810102616201')
  const open = { kind: 'open', stream: 1, purpose: 'ab', credential: 2, last: 1, bytes: Buffer.from('c') } as const
  assert.equal(hex(open), '82010261620201' + '0163')
  assert.equal(hex({ kind: 'data', stream: 300, bytes: Buffer.from('c') }), '83ac020163')
  assert.equal(hex({ kind: 'end', stream: 1, bytes: none }), '840100')
  assert.equal(hex({ kind: 'reset', stream: 1, reason: 'busy', sentence: 'a' }), '8501030161')
  assert.equal(hex({ kind: 'credit', stream: 1, bytes: 128 }), '86018001')
  assert.equal(
    hex({ kind: 'begin', streams: 1, window: 1, credentials: 1, contexts: 128, certificates: 0 }),
    '800101018001',
  )
  assert.equal(
    hex({ kind: 'begin', streams: 1, window: 1, credentials: 1, contexts: 0, certificates: 1 }),
    '80010101' + '0001',
  )
  const packed = { kind: 'packed', type: 0x84, bytes: Buffer.from('c'), keep: 1, base: 2 } as const
  assert.equal(hex({ ...packed, share: 0, kept: 0 }), '87840101630102')
  assert.equal(hex({ ...packed, share: 3, kept: 0 }), '8784010163010203')
  assert.equal(hex({ ...packed, share: 0, kept: 1 }), '878401016301020001')
})

/** As many as fit into a second; the conformance step `link-long` sets more. AKE_SEED repeats a run. */
const hostileFrames = Number(process.env.AKE_FRAMES ?? 40_000)

test('[L11, L17] whatever frames come, a tunnel goes on within its limits or says that the link is to be closed', () => {
  const length = 40
  const history = fc.array(frames, { minLength: length, maxLength: length, size: 'max' })
  const own = { ...limits, credentialsMax: 3 }
  let [faults, taken] = [0, 0]
  fc.assert(
    fc.property(history, fc.constantFrom(...sides), fc.boolean(), (frames, side, isSent) => {
      const tunnel = begun(side, own)
      const streams = new Set<TunnelStream>()
      let next = side === 'edge' ? 2 : 1
      for (const frame of frames) {
        // What would end at once leads on from what was there, so that the others get somewhere.
        const led =
          frame.kind === 'open' ? { ...frame, credential: 0, stream: next, bytes: frame.bytes.subarray(0, 99) } : frame
        if (frame.kind === 'begin') continue
        try {
          for (const { stream } of give(tunnel, led)) streams.add(stream)
          if (led.kind === 'open') next += 2
          taken++
        } catch (error) {
          assert.ok(error instanceof LinkFault, String(error))
          faults++
        }
        if (isSent) takeAll(tunnel)
        const unread = [...streams].reduce((sum, { unread }) => sum + unread, 0)
        assert.ok(unread <= 2 * own.streamsMax * own.windowBytes, `${unread} bytes are held`)
        assert.ok(tunnel.figures().streams <= 3 * own.streamsMax)
      }
      assert.ok(takeAll(tunnel).length <= 3 * own.streamsMax, 'what waits to be sent is bounded too')
    }),
    { seed: firstSeed, numRuns: hostileFrames / length },
  )
  assert.ok(faults > hostileFrames / 10 && taken > hostileFrames / 10, `${faults} faults, ${taken} frames`)
})

test('[L11] hostile bytes are a fault or a frame of a tunnel, and nothing else', () => {
  const type = fc.oneof(fc.integer({ min: 0x80, max: 0x87 }), fc.integer({ min: 0x80, max: 0xbf }))
  fc.assert(
    fc.property(type, bytes, (type, payload) => {
      try {
        decodeTunnelFrame({ kind: 'tunnel', type, payload })
      } catch (error) {
        assert.ok(error instanceof LinkFault, String(error))
      }
    }),
    { seed: firstSeed, numRuns: hostileFrames / 10 },
  )
})
