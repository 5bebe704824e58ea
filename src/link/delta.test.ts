import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { decodeDelta, encodeDelta, expandedBytesMax, WrongBase } from './delta.ts'
import { LinkFault } from './frames/bytes.ts'

const bytes = fc.uint8Array({ maxLength: 300 }).map((found) => Buffer.from(found))
/** What an object becomes: mostly what it was, with something cut, changed and put in. */
const edit = fc.tuple(bytes, fc.nat(300), fc.nat(20), bytes).map(([base, at, cut, added]) => ({
  base,
  next: Buffer.concat([base.subarray(0, at), added.subarray(0, 20), base.subarray(at + cut)]),
}))

test('[L14] what is encoded against a base is the same again with that base', () => {
  fc.assert(
    fc.property(edit, ({ base, next }) => assert.deepEqual(decodeDelta(encodeDelta(next, base), base), next)),
    { numRuns: 1_000 },
  )
})

test('[L14] another base, or a damaged delta, is found out and never gives other bytes', () => {
  const damaged = fc.tuple(edit, bytes, fc.nat(), fc.integer({ min: 1, max: 255 }))
  fc.assert(
    fc.property(damaged, ([{ base, next }, other, at, turned]) => {
      const delta = encodeDelta(next, base)
      if (base.length > 0 && other.length > 0 && !other.equals(base))
        assert.throws(() => decodeDelta(delta, other), WrongBase)
      const broken = Buffer.from(delta)
      const place = at % broken.length
      broken[place] = broken[place]! ^ turned
      expectBytesOrFault(() => decodeDelta(broken, base), next)
      expectBytesOrFault(() => decodeDelta(delta.subarray(0, place), base), next)
    }),
    { numRuns: 1_000 },
  )
})

test('[L14] a small edit of a large object is small, at any place of it', () => {
  const lines = Array.from({ length: 100_000 }, (_, at) => `${((at * 2_654_435_761) >>> 0).toString(36)} = ${at}`)
  const base = Buffer.from(lines.join('\n'))
  assert.ok(base.length > 1_000_000)
  for (const place of [0, 50_000, 99_999]) {
    const next = Buffer.from(lines.with(place, 'changed').join('\n'))
    const delta = encodeDelta(next, base)
    assert.ok(delta.length < 1_000, `line ${place}: ${delta.length} bytes`)
    assert.deepEqual(decodeDelta(delta, base), next)
  }
})

test('[L11] a delta that becomes more than it says, or says more than is allowed, ends at that size', () => {
  const zeros = Buffer.alloc(expandedBytesMax)
  assert.deepEqual(decodeDelta(encodeDelta(zeros)), zeros)
  assert.throws(() => encodeDelta(Buffer.alloc(expandedBytesMax + 1)), LinkFault)
  const beyond = Buffer.alloc(expandedBytesMax + 1)
  const honest = Buffer.alloc(4)
  honest.writeUInt32LE(crc32(beyond))
  const packed = zstdCompressSync(beyond).subarray(4)
  const oneMore = Buffer.concat([honest, Buffer.from([0x81, 0x80, 0x80, 0x02]), packed])
  assert.throws(() => decodeDelta(oneMore), /4194305 bytes where 4194304/)
  const bomb = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024)).subarray(4)
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(zeros))
  for (const size of [[0], [1], [0x80, 0x80, 0x80, 0x02], [0x81, 0x80, 0x80, 0x02], [0xff, 0xff, 0xff, 0xff, 0x7f]])
    assert.throws(() => decodeDelta(Buffer.concat([sum, Buffer.from(size), bomb])), LinkFault, `${size}`)
})

test('[L11] a window that is larger than base and result is not allocated', () => {
  const small = Buffer.from('small')
  const head = encodeDelta(small).subarray(0, 5)
  // zstd by hand: no flags, the window's logarithm less 10 in five bits, one raw block that is the last.
  const packed = (windowLog: number) => Buffer.from([0, (windowLog - 10) << 3, (small.length << 3) | 1, 0, 0, ...small])
  assert.deepEqual(decodeDelta(Buffer.concat([head, packed(10)])), small)
  for (const windowLog of [11, 20, 27])
    assert.throws(() => decodeDelta(Buffer.concat([head, packed(windowLog)])), LinkFault, `${windowLog}`)
})

test('[L11] random bytes are a fault', () => {
  const any = fc.uint8Array({ maxLength: 200 }).map((found) => Buffer.from(found))
  fc.assert(
    fc.property(any, any, (delta, base) => expectBytesOrFault(() => decodeDelta(delta, base), Buffer.alloc(0))),
    { numRuns: 5_000 },
  )
})

function expectBytesOrFault(run: () => Buffer, expected: Buffer): void {
  try {
    assert.deepEqual(run(), expected)
  } catch (error) {
    if (!(error instanceof LinkFault || error instanceof WrongBase)) throw error
  }
}
