import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../kube/status.ts'
import { KeyLock } from './lock.ts'

test('work on one key runs one after the other in order of arrival, other keys go on', async () => {
  const lock = new KeyLock()
  const seen: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = lock.hold('a', async () => {
    await gate.promise
    seen.push('a1')
  })
  const second = lock.hold('a', async () => void seen.push('a2'))
  await lock.hold('b', async () => void seen.push('b'))
  gate.resolve()
  await Promise.all([first, second])
  assert.deepEqual(seen, ['b', 'a1', 'a2'])
})

test('a failure is the caller’s own and leaves the key free', async () => {
  const lock = new KeyLock()
  const failed = lock.hold('a', () => Promise.reject(new Error('no')))
  const next = lock.hold('a', async () => 'yes')
  await assert.rejects(failed, /no/)
  assert.equal(await next, 'yes')
  await new Promise<void>((resolve) => setImmediate(resolve))
  assert.equal(lock.held, 0)
})

test('the queue of a key has an end', async () => {
  const lock = new KeyLock()
  const gate = Promise.withResolvers<void>()
  const waiting = Array.from({ length: 1000 }, () => lock.hold('a', () => gate.promise))
  await assert.rejects(
    lock.hold('a', async () => {}),
    (error) => error instanceof StatusError && error.code === 429,
  )
  gate.resolve()
  await Promise.all(waiting)
})
