/**
 * One process per data folder. The lock is SQLite's exclusive lock on an empty DIR/lock.db, since Node has no flock: the
 * kernel drops it when the process dies, however it dies, so a stale lock cannot exist. DIR/pid is only for the message.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { reasonOf, UsageError } from '../base/fault.ts'
import { makePrivateFolder } from '../pki/privatefile.ts'

const sqliteBusy = 5
/** Damaged, or no database at all: a process that held it would be met first, as busy. */
const sqliteUnreadable = [11, 26]

// A lock whose owner forgot it must not be collected, and so released, while the process lives.
const held = new Set<DatabaseSync>()

/** Takes the folder, creating it if need be, or refuses and names the process that holds it; the answer gives it back. */
export async function lockFolder(folder: string): Promise<() => void> {
  await makePrivateFolder(folder)
  const pidFile = join(folder, 'pid')
  let lock: DatabaseSync | undefined
  try {
    lock = openOrReplace(join(folder, 'lock.db'))
    notePid(pidFile)
  } catch (error) {
    lock?.close()
    if ((error as { errcode?: number }).errcode === sqliteBusy) {
      throw new UsageError(`${folder} is in use by ${holder(pidFile)}: stop it, or choose another folder with --data`)
    }
    if ((error as NodeJS.ErrnoException).code === 'EROFS') throw new UsageError(readOnly(folder))
    throw new UsageError(`cannot lock ${folder} (${reasonOf(error)}): check its owner, mode and free space`)
  }
  held.add(lock)
  return () => {
    if (!held.delete(lock)) return
    forgetPid(pidFile)
    lock.close()
  }
}

/** Where the kernel found a fault and the filesystem has `errors=remount-ro`, or where a unit was not given the folder. */
function readOnly(folder: string): string {
  return (
    `${folder} lies on ${mountOf(folder)}, which is mounted read-only: repair that filesystem and mount it writable ` +
    '(under ProtectSystem= of a unit name the folder in ReadWritePaths=), or copy the folder to another disk and ' +
    'name the copy with --data'
  )
}

/** The highest folder above this one that is on the same device. */
function mountOf(folder: string): string {
  const { dev } = statSync(folder)
  let mount = realpathSync(folder)
  for (let above = dirname(mount); above !== mount && statSync(above).dev === dev; above = dirname(mount)) mount = above
  return mount
}

/** On a full disk the holder cannot be named, which is no reason not to start. */
function notePid(pidFile: string): void {
  try {
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** One that stays names a process that is over, which is found out: no reason for an end to fail where a disk takes no writes. */
function forgetPid(pidFile: string): void {
  try {
    rmSync(pidFile, { force: true })
  } catch {
    // A disk that failed while the process ran.
  }
}

/** There is nothing in it to lose: one that a disk has damaged is made anew. */
function openOrReplace(path: string): DatabaseSync {
  try {
    return openLock(path)
  } catch (error) {
    if (!sqliteUnreadable.includes((error as { errcode?: number }).errcode ?? 0)) throw error
    rmSync(path, { force: true })
    return openLock(path)
  }
}

function openLock(path: string): DatabaseSync {
  // SQLite would make it readable by every user. Never an open and close of one that is there: that drops locks on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  else if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    // Nothing is ever written to it: no journal, nothing to recover.
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

function holder(pidFile: string): string {
  try {
    const pid = Number(readFileSync(pidFile, 'utf8'))
    process.kill(pid, 0) // throws unless alive: the file may be of an earlier holder
    return `process ${pid}`
  } catch {
    return 'another process'
  }
}
