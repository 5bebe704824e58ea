import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ledger } from './ledger.ts'

test('a place lags by what was written after its version, since the first of it', () => {
  const ledger = new Ledger()
  assert.deepEqual(ledger.lagOf(0, 5_000), { changes: 0, ms: 0 })
  ledger.wrote(10, 1_000)
  ledger.wrote(12, 2_000)
  ledger.wrote(13, 3_000)
  assert.deepEqual(ledger.lagOf(9, 5_000), { changes: 3, ms: 4_000 })
  assert.deepEqual(ledger.lagOf(10, 5_000), { changes: 2, ms: 3_000 })
  assert.deepEqual(ledger.lagOf(13, 5_000), { changes: 0, ms: 0 })
  ledger.forget(12)
  assert.deepEqual(ledger.lagOf(12, 5_000), { changes: 1, ms: 2_000 })
})
