/** The keys that seal what is stored: one in each line of a file, or of a credential that systemd hands to its unit. */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { KeySource } from './optionkinds.ts'

/** More than are in use at once: the one that seals, and those before it until everything is sealed anew. */
const keysMax = 16
const making = '(umask 077; head -c 32 /dev/urandom | base64 > FILE)'

type Parts = { readonly environment: Readonly<Record<string, string | undefined>>; readonly log: Log }

/** The first one seals, all of them open; none where none was named. */
export async function readKeys(source: KeySource | undefined, { environment, log }: Parts): Promise<Buffer[]> {
  if (source === undefined) return []
  const path = pathOf(source, environment.CREDENTIALS_DIRECTORY)
  let text: string
  try {
    text = await readFile(path, 'utf8')
    // Of a credential the mode says nothing: systemd gives it to the unit's user by other means.
    const isOpen = 'file' in source && ((await stat(path)).mode & 0o077) !== 0
    if (isOpen) log.warn('encryptionKey.readable', { path, why: 'others can read it: run "chmod 600" on it' })
  } catch (error) {
    throw new UsageError(
      `cannot read ${path} (${reasonOf(error)}): give the file of the store's key with --encryption-key; to make the first one: ${making}`,
    )
  }
  return parseKeys(text, path)
}

function pathOf(source: KeySource, folder: string | undefined): string {
  if ('file' in source) return source.file
  if (folder !== undefined) return join(folder, source.credential)
  throw new UsageError(
    `--encryption-key credential:${source.credential} is for a unit of systemd: name it there with LoadCredentialEncrypted= or LoadCredential=, or give a file`,
  )
}

/** Lines that are empty, or begin with #, are for people. What a line holds is never told. */
export function parseKeys(text: string, path: string): Buffer[] {
  const keys: Buffer[] = []
  for (const [at, line] of text.split('\n').entries()) {
    const word = line.trim()
    if (word === '' || word.startsWith('#')) continue
    if (!/^[A-Za-z0-9+/]{43}=$/.test(word)) {
      throw new UsageError(`line ${at + 1} of ${path} is not a key of 32 bytes in base64: make one with ${making}`)
    }
    keys.push(Buffer.from(word, 'base64'))
  }
  if (keys.length === 0) throw new UsageError(`${path} holds no key: make one with ${making}`)
  if (keys.length > keysMax)
    throw new UsageError(`${path} holds more than ${keysMax} keys: remove those no longer used`)
  return keys
}
