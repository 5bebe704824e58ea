import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noFields } from '../kube/object.ts'
import { makeItem, relabel } from './item.ts'

test('an object under another version is found in as it was, whatever stands before its version or after', () => {
  for (const metadata of [
    '{"name":"a","uid":"u-1","resourceVersion":"9","labels":{"b":"c"}}',
    '{"resourceVersion":"9","labels":{"b":"c"},"uid":"u-1","name":"a"}',
  ]) {
    const item = relabel(makeItem(Buffer.from(`{"metadata":${metadata},"spec":{}}`), 9, noFields), 1234)
    const again = makeItem(item.bytes, 1234, noFields)
    assert.deepEqual(item, again)
    assert.equal(item.uid, 'u-1')
  }
})
