import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import {
  draftFrame,
  elsewhere,
  type Frame,
  frameLengths,
  numberFrame,
  parseFrame,
  prefixBytes,
  takeBackNames,
} from './frame.ts'
import type { Batch, Change } from './store.ts'

const number = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const text = fc.string({ maxLength: 40, unit: 'grapheme' })
const body = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
const optionalBody = fc.option(body, { nil: undefined })
const plain = { noNullPrototype: true }
const one = {
  interest: fc.constantFrom('/pods', '/pods', '/nodes', ''),
  position: number,
  version: number,
  key: text,
  kind: fc.constantFrom<Change['kind']>('put', 'delete', 'gap', 'seed'),
}
const change = fc.record({ ...one, body: optionalBody }, plain)
const interest = fc.oneof(
  fc.record({ interest: text, forget: fc.constant(true as const) }, plain),
  fc.record({ interest: text, synced: number }, plain),
  fc.record({ interest: text, synced: number, floor: number }, plain),
)
const batches = fc.record({
  changes: fc.array(change, { maxLength: 6 }),
  interests: fc.array(interest, { maxLength: 3 }),
  records: fc.array(fc.record({ kind: text, key: text, value: optionalBody }, plain), { maxLength: 3 }),
  synced: fc.boolean(),
})

function encode(batch: Batch, sequence: number): Buffer {
  const draft = draftFrame(batch)
  numberFrame(draft, sequence)
  const bytes = Buffer.concat([draft.head, ...draft.bodies])
  assert.equal(bytes.length, draft.bytes)
  return bytes
}

/** What a reader does with bytes of which it knows nothing. */
function decode(bytes: Buffer, sequence: number): Frame | undefined {
  const lengths = frameLengths(bytes.subarray(0, prefixBytes))
  if (lengths === undefined || lengths.head + lengths.bodies > bytes.length) return undefined
  const frame = parseFrame(bytes.subarray(0, lengths.head), sequence)
  const isSound = frame?.pieces.every(({ start, length, checksum }) => {
    return crc32(bytes.subarray(start, start + length)) === checksum
  })
  return isSound === true ? frame : undefined
}

test('a batch comes back from its frame as it was', () => {
  fc.assert(
    fc.property(batches, fc.integer({ min: 1 }), (batch, sequence) => {
      const bytes = encode(batch as Batch, sequence)
      const frame = decode(bytes, sequence)
      const at = (piece: { start: number; length: number } | undefined) =>
        piece && bytes.subarray(piece.start, piece.start + piece.length)
      assert.deepEqual(
        frame?.changes.map((one) => ({ ...one, body: at(one.body) })),
        batch.changes,
      )
      assert.deepEqual(frame?.interests, batch.interests)
      assert.deepEqual(
        frame?.records.map((one) => ({ ...one, value: at(one.value) })),
        batch.records,
      )
      assert.equal(decode(bytes, sequence + 1), undefined, 'a frame counts at its own place only')
    }),
  )
})

const sample: Batch = {
  changes: [
    { interest: '/pods', position: 7, version: 9, key: 'a/ä', kind: 'put', body: Buffer.from('{"a":1}') },
    { interest: '/pods', position: 8, version: 10, key: 'a/b', kind: 'delete' },
  ],
  interests: [{ interest: '/nodes', synced: 4, floor: 3 }],
  records: [{ kind: 'token', key: 'k', value: Buffer.from('secret') }],
  synced: true,
}

test('[D5] a shared body lies in the first frame that brings it; later ones name it', () => {
  const shared = { name: 0 }
  const bytes = Buffer.from('shared bytes')
  const seed = (interest: string): Change => {
    return { interest, position: 0, version: 5, key: 'k', kind: 'seed', body: bytes, shared }
  }
  const drafts = [[seed('/a'), seed('/b')], [seed('/c')]].map((changes) => draftFrame({ changes, synced: false }))
  const frames = drafts.map((draft, index) => {
    numberFrame(draft, index + 7)
    assert.equal(draft.bytes, Buffer.concat([draft.head, ...draft.bodies]).length)
    return parseFrame(draft.head, index + 7)
  })
  const names = frames.flatMap((frame) => frame?.changes.map(({ name }) => name))
  assert.deepEqual(names, [shared.name, shared.name, shared.name])
  const starts = frames.map((frame) => frame?.changes.map(({ body: piece }) => piece?.start === elsewhere))
  assert.deepEqual(starts, [[false, true], [true]])
  assert.deepEqual(
    frames.map((frame) => frame?.pieces.length),
    [1, 0],
  )
  for (const draft of drafts.reverse()) takeBackNames(draft)
  assert.equal(shared.name, 0)
})

test('[D5] what lies in earlier frames is referred to in a few bytes, and comes back as it was', () => {
  const shared = fc.record({ name: fc.integer({ min: 1, max: 2 ** 45 }) }, plain)
  const referring = fc.record({ ...one, body, shared }, plain)
  fc.assert(
    fc.property(fc.array(fc.oneof(change, referring), { maxLength: 8 }), (changes) => {
      const frame = decode(encode({ changes, synced: false } as Batch, 3), 3)
      const expected = changes.map((said) => {
        const { interest: of, position, version, key, kind } = said
        const named = 'shared' in said ? said.shared : undefined
        const at = named !== undefined && kind === 'seed' ? 0 : position
        return { interest: of, position: at, version, key, kind, ...named, isElsewhere: named !== undefined }
      })
      const found = frame?.changes.map(({ body: piece, ...rest }) => ({
        ...rest,
        isElsewhere: piece?.start === elsewhere,
      }))
      assert.deepEqual(found, expected)
    }),
  )
})

test('[D5] a frame that would refer to what was refused meanwhile brings it', () => {
  const shared = { name: 0 }
  const bytes = Buffer.from('shared bytes')
  const changes: Change[] = [{ interest: '/a', position: 0, version: 5, key: 'k', kind: 'seed', body: bytes, shared }]
  const [first, second] = [draftFrame({ changes, synced: false }), draftFrame({ changes, synced: false })]
  numberFrame(first, 7)
  const third = draftFrame({ changes, synced: false })
  assert.deepEqual(third.bodies, [])
  takeBackNames(first)
  for (const draft of [second, third]) numberFrame(draft, draft === second ? 7 : 8)
  assert.deepEqual(second.bodies, [bytes])
  assert.deepEqual(third.bodies, [])
  takeBackNames(second)
  numberFrame(third, 7)
  assert.deepEqual(third.bodies, [bytes])
})

test('a frame that is cut anywhere, or has any bit turned, is no frame', () => {
  const bytes = encode(sample, 5)
  assert.notEqual(decode(bytes, 5), undefined)
  for (let length = 0; length < bytes.length; length++) assert.equal(decode(bytes.subarray(0, length), 5), undefined)
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const turned = Buffer.from(bytes)
    turned[bit >> 3] = (turned[bit >> 3] as number) ^ (1 << (bit & 7))
    assert.equal(decode(turned, 5), undefined, `bit ${bit}`)
  }
  assert.equal(decode(Buffer.alloc(4_096), 0), undefined, 'a hole in the file')
})

test('a head that lies about lengths and counts is refused, however well its checksum fits', () => {
  const good = encode(sample, 5)
  const { head } = frameLengths(good) as { head: number }
  fc.assert(
    fc.property(fc.integer({ min: 4, max: head - 4 }), fc.integer({ min: 0, max: 0xffffffff }), (at, value) => {
      const lied = Buffer.from(good)
      lied.writeUInt32LE(value, at)
      lied.writeUInt32LE(crc32(lied.subarray(4, head)), 0)
      const frame = decode(lied, 5)
      // Some lies are only other truths: another key, another version.
      if (frame === undefined) return
      const bodies = frame.pieces.reduce((sum, { length }) => sum + length, 0)
      assert.equal(head + bodies, lied.length)
      assert.ok(frame.changes.length + frame.interests.length + frame.records.length <= head)
    }),
    { numRuns: 2_000 },
  )
})

test('what could not be applied is not written: a version that is no whole number', () => {
  for (const version of [1.5, Number.NaN, 2 ** 53]) {
    const changes: Change[] = [{ interest: '/pods', position: 1, version, key: 'a', kind: 'delete' }]
    assert.throws(() => draftFrame({ changes, synced: true }), RangeError)
  }
})
