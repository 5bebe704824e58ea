import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { configMap, deleted, notFound, partial, tokenRequest } from './messages.test-support.ts'
import { readObjectMeta, readStatus, readTokenRequest } from './peek.ts'
import { isProtobuf, ProtobufFault, readEnvelope } from './protobuf.ts'

const uid = '60172ed7-69ea-4a47-b738-f9ac3672da85'
const envelope = (raw: Buffer, rest: readonly number[] = []): Buffer =>
  Buffer.from([...Buffer.from('k8s\0'), 10, 5, 10, 1, 0x76, 18, 0, 10, 3, 18, 1, 0x4b, 18, raw.length, ...raw, ...rest])

test('the media type is known with its parameters', () => {
  assert.equal(isProtobuf('application/vnd.kubernetes.protobuf'), true)
  assert.equal(isProtobuf('Application/vnd.kubernetes.protobuf; as=x'), true)
  for (const other of [undefined, '', 'application/json', 'application/vnd.kubernetes.protobuf2']) {
    assert.equal(isProtobuf(other), false)
  }
})

test("an object's identity and version", () => {
  const { apiVersion, kind, raw } = readEnvelope(configMap)
  assert.deepEqual([apiVersion, kind], ['v1', 'ConfigMap'])
  assert.deepEqual(readObjectMeta(raw), { name: 'cm', namespace: 'pbwork', uid, resourceVersion: '311' })
  assert.equal(raw.buffer, configMap.buffer)
  assert.equal(readEnvelope(partial).kind, 'PartialObjectMetadata')
  assert.equal(readObjectMeta(readEnvelope(partial).raw).resourceVersion, '370')
})

test('a Status', () => {
  const success = { status: 'Success', reason: '', code: 0, name: 'cm', kind: 'configmaps', uid }
  assert.deepEqual(readStatus(readEnvelope(deleted).raw), success)
  const failure = { status: 'Failure', reason: 'NotFound', code: 404, name: 'cm', kind: 'configmaps', uid: '' }
  assert.deepEqual(readStatus(readEnvelope(notFound).raw), failure)
})

test('a TokenRequest', () => {
  assert.deepEqual(readTokenRequest(readEnvelope(tokenRequest).raw), {
    uid: '837fd2ad-1b3e-430d-a801-9788e2a1649c',
    createdSeconds: Date.parse('2026-11-15T13:27:02Z') / 1000,
    audiences: ['api', 'vault'],
    expirationSeconds: 3607,
    boundTo: { kind: 'Secret', apiVersion: 'v1', name: 's1', uid: '90724a96-7acb-469c-85ae-979bdb169f10' },
    token: 'header.payload.signature',
    expiresSeconds: Date.parse('2026-11-15T14:27:09Z') / 1000,
  })
  const bare = readTokenRequest(Buffer.from([18, 0, 26, 4, 18, 2, 8, 0]))
  assert.deepEqual([bare.audiences, bare.expirationSeconds, bare.expiresSeconds], [[], undefined, undefined])
})

test('a field given twice is one, the later value counts, unknown ones are passed over', () => {
  // Metadata twice, a fixed64, a fixed32 and a varint between.
  const raw = [
    10, 3, 10, 1, 0x61, 0x39, 1, 2, 3, 4, 5, 6, 7, 8, 0x45, 1, 2, 3, 4, 0x50, 0xff, 1, 10, 6, 10, 1, 0x62, 26, 1, 0x63,
  ]
  assert.deepEqual(readObjectMeta(Buffer.from(raw)), { name: 'b', namespace: 'c', uid: '', resourceVersion: '' })
})

test('what is no message is refused by name', () => {
  const many = new Array<number>(10).fill(0xff)
  const messages: Record<string, readonly number[]> = {
    'a length past the end': [10, 5, 1],
    'a length beyond all memory': [10, ...many.slice(0, 9), 1],
    'a number without end': [0x50, ...many, 1],
    'a number that is cut': [0x50, 0xff],
    'field number 0': [2, 0],
    'a field number that is negative': [0xfa, 0xff, 0xff, 0xff, 0x7f, 0],
    'a group without end': [0x1b, 0x08, 1],
    'the end of no group': [0x1c],
    'an unknown wire type': [0x0f, 0],
    'a fixed number that is cut': [0x39, 1, 2],
    'metadata that is a number': [8, 1],
    'a name that is a number': [10, 2, 8, 1],
  }
  for (const [what, raw] of Object.entries(messages)) {
    assert.throws(() => readObjectMeta(Buffer.from(raw)), ProtobufFault, what)
  }
  const beyond = [18, 11, 32, ...many.slice(0, 9), 1]
  assert.throws(() => readTokenRequest(Buffer.from(beyond)), ProtobufFault, 'a negative number of seconds')
})

test('what an envelope says of its content is passed over', () => {
  assert.equal(readEnvelope(envelope(Buffer.from([10, 0]), [26, 0, 34, 0])).kind, 'K')
  assert.equal(readEnvelope(envelope(Buffer.from([10, 0]), [26, 1, 0x67, 34, 1, 0x6a])).kind, 'K')
  const bare = readEnvelope(Buffer.from('k8s\0\x12\x02\x0a\x00', 'latin1'))
  assert.deepEqual([bare.apiVersion, bare.kind, bare.raw.length], ['', '', 2])
})

test('an envelope that is none is refused in the words of the API server', () => {
  const refusals: Record<string, string> = {
    '': 'empty data',
    k8s: 'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    '{"kind":"Pod"}': 'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    'k8s\0': 'empty body',
    'k8s\0\x0a': 'unexpected EOF',
    'k8s\0\x0a\x05ab': 'unexpected EOF',
    'k8s\0\x08\x01': 'proto: wrong wireType = 0 for field TypeMeta',
    'k8s\0\x0a\x02\x10\x01': 'proto: wrong wireType = 0 for field Kind',
    'k8s\0\x00': 'proto: Unknown: illegal tag 0 (wire type 0)',
    'k8s\0\x0a\x01\x0c': 'proto: TypeMeta: wiretype end group for non-group',
  }
  for (const [bytes, message] of Object.entries(refusals)) {
    assert.throws(() => readEnvelope(Buffer.from(bytes, 'latin1')), new ProtobufFault(message))
  }
})

/** Everything that reads, one after another. */
function readAll(bytes: Buffer): void {
  const { raw } = readEnvelope(bytes)
  readObjectMeta(raw)
  readStatus(raw)
  readTokenRequest(raw)
}

test('whatever is done to a message, reading ends: with its facts or with a fault', () => {
  const samples = [configMap, partial, deleted, notFound, tokenRequest]
  for (const sample of samples) {
    for (let end = 0; end < sample.length; end++) onlyFaults(() => readAll(sample.subarray(0, end)))
  }
  const edit = fc.tuple(fc.nat(), fc.constantFrom(0, 1, 3), fc.uint8Array({ maxLength: 11 }))
  let sound = 0
  fc.assert(
    fc.property(fc.constantFrom(...samples), fc.array(edit, { minLength: 1, maxLength: 3 }), (sample, edits) => {
      const bytes = [...sample]
      for (const [at, removed, added] of edits) bytes.splice(at % bytes.length, removed, ...added)
      if (onlyFaults(() => readAll(Buffer.from(bytes)))) sound++
    }),
    { numRuns: 3000 },
  )
  assert.ok(sound > 20)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (raw) => {
      onlyFaults(() => readObjectMeta(Buffer.from(raw)))
      onlyFaults(() => readAll(envelope(Buffer.from(raw.subarray(0, 120)))))
    }),
    { numRuns: 3000 },
  )
})

function onlyFaults(read: () => void): boolean {
  try {
    read()
    return true
  } catch (error) {
    assert.ok(error instanceof ProtobufFault, String(error))
    return false
  }
}
