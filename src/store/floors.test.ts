import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Floors } from './floors.ts'

const forget = { changes: [], interests: [{ interest: '/pods', forget: true as const }], synced: false }
const say = (floor: number) => ({ changes: [], interests: [{ interest: '/pods', synced: 9, floor }], synced: false })

test('what the index says of an interest that was forgotten since is about another', () => {
  const floors = new Floors()
  floors.commit(say(5), 1)
  floors.told([['/pods', 7]])
  assert.equal(floors.of('/pods'), 7)
  floors.commit(forget, 4)
  assert.equal(floors.of('/pods'), 0)
  // The index has everything up to the third frame only.
  floors.applied(4)
  floors.told([['/pods', 8]])
  assert.equal(floors.of('/pods'), 0)
  floors.applied(5)
  floors.told([['/pods', 2]])
  assert.equal(floors.of('/pods'), 2)
  floors.commit(say(1), 6)
  assert.equal(floors.of('/pods'), 2, 'it never falls')
})
