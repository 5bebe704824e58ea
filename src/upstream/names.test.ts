import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { test } from 'node:test'
import { createLookup } from './names.ts'

test('one lookup per name at a time, shared; the last addresses serve while the name server is away', () => {
  const asked: ((error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void)[] = []
  const lookup = createLookup((_name, found) => void asked.push(found))
  const seen: string[] = []
  const look = (options: object) =>
    lookup('k', options, (error, address) => void seen.push(error ? String(error.code) : JSON.stringify(address)))
  const away = Object.assign(new Error('away'), { code: 'EAI_AGAIN' })
  look({})
  asked.pop()?.(away, [])
  look({ all: true })
  look({ family: 4 })
  look({ family: 6 })
  assert.equal(asked.length, 1)
  asked.pop()?.(null, [{ address: '10.0.0.1', family: 4 }])
  look({})
  asked.pop()?.(away, [])
  assert.deepEqual(seen, ['EAI_AGAIN', '[{"address":"10.0.0.1","family":4}]', '"10.0.0.1"', 'ENOTFOUND', '"10.0.0.1"'])
})
