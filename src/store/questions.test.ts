import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Questions } from './questions.ts'

const put = { interest: '/pods', position: 1, version: 1, key: 'a', kind: 'put' as const, body: Buffer.from('x') }

test('the index is made to follow the log only where it has not heard of what is asked, or may have lost it', () => {
  const questions = new Questions()
  const news = () => [questions.isNews('interest', '/pods'), questions.isNews('record', 'token')]
  assert.deepEqual(news(), [true, true], 'nobody knows what it has')
  questions.applied(1)
  assert.deepEqual(news(), [false, false])
  questions.commit({ changes: [put], synced: true }, 1)
  questions.commit({ changes: [], records: [{ kind: 'token', key: 'k', value: undefined }], synced: true }, 2)
  assert.deepEqual(news(), [true, true])
  questions.applied(2)
  assert.deepEqual(news(), [false, true])
  questions.applied(3)
  assert.deepEqual(news(), [false, false])
  questions.unsettle()
  assert.deepEqual(news(), [true, true])
  questions.commit({ changes: [], interests: [{ interest: '/pods', forget: true }], synced: true }, 3)
  questions.applied(3)
  assert.deepEqual(news(), [true, false])
})
