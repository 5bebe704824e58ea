import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../base/fault.ts'
import { openAccountKey } from './accountkey.ts'

const spelled = (key: Parameters<typeof createPublicKey>[0]) =>
  createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()

test('[I4] the key of tokens is made once, for its owner alone; one that cannot be used is named', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-test-'))
  try {
    const path = join(folder, 'accounts.key')
    const made = await openAccountKey(folder)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(spelled(await openAccountKey(folder)), spelled(made))
    assert.match(readFileSync(path, 'utf8'), /BEGIN PRIVATE KEY/)
    const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
    for (const text of ['nothing', other.export({ type: 'pkcs8', format: 'pem' }).toString()]) {
      writeFileSync(path, text)
      await assert.rejects(
        openAccountKey(folder),
        (error) => error instanceof UsageError && error.message.includes(path),
      )
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
