import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Enveloping, type ListHead, listField, messageStart } from './enveloping.ts'
import { configMap } from './messages.test-support.ts'
import { readEnvelope } from './protobuf.ts'

const type = { apiVersion: 'v1', kind: 'ConfigMap' }
const sizes = [0, 1, 127, 128, 16_383, 16_384, 3_000_000]

test('an object in its envelope is as kube-apiserver writes it', () => {
  const { raw } = readEnvelope(configMap)
  assert.deepEqual(Buffer.concat(new Enveloping(type).pieces(raw)), configMap)
})

test('a message of any size is found again behind the tag and length of a list', () => {
  for (const size of sizes) {
    const message = Buffer.alloc(size, 0x61)
    const field = listField(message)
    assert.equal(field[0], 0x12)
    assert.ok(field.subarray(messageStart(field)).equals(message), String(size))
  }
})

test('a list is its head and its items, and the envelope tells their length', () => {
  // As a kube-apiserver of 1.36 answered an empty list, and one with a next page of seven more.
  const list = new Enveloping({ apiVersion: 'v1', kind: 'ConfigMapList' })
  const bytes = (items: readonly Buffer[], head: ListHead) => {
    const [before, end] = list.listAround(Buffer.concat(items).length, head)
    return Buffer.concat([before, ...items, end]).toString('latin1')
  }
  const plain = { resourceVersion: '278', continueToken: '', remaining: undefined }
  assert.equal(bytes([], plain), 'k8s\0\n\x13\n\x02v1\x12\rConfigMapList\x12\x0b\n\t\n\0\x12\x03278\x1a\0\x1a\0"\0')
  const item = listField(Buffer.from('item'))
  assert.equal(
    bytes([item, item], { ...plain, continueToken: 'next', remaining: 300 }),
    'k8s\0\n\x13\n\x02v1\x12\rConfigMapList\x12\x1e\n\x10\n\0\x12\x03278\x1a\x04next \xac\x02\x12\x04item\x12\x04item\x1a\0"\0',
  )
})

test('a frame is its length, the type and the object in its envelope', () => {
  const envelope = new Enveloping(type)
  for (const size of sizes) {
    const message = Buffer.alloc(size, 0x61)
    const frame = envelope.frame('MODIFIED', message)
    assert.equal(frame.readUInt32BE(0), frame.length - 4)
    assert.equal(frame.toString('latin1', 4, 14), '\n\x08MODIFIED')
    assert.ok(frame.subarray(-4 - size, -4).equals(message))
    const field = listField(message)
    assert.ok(envelope.frame('MODIFIED', field, messageStart(field)).equals(frame), 'cut from a list field')
    const object = frame.subarray(frame.indexOf('k8s\0'))
    assert.ok(object.equals(Buffer.concat(envelope.pieces(message))))
  }
})
