/** When a source counts as unused: nothing of its own prolongs that. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { interestOf } from '../../mirror/interest.ts'
import { HubSource } from './source.ts'
import type { SourceReader } from './view.ts'

type Parts = ConstructorParameters<typeof HubSource>[0]

test('a source is unused since its last reader left, also where its first list fails later', async () => {
  const clock = fakeClock()
  const interest = interestOf({ group: '', version: 'v1', resource: 'pods', namespace: '' })
  const first = Promise.withResolvers<string>()
  // A mirrored interest whose first list is on its way.
  const mirrored = { interest, readable: undefined, cache: undefined, isDoubted: false, state: { kind: 'syncing' } }
  const source = new HubSource({
    number: 1,
    known: () => assert.fail('nothing is shown'),
    mirrored: { ...mirrored, synced: () => first.promise } as unknown as Parts['mirrored'],
    digestKey: Buffer.alloc(8),
    clock,
    newest: async () => 1,
  })
  const refusals: string[] = []
  const reader: SourceReader = {
    opened: () => assert.fail('there is nothing yet'),
    event: () => assert.fail('there is nothing yet'),
    refused: ({ reason }) => refusals.push(reason),
  }
  source.join(interest, reader)
  clock.advance(1_000)
  source.leave(interest, reader)
  const leftAt = clock.steady()
  clock.advance(30_000)
  first.resolve('timeout')
  await turn()
  assert.deepEqual([source.readers, source.unusedSince, refusals], [0, leftAt, []])
  source.join(interest, reader)
  await turn()
  assert.deepEqual([source.readers, source.unusedSince, refusals], [0, clock.steady(), ['busy']])
})
