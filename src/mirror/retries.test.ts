/** How long a reflector waits before it asks again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TooLarge } from '../upstream/follow/follow.ts'
import { Retries } from './retries.ts'

test('[L4] a list that does not fit is looked at every ten minutes where a page tells, and ever more rarely where all is read', () => {
  const retries = new Retries(() => 1)
  const minutes = (foreseen: boolean) =>
    Math.round(retries.failed(new TooLarge('', foreseen), { passed: true, gained: false }) / 60_000)
  assert.deepEqual([minutes(true), minutes(true), minutes(true)], [10, 10, 10])
  assert.deepEqual(
    Array.from({ length: 6 }, () => minutes(false)),
    [10, 20, 40, 80, 120, 120],
  )
  retries.lived()
  assert.equal(minutes(false), 10)
})
