import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtinFacts } from '../builtin.ts'
import { configMap, deleted, notFound, partial, tokenRequest } from './messages.test-support.ts'
import { decodeMessage, encodeMessage, messageOf, ProtobufFault, readEnvelope, wrap } from './protobuf.ts'
import { known, recorded } from './recorded.test-support.ts'

test('an object of every kind with all of its fields is the same in both forms, both ways', () => {
  assert.ok(recorded.length >= 100)
  for (const { apiVersion, kind, message, raw, json } of recorded) {
    assert.equal(decodeMessage(message, raw).toString(), json.toString(), `${apiVersion} ${kind}`)
    assert.equal(encodeMessage(message, json).toString('hex'), raw.toString('hex'), `${apiVersion} ${kind}`)
  }
})

test('what a kube-apiserver answered is written again to the byte', () => {
  for (const bytes of [configMap, partial, deleted, notFound, tokenRequest]) {
    const { apiVersion, kind, raw } = readEnvelope(bytes)
    const message = known(apiVersion, kind)
    const json = decodeMessage(message, raw, { apiVersion, kind })
    assert.ok(json.toString().startsWith(`{"kind":"${kind}","apiVersion":"${apiVersion}","metadata":{`))
    assert.ok(wrap({ apiVersion, kind }, encodeMessage(message, json)).equals(bytes))
  }
})

test('every built-in resource that is served has messages for its objects and lists', () => {
  for (const { group, version, kind, listKind, subresources } of builtinFacts().resources) {
    const apiVersion = group === '' ? version : `${group}/${version}`
    for (const each of [kind, listKind, 'DeleteOptions', 'WatchEvent']) {
      if (each !== '') assert.ok(messageOf(apiVersion, each), `${apiVersion} ${each}`)
    }
    for (const sub of subresources) {
      const subVersion = sub.group === '' ? sub.version : `${sub.group}/${sub.version}`
      assert.ok(messageOf(subVersion, sub.kind), `${subVersion} ${sub.kind}`)
    }
  }
  assert.ok(messageOf('meta.k8s.io/v1', 'PartialObjectMetadataList'))
  assert.equal(messageOf('example.com/v1', 'Pod'), undefined)
  assert.equal(messageOf('v1', 'Nope'), undefined)
  assert.equal(messageOf('v1', ''), undefined)
  assert.equal(messageOf('*', 'DeleteOptions'), undefined)
})

test('spaces, order, unknown members and escapes in names make no difference', () => {
  for (const { kind, message, raw, json } of recorded) {
    if (/[^\0-~]|"(Raw|raw|data|default|example|object)"/.test(json.toString())) continue
    const tree: unknown = JSON.parse(json.toString(), (_, value: unknown) => shuffled(value))
    const text = JSON.stringify(tree, undefined, 1).replace('"metadata":', '"\\u006deta\\u0064ata" :')
    // Raw JSON keeps its spaces and order.
    if (!text.includes('fieldsV1')) assert.ok(encodeMessage(message, Buffer.from(text)).equals(raw), kind)
  }
  const pod = known('v1', 'Pod')
  const plain = encodeMessage(pod, Buffer.from('{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}'))
  const odd =
    ' {"x":[{"y":"}\\""}],"spec":{"nodeName":"n" , "z":null},\n"Metadata":{"name":"b"},"\\u006detadata":{"name":"a"}}'
  assert.ok(encodeMessage(pod, Buffer.from(odd)).equals(plain))
})

/** Members in the opposite order, and one that no message has. */
function shuffled(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries([...Object.entries(value).reverse(), ['noSuchMember', { a: ['}', null, '\\'] }]])
}

test('whatever is done to a message, reading it ends with JSON or with a fault', () => {
  const samples = recorded.filter(({ raw }) => raw.length > 0 && raw.length < 4000)
  const change = fc.record({
    sample: fc.nat(samples.length - 1),
    edits: fc.array(fc.record({ at: fc.nat(), kind: fc.nat(4), byte: fc.nat(255) }), { minLength: 1, maxLength: 4 }),
  })
  fc.assert(
    fc.property(change, ({ sample, edits }) => {
      const { message, raw } = samples[sample] as (typeof samples)[number]
      let bytes: Buffer = raw
      for (const { at, kind, byte } of edits) bytes = edited(bytes, at % (bytes.length + 1), kind, byte)
      const json = faultOr(() => decodeMessage(message, bytes))
      if (json === undefined) return
      // What could be read can be written, but for years that no JSON has; then, what is no UTF-8 being replaced, it stays.
      const written = faultOr(() => encodeMessage(message, json))
      if (written === undefined) {
        assert.match(json.toString(), /"-?\d{5,}-\d\d-\d\dT|"-\d{4}-\d\d-\d\dT/)
        return
      }
      const again = encodeMessage(message, decodeMessage(message, written))
      assert.equal(again.toString('hex'), written.toString('hex'))
    }),
    { numRuns: 3000 },
  )
})

function edited(bytes: Buffer, at: number, kind: number, byte: number): Buffer {
  const before = bytes.subarray(0, at)
  const after = bytes.subarray(at)
  if (kind === 0) return before
  if (kind === 1) return Buffer.concat([before, Buffer.from([byte]), after])
  if (kind === 2) return Buffer.concat([before, Buffer.from([byte]), after.subarray(1)])
  if (kind === 3) return Buffer.concat([bytes, after])
  return Buffer.concat([before, after.subarray(byte)])
}

test('whatever is done to JSON, writing it ends with a message or with a fault', () => {
  const samples = recorded.filter(({ json }) => json.length < 8000)
  const change = fc.tuple(
    fc.nat(samples.length - 1),
    fc.nat(),
    fc.constantFrom('', '"', '{', ']', ',', '1', 'null', '\\'),
  )
  fc.assert(
    fc.property(change, ([sample, place, text]) => {
      const { message, json } = samples[sample] as (typeof samples)[number]
      const at = place % json.length
      const bytes = Buffer.concat([json.subarray(0, at), Buffer.from(text), json.subarray(at + 1)])
      const raw = faultOr(() => encodeMessage(message, bytes))
      if (raw !== undefined) faultOr(() => decodeMessage(message, raw))
    }),
    { numRuns: 3000 },
  )
})

function faultOr(run: () => Buffer): Buffer | undefined {
  try {
    return run()
  } catch (error) {
    assert.ok(error instanceof ProtobufFault, String(error))
    return undefined
  }
}
