import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FrameFault, FrameReader, frameBytesMax, type WatchFrame } from './frames.ts'
import { ScanFault } from './json/scan.ts'
import { scanObject } from './object.ts'

const objects = [
  '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"},"spec":{"text":"}\\n\\"{"}}',
  '{"aaa":[1,2,{"b":null}],"apiVersion":"example.com/v1","kind":"Gateway","metadata":{"name":"é😀"}}',
  '{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","creationTimestamp":null}}',
  '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}',
]
const types = ['ADDED', 'DELETED', 'BOOKMARK', 'ERROR']
const stream = Buffer.from(objects.map((object, i) => `{"type":"${types[i]}","object":${object}}\n`).join(''))
const expected = objects.map((object, i) => [types[i], object])

function plain(frames: readonly WatchFrame[]): string[][] {
  return frames.map(({ type, object }) => [type, object.toString()])
}

/** As every reader of frames does. */
function scanned(reader: FrameReader, chunk: Buffer | string): readonly WatchFrame[] {
  const frames = reader.push(Buffer.from(chunk))
  for (const { object } of frames) scanObject(object)
  return frames
}

function isFault(error: unknown): boolean {
  return error instanceof FrameFault || error instanceof ScanFault
}

test('frames come out with the bytes of their objects', () => {
  const reader = new FrameReader()
  const frames = reader.push(stream)
  assert.deepEqual(plain(frames), expected)
  assert.equal(frames[0]?.object.buffer, stream.buffer, 'nothing is copied that lies in one chunk')
  reader.end()
})

test('wherever the stream is cut into chunks, the frames are the same', () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: stream.length }), { maxLength: 12 }), (cuts) => {
      const reader = new FrameReader()
      const edges = [0, ...cuts.sort((a, b) => a - b), stream.length]
      const frames = edges.slice(1).flatMap((to, i) => {
        // A copy that is wiped afterwards: what is still pending must not depend on the chunk.
        const chunk = Buffer.from(stream.subarray(edges[i], to))
        const read = plain(reader.push(chunk))
        chunk.fill(0)
        return read
      })
      assert.deepEqual(frames, expected)
      assert.equal(reader.pending, 0)
      reader.end()
    }),
  )
  const reader = new FrameReader()
  const frames = [...stream].flatMap((byte) => plain(reader.push(Buffer.from([byte]))))
  assert.deepEqual(frames, expected)
})

test('a stream that ends inside a frame is cut', () => {
  const reader = new FrameReader()
  assert.equal(reader.push(stream.subarray(0, stream.length - 1)).length, 3)
  assert.ok(reader.pending > 0)
  assert.throws(() => reader.end(), FrameFault)
})

test('what is no frame is refused by name', () => {
  const lines = [
    '',
    'x',
    '{}',
    '[]',
    '{"type":"ADDED"}',
    '{"object":{}}',
    '{"type":"ADDED","object":{}',
    '{"type":"ADDED","object":{}}}',
    '{"type":"ADDED","object":{}}{"type":"ADDED","object":{}}',
    '{"type":"ADDED","object":null}',
    '{"type":"ADDED","object":[]}',
    '{"type":"ADDED","object":{"a":tru}}',
    '{"type":"ADDED","object":{"a":1]}',
    '{"type":"REMOVED","object":{}}',
    '{"type":["ADDED"],"object":{}}',
    '{"type":"ADDED","object":{},"object":{}}',
    '{"type":"ADDED","object":{},"more":1}',
    '{"kind":"Status","apiVersion":"v1"}',
  ]
  for (const line of lines) assert.throws(() => scanned(new FrameReader(), `${line}\n`), isFault, line)
})

test('a frame without end is refused at its limit, with or without its newline', () => {
  const chunk = Buffer.alloc(1024 * 1024, 'a')
  const reader = new FrameReader()
  for (let size = 0; size < frameBytesMax; size += chunk.length) reader.push(chunk)
  assert.equal(reader.pending, frameBytesMax)
  assert.throws(() => reader.push(Buffer.from('a')), FrameFault)
  const whole = (padding: number) => Buffer.from(`{"type":"ADDED","object":{"a":"${'a'.repeat(padding)}"}}\n`)
  const room = frameBytesMax - whole(0).length + 1
  assert.equal(new FrameReader().push(whole(room)).length, 1)
  assert.throws(() => new FrameReader().push(whole(room + 1)), FrameFault)
})

test('after any damage there is a fault, or frames whose objects are JSON', () => {
  let sound = 0
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 1), fc.integer({ min: 0, max: 127 })), {
        minLength: 1,
        maxLength: 3,
      }),
      (edits) => {
        const bytes = [...stream]
        for (const [at, removed, byte] of edits) bytes.splice(at % bytes.length, removed, byte)
        try {
          const reader = new FrameReader()
          const frames = scanned(reader, Buffer.from(bytes))
          reader.end()
          for (const { object } of frames) assert.equal(typeof JSON.parse(object.toString()), 'object')
          sound++
        } catch (error) {
          assert.ok(isFault(error), String(error))
        }
      },
    ),
    { numRuns: 3000 },
  )
  assert.ok(sound > 100)
})
