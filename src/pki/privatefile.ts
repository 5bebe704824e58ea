/** Small files with secrets: readable by their owner only, and whole or absent whatever happens while they are written. */
import { randomUUID } from 'node:crypto'
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { reasonOf, UsageError } from '../base/fault.ts'

/** Temporary file, sync, rename, sync of the folder: a power cut leaves the old content or the new. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await written(path, text, (temporary) => rename(temporary, path))
}

/** The same, but never in the place of a file that is there: answers false then. Of several writers one gets true. */
export async function createPrivateFile(path: string, text: string): Promise<boolean> {
  return await written(path, text, async (temporary) => {
    try {
      await link(temporary, path)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    } finally {
      await rm(temporary, { force: true })
    }
  })
}

async function written<T>(path: string, text: string, place: (temporary: string) => Promise<T>): Promise<T> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}`)
  try {
    const file = await open(temporary, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    const placed = await place(temporary)
    await syncFolder(dirname(path))
    return placed
  } catch (error) {
    await rm(temporary, { force: true })
    throw new UsageError(`cannot write ${path} (${reasonOf(error)}): check the folder's owner and free space`)
  }
}

/** The text, or undefined if there is no such file. */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new UsageError(`cannot read ${path} (${reasonOf(error)}): check its owner and mode`)
  }
}

/** A folder for its owner only; one that exists keeps the mode it has. */
export async function makePrivateFolder(path: string, option = '--data'): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UsageError(`cannot create the folder ${path} (${reasonOf(error)}): choose another with ${option}`)
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
