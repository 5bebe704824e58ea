/** What kube-apiserver 1.36 says to each of these bodies was asked of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { configMap } from '../kube/protobuf/messages.test-support.ts'
import { encodeMessage, type Message, messageOf, wrap } from '../kube/protobuf/protobuf.ts'
import { openProtobuf } from './protobufbody.ts'

const expected = { apiVersion: 'v1', kind: 'ConfigMap' }
const magic = Buffer.from('k8s\0')
const json = Buffer.from('{"metadata":{"name":"a"},"data":{"k":"v"}}')
const raw = encodeMessage(messageOf('v1', 'ConfigMap') as Message, json)

const told = (body: Buffer | string) => {
  const opened = openProtobuf(Buffer.from(body as string, 'latin1'), expected)
  if ('json' in opened) return JSON.parse(opened.json.toString())
  return opened.type === undefined ? opened.fault : `${opened.type.apiVersion} ${opened.type.kind}: ${opened.fault}`
}
const inside = (bytes: string) => told(wrap(expected, Buffer.from(bytes, 'latin1')))

test('a message becomes the JSON of its kind', () => {
  const object = { ...expected, metadata: { name: 'a' }, data: { k: 'v' } }
  assert.deepEqual(told(wrap(expected, raw)), object)
  assert.equal(told(configMap).metadata.uid, '60172ed7-69ea-4a47-b738-f9ac3672da85')
  // Who names no kind, no version, or what is none, means the expected one.
  for (const type of [
    { apiVersion: '', kind: '' },
    { apiVersion: '', kind: 'ConfigMap' },
    { apiVersion: 'v1', kind: '' },
    { apiVersion: 'apps/v1/x', kind: 'ConfigMap' },
    { apiVersion: 'apps/', kind: 'ConfigMap' },
  ]) {
    assert.deepEqual(told(wrap(type, raw)), object, JSON.stringify(type))
  }
  const withoutType = Buffer.concat([magic, Buffer.from([0x12, raw.length]), raw])
  assert.deepEqual(told(withoutType), object)
  const withContentType = Buffer.concat([withoutType, Buffer.from('\x1a\x04gzip"\x04text')])
  assert.deepEqual(told(withContentType), object, 'what it says about its content is not looked at')
})

test('what is no message is told so in the words of kube-apiserver', () => {
  const prefix = 'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]'
  assert.equal(told(''), 'empty data')
  assert.equal(told('k8s'), prefix)
  assert.equal(told('{"kind":"ConfigMap"}'), prefix)
  assert.equal(told('k8s\0'), 'empty body')
  assert.equal(told(`k8s\0${'\xff'.repeat(11)}`), 'proto: integer overflow')
  assert.equal(told('k8s\0garbage and more'), 'proto: illegal wireType 7')
  assert.equal(told(wrap(expected, raw).subarray(0, 20)), 'unexpected EOF')
  assert.equal(told('k8s\0\x08\x01'), 'proto: wrong wireType = 0 for field TypeMeta')
  assert.equal(told('k8s\0\x0c'), 'proto: Unknown: wiretype end group for non-group')
  assert.equal(told('k8s\0\x02\0'), 'proto: Unknown: illegal tag 0 (wire type 2)')
  assert.equal(
    told('k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f'),
    'proto: negative length found during unmarshaling',
  )
})

test('a fault inside the message names what the envelope says it is', () => {
  assert.equal(inside('\x0a\x09\x0a'), 'v1 ConfigMap: unexpected EOF')
  assert.equal(inside('\x08\x05'), 'v1 ConfigMap: proto: wrong wireType = 0 for field ObjectMeta')
  assert.equal(inside('\x0a\x02\x08\x03'), 'v1 ConfigMap: proto: wrong wireType = 0 for field Name')
  assert.equal(inside('\x02\0'), 'v1 ConfigMap: proto: ConfigMap: illegal tag 0 (wire type 2)')
  assert.equal(inside('\x0c'), 'v1 ConfigMap: proto: ConfigMap: wiretype end group for non-group')
})

test('a kind that nobody knows is nothing: never an empty object', () => {
  const words = (kind: string, version: string) =>
    `${version} ${kind}: no kind "${kind}" is registered for version "${version}" in scheme "pkg/runtime/scheme.go:111"`
  assert.equal(told(wrap({ apiVersion: 'v1', kind: 'Foo' }, raw)), words('Foo', 'v1'))
  assert.equal(told(wrap({ apiVersion: 'v2', kind: 'ConfigMap' }, raw)), words('ConfigMap', 'v2'))
  assert.equal(told(wrap({ apiVersion: 'apps/v1', kind: 'ConfigMap' }, raw)), words('ConfigMap', 'apps/v1'))
})

test('options are the same in every group and version', () => {
  const options = { apiVersion: 'meta.k8s.io/v1', kind: 'DeleteOptions' }
  const body = encodeMessage(messageOf('v1', 'DeleteOptions') as Message, Buffer.from('{"dryRun":["All"]}'))
  for (const apiVersion of ['v1', 'v2', 'policy/v1', 'example.com/v3', '']) {
    const opened = openProtobuf(wrap({ ...options, apiVersion }, body), options, { anyVersion: true })
    assert.ok('json' in opened)
    assert.deepEqual(JSON.parse(opened.json.toString()).dryRun, ['All'], apiVersion)
  }
})

test('whatever the bytes are, they are an object or a fault', () => {
  const whole = wrap(expected, raw)
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.nat(255), fc.nat(whole.length), (at, byte, end) => {
      const body = Buffer.from(whole)
      body[at] = byte
      const opened = openProtobuf(body.subarray(0, end), expected)
      if ('json' in opened) JSON.parse(opened.json.toString())
      else assert.notEqual(opened.fault, '')
    }),
    { numRuns: 2_000 },
  )
})
