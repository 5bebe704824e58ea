import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { CommitLog } from './commitlog.ts'
import { type Disk, systemDisk } from './disk.ts'
import { headerBytes, logStart, type Position } from './segment.ts'
import { type Batch, StoreRefused } from './store.ts'
import { readLog, type Step, type TailFrame } from './tail.ts'
import { type Faults, faultyDisk } from './world.test-support.ts'

type Told = { written: string[]; outcomes: (string | number)[] }

async function inFolder(
  disk: Disk,
  body: (log: CommitLog, told: Told, folder: string) => Promise<void>,
  segmentBytes = 1 << 20,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-log-'))
  const told: Told = { written: [], outcomes: [] }
  const log = new CommitLog({
    folder,
    segmentBytes,
    disk,
    written: (batch) => void told.written.push(keyOf(batch)),
    settled: (outcome) => void told.outcomes.push(outcome instanceof Error ? outcome.message : outcome.batches),
  })
  try {
    await body(log, told, folder)
  } finally {
    await log.close(new Error('closed'))
    rmSync(folder, { recursive: true })
  }
}

const put = (key: string, synced = false, size = 10): Batch => ({
  changes: [{ interest: '/pods', position: 1, version: 1, key, kind: 'put', body: Buffer.alloc(size, key) }],
  synced,
})
const keyOf = ({ changes }: { changes: readonly { key: string }[] }) => changes[0]?.key ?? 'empty'

function framesOf(steps: Iterable<Step>): TailFrame[] {
  return [...steps].map((step) => ('frame' in step ? step.frame : assert.fail('a hole')))
}

/** What a reader finds that is told where the log ends. */
function found(folder: string, log: CommitLog): string[] {
  return framesOf(readLog({ folder, from: logStart, to: log.end as Position })).map(keyOf)
}

/** What is found after a crash. */
function recovered(folder: string): string[] {
  return framesOf(readLog({ folder, from: logStart })).map(keyOf)
}

const fresh = { isWhole: false, isSynced: true, identity: 7 }
const begin = (log: CommitLog) => log.start({ ...fresh, end: logStart, last: 0 })

test('what waits goes together in one write, and is answered in order; nothing is written before the end is known', () =>
  inFolder(systemDisk, async (log, told, folder) => {
    const order: string[] = []
    const commits = ['a', 'b', 'c'].map((key) => log.append(put(key)).then(() => order.push(key)))
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(readdirSync(folder), [])
    begin(log)
    await Promise.all(commits)
    assert.deepEqual(order, ['a', 'b', 'c'])
    assert.deepEqual(told, { written: ['a', 'b', 'c'], outcomes: [3] })
    assert.deepEqual(found(folder, log), ['a', 'b', 'c'])
  }))

test('[D1] a batch that asks for it is synced before it is answered, with whatever was written before it', async () => {
  const steps: string[] = []
  const disk: Disk = {
    ...systemDisk,
    async write(file, buffers, position) {
      await systemDisk.write(file, buffers, position)
      steps.push('write')
    },
    async sync() {
      steps.push('sync')
    },
    async syncFolder() {
      steps.push('folder')
    },
  }
  await inFolder(
    disk,
    async (log) => {
      begin(log)
      await log.append(put('a'))
      assert.deepEqual(steps.splice(0), ['write'])
      assert.equal(log.unsynced, true)
      await log.append(put('b', true))
      assert.deepEqual(steps.splice(0), ['write', 'folder', 'sync'])
      assert.equal(log.unsynced, false)
      // The segment is full: the next one is begun, and the first counts only when both are on the disk.
      await log.append(put('c', false, 3_000))
      assert.deepEqual(steps.splice(0), ['write'])
      await log.append(put('d', true))
      assert.deepEqual(steps, ['write', 'folder', 'sync', 'sync', 'sync'])
    },
    2_000,
  )
})

test('[D2] a segment that fills up while a sync waits for the folder is synced before it counts as such', async () => {
  const names = new Map<number, string>()
  const synced: (string | undefined)[] = []
  let release = () => {}
  const folderSynced = new Promise<void>((resolve) => {
    release = resolve
  })
  const disk: Disk = {
    ...systemDisk,
    async create(path) {
      const file = await systemDisk.create(path)
      names.set(file, basename(path, '.log'))
      return file
    },
    async sync(file) {
      await systemDisk.sync(file)
      synced.push(names.get(file))
    },
    syncFolder: () => folderSynced,
  }
  await inFolder(
    disk,
    async (log) => {
      begin(log)
      await log.append(put('a', false, 3_000))
      const sync = log.sync()
      await new Promise((resolve) => setImmediate(resolve))
      await log.append(put('b'))
      release()
      await sync
      assert.equal(log.proven, 2)
      assert.ok(synced.includes('0000000001'), `only ${synced.join(', ')} is on the disk`)
    },
    2_000,
  )
})

test('[D3] a write that fails takes its whole group back; the next one goes in, and a crash brings nothing back', async () => {
  let fails = false
  await inFolder(faultyDisk({ write: () => fails }), async (log, told, folder) => {
    begin(log)
    await log.append(put('a'))
    fails = true
    const outcomes = await Promise.allSettled([log.append(put('b')), log.append(put('c', true))])
    for (const outcome of outcomes) {
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof StoreRefused && outcome.reason.full)
    }
    fails = false
    assert.deepEqual(recovered(folder), ['a'])
    await log.append(put('d'))
    assert.deepEqual(told, { written: ['a', 'd'], outcomes: [1, 'no space left on device', 1] })
    assert.deepEqual(found(folder, log), ['a', 'd'])
    assert.deepEqual(recovered(folder), ['a', 'd'])
  })
})

test('[D2] what a sync has caught of a write that failed is not written over: a power cut mixes no two frames', async () => {
  let fails = false
  let caught = 0
  const disk: Disk = {
    ...systemDisk,
    async write(file, buffers, position) {
      if (!fails) return systemDisk.write(file, buffers, position)
      const half = Buffer.concat(buffers).subarray(0, 60)
      await systemDisk.write(file, [half], position)
      caught = position + half.length
      throw new Error('no')
    },
  }
  await inFolder(disk, async (log, _, folder) => {
    begin(log)
    await log.append(put('a'))
    fails = true
    await assert.rejects(log.append(put('b')))
    fails = false
    await log.append(put('c', false, 900))
    // Of what came after the sync the next hundred bytes have not reached the disk.
    const path = join(folder, readdirSync(folder).sort()[0] as string)
    const bytes = readFileSync(path)
    bytes.subarray(caught, caught + 100).fill(0)
    writeFileSync(path, bytes)
    assert.deepEqual(recovered(folder), ['a', 'c'])
  })
})

test('[D3] what could not be cut back never counts: the log goes on in another file', async () => {
  const faults: Faults = {}
  await inFolder(faultyDisk(faults), async (log, _, folder) => {
    begin(log)
    await log.append(put('a'))
    faults.write = () => true
    faults.truncate = () => true
    await assert.rejects(log.append(put('b')), StoreRefused)
    delete faults.write
    delete faults.truncate
    await log.append(put('c'))
    assert.equal(readdirSync(folder).length, 2)
    assert.deepEqual(found(folder, log), ['a', 'c'])
    assert.deepEqual(recovered(folder), ['a', 'c'])
  })
})

test('[D3] after a sync that failed nothing is written before what is not on the disk was written elsewhere', async () => {
  let fails = false
  await inFolder(faultyDisk({ sync: () => fails, truncate: () => true }), async (log, _, folder) => {
    begin(log)
    await log.append(put('a', true))
    await log.append(put('b'))
    fails = true
    await assert.rejects(log.append(put('c', true)), StoreRefused)
    await assert.rejects(log.append(put('d')), StoreRefused)
    await assert.rejects(log.sync(), StoreRefused)
    assert.equal(log.unsynced, true)
    fails = false
    // The kernel may have dropped all that the failed sync was about, and says so only once.
    const [first] = readdirSync(folder) as [string]
    truncateSync(join(folder, first), headerBytes + 80)
    await log.append(put('e', true))
    assert.deepEqual(found(folder, log), ['a', 'b', 'e'])
    assert.deepEqual(recovered(folder), ['a', 'b', 'e'])
    assert.equal(log.unsynced, false)
  })
})

test('[D3] a sync nobody waits for that fails is made good by the next one', async () => {
  let fails = true
  await inFolder(faultyDisk({ sync: () => fails }), async (log, _, folder) => {
    begin(log)
    await log.append(put('a'))
    await assert.rejects(log.sync())
    await assert.rejects(log.sync())
    fails = false
    await log.sync()
    assert.equal(log.unsynced, false)
    const files = readdirSync(folder).length
    assert.equal(files, 2, 'what may be lost was written again')
    assert.deepEqual(recovered(folder), ['a', 'empty'])
  })
})

test('[D3] a batch with nothing in it is a probe: there has to be room for more than its own few bytes', async () => {
  let free = 100_000
  const disk = { ...systemDisk, freeBytes: async () => free }
  await inFolder(disk, async (log, told) => {
    begin(log)
    await assert.rejects(log.append({ changes: [], synced: true }), (error: StoreRefused) => error.full)
    await log.append(put('a'))
    free = 1 << 30
    await log.append({ changes: [], synced: true })
    assert.deepEqual(told.written, ['a', 'empty'])
  })
})

test('[D3] an index that is slow is waited for; one that fails makes the log refuse at last, and heals', async () => {
  let writes = 0
  const disk = {
    ...systemDisk,
    async write(...asked: Parameters<Disk['write']>) {
      writes++
      await systemDisk.write(...asked)
    },
  }
  await inFolder(
    disk,
    async (log, told) => {
      begin(log)
      for (let i = 0; i < 8; i++) await log.append(put(`${i}`, false, 8 << 20))
      await log.sync()
      const before = writes
      const waiting = log.append(put('slow'))
      // Whatever may be written is asked of the disk in the turn that brings it.
      await new Promise((resolve) => setImmediate(resolve))
      assert.equal(writes, before)
      log.noteIndex({ bytes: 50 << 20, fails: false })
      await waiting
      for (let i = 0; i < 6; i++) await log.append(put(`${i}`, false, 8 << 20))
      log.noteIndex({ fails: true })
      await log.append(put('still'))
      await log.append(put('too much', false, 8 << 20))
      await assert.rejects(log.append(put('no')), (error: StoreRefused) => error.full)
      log.noteIndex({ bytes: log.bytes, fails: false })
      await log.append(put('healed'))
      assert.ok(told.written.includes('still') && !told.written.includes('no') && told.written.includes('healed'))
    },
    1 << 30,
  )
})

test('what waits for a slow disk is bounded, but one batch always goes', async () => {
  let release = () => {}
  const blocked = new Promise<void>((resolve) => {
    release = resolve
  })
  const disk: Disk = { ...systemDisk, write: () => blocked }
  await inFolder(disk, async (log) => {
    begin(log)
    log.noteIndex({ bytes: 1 << 30, fails: false })
    const large = Buffer.alloc(100 << 20)
    const batch = (key: string): Batch => ({
      changes: [{ ...(put(key).changes[0] as object), body: large } as never],
      synced: false,
    })
    const first = log.append(batch('a'))
    await new Promise((resolve) => setImmediate(resolve))
    const second = log.append(batch('b'))
    await assert.rejects(log.append(batch('c')), StoreRefused)
    release()
    await Promise.all([first, second])
  })
})

test('[D2] a log is continued in the file it ended in', () =>
  inFolder(systemDisk, async (log, _, folder) => {
    begin(log)
    await log.append(put('a'))
    await log.close(new Error('closed'))
    await assert.rejects(log.append(put('late')), /closed/)
    const again = new CommitLog({ folder, segmentBytes: 1 << 20, written: () => {}, settled: () => {} })
    const end = log.end as Position
    again.start({ ...fresh, end, last: end.segment, isWhole: true })
    await again.append(put('b'))
    await again.close(new Error('closed'))
    assert.equal(readdirSync(folder).length, 1)
    assert.deepEqual(recovered(folder), ['a', 'b'])
  }))

test('a batch of more pieces than the kernel takes at once is written as a whole', () =>
  inFolder(systemDisk, async (log, _, folder) => {
    begin(log)
    const changes = Array.from({ length: 3_000 }, (_, i) => ({
      ...{ interest: '/pods', position: i, version: i, key: `k${i}`, kind: 'put' as const },
      body: Buffer.from(`body ${i}`),
    }))
    await log.append({ changes, synced: true })
    const [frame] = framesOf(readLog({ folder, from: logStart }))
    assert.equal(frame?.changes.length, 3_000)
    assert.deepEqual(frame.next, log.end)
  }))
