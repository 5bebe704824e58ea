import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { lockFolder } from './lockfile.ts'

const root = mkdtempSync(join(tmpdir(), 'ake-lock-'))
after(() => rmSync(root, { recursive: true, force: true }))

async function holderProcess(folder: string): Promise<ChildProcess> {
  const module = new URL('./lockfile.ts', import.meta.url).href
  const script = `const { lockFolder } = await import('${module}')
    await lockFolder(${JSON.stringify(folder)})
    globalThis.gc?.()
    console.log('held')
    setInterval(() => {}, 1000)`
  const args = ['--expose-gc', '--input-type=module', '-e', script]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  assert.match(String((await once(child.stdout!, 'data'))[0]), /held/)
  return child
}

test('a second process is refused with the holder; kill -9 frees the folder at once', async () => {
  const folder = join(root, 'a')
  const child = await holderProcess(folder)
  const message = new RegExp(`a is in use by process ${child.pid}: stop it, or choose another folder`)
  await assert.rejects(lockFolder(folder), { name: 'UsageError', message })
  child.kill('SIGKILL')
  await once(child, 'exit')
  const release = await lockFolder(folder)
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  release()
  release()
})

test('the same process is refused too, until it releases', async () => {
  const folder = join(root, 'b')
  const release = await lockFolder(folder)
  await assert.rejects(lockFolder(folder), { message: new RegExp(`process ${process.pid}`) })
  release()
  const again = await lockFolder(folder)
  again()
})

test('[I4] nobody but its owner reads the lock, also where everybody could', async () => {
  const folder = join(root, 'd')
  const mode = () => statSync(join(folder, 'lock.db')).mode & 0o777
  const before = process.umask(0)
  try {
    const release = await lockFolder(folder)
    assert.equal(mode(), 0o600)
    release()
    chmodSync(join(folder, 'lock.db'), 0o644)
    const again = await lockFolder(folder)
    assert.equal(mode(), 0o600)
    again()
  } finally {
    process.umask(before)
  }
})

test('[D4] a lock that a disk has damaged is made anew, never while somebody holds it', async () => {
  const folder = join(root, 'e')
  const path = join(folder, 'lock.db')
  const release = await lockFolder(folder)
  release()
  writeFileSync(path, 'x'.repeat(8192))
  const again = await lockFolder(folder)
  again()
  const child = await holderProcess(folder)
  // Whatever it holds now, it is held.
  writeFileSync(path, 'x'.repeat(8192))
  await assert.rejects(lockFolder(folder), { message: new RegExp(`in use by process ${child.pid}`) })
  child.kill('SIGKILL')
  await once(child, 'exit')
})

test('a pid file left by the dead names nobody', async () => {
  const folder = join(root, 'c')
  const release = await lockFolder(folder)
  writeFileSync(join(folder, 'pid'), '4194305\n') // above the kernel's highest pid
  await assert.rejects(lockFolder(folder), { message: /in use by another process/ })
  release()
})

test('a folder that cannot be made is refused by name', async () => {
  writeFileSync(join(root, 'file'), '')
  await assert.rejects(lockFolder(join(root, 'file', 'x')), { name: 'UsageError', message: /cannot create the folder/ })
})
