import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../base/fault.ts'
import { createLog } from '../base/log.ts'
import { readConfig } from './config.ts'
import { parseKeys, readKeys } from './encryptionkey.ts'

const one = Buffer.alloc(32, 1)
const other = Buffer.alloc(32, 2)
const text = `# sealing since May\n${other.toString('base64')}\n\n${one.toString('base64')}\n`

test('[I4] keys are lines of base64, and what a line holds is never told', () => {
  assert.deepEqual(parseKeys(text, 'f'), [other, one])
  for (const [wrong, why] of [
    ['', /^f holds no key: make one with \(umask 077; head -c 32/],
    ['aHVudGVyMg==', /^line 1 of f is not a key of 32 bytes in base64: make one/],
    [`${text}hunter2`, /^line 5 of f is not a key/],
    [`${one.toString('base64')}\n`.repeat(17), /more than 16 keys/],
  ] as const) {
    assert.throws(
      () => parseKeys(wrong, 'f'),
      (error: Error) => error instanceof UsageError && why.test(error.message) && !/hunter|aHVu/.test(error.message),
    )
  }
})

test('[I4] keys come from a file or from a credential of the unit', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ake-key-'))
  const lines: string[] = []
  const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
  const read = async (value: string, environment = {}) => {
    const { encryptionKey } = await readConfig('serve', { args: ['--encryption-key', value], env: {} })
    return readKeys(encryptionKey, { environment, log })
  }
  try {
    const path = join(folder, 'ake-key')
    writeFileSync(path, text, { mode: 0o600 })
    assert.deepEqual(await readKeys(undefined, { environment: {}, log }), [])
    assert.deepEqual(await read(path), [other, one])
    assert.deepEqual(await read('credential:ake-key', { CREDENTIALS_DIRECTORY: folder }), [other, one])
    assert.deepEqual(lines, [])
    chmodSync(path, 0o644)
    await read(path)
    assert.match(lines.join(''), /encryptionKey\.readable/)
    await assert.rejects(read('credential:ake-key'), /is for a unit of systemd: name it there with LoadCredential/)
    await assert.rejects(read('credential:'), /--encryption-key cannot be "credential:": give FILE, for example/)
    await assert.rejects(read(join(folder, 'gone')), /cannot read .*: give the file of the store's key/)
    const leak = await read(one.toString('base64')).catch((error: Error) => error.message)
    assert.equal(leak, 'give --encryption-key a file with the key, not the key')
  } finally {
    rmSync(folder, { recursive: true })
  }
})
