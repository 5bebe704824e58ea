/** The store of a data folder: what is wrong with it is said, and what an edge cannot use at all is put out of its way. */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf, UsageError } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { Copy } from '../cache/copy.ts'
import { type Damage, openDurable } from '../store/durable.ts'
import type { DamagedHolder } from '../store/scrub.ts'
import { logFolder, readSegments, sealOf, segmentPath } from '../store/segment.ts'
import { type Store, StoreUnusable } from '../store/store.ts'

/** Of what the store wrote: keys, certificates and the kubeconfig stay. */
const stored = ['ake.db', 'ake.db-wal', 'ake.db-shm', 'ake.end', 'log']
/** So many names are told; the log has the rest. */
const namesMax = 10

export type FolderParts = {
  readonly data: string
  readonly history: number
  /** What is stored is sealed with the first. */
  readonly keys: readonly Uint8Array[]
  readonly log: Log
}

export function openStore({ data, history, keys, log }: FolderParts): Store {
  return openDurable({ folder: data, historyBytesMax: history, keys, onDamage: (damage) => tellDamage(damage, log) })
}

function tellDamage(damage: Damage, log: Log): void {
  switch (damage.kind) {
    case 'remade':
      log.warn('store.remade', { why: damage.why })
      return
    case 'cut':
      log.warn('store.cut', { segment: damage.segment, offset: damage.offset, bytes: damage.bytes })
      return
    case 'lost':
      log.error('store.corrupt', { segment: damage.segment, offset: damage.offset, frames: damage.frames })
      return
    case 'mended':
      log.info('store.mended', named(damage.holder))
      return
    default:
      log.error('store.corrupt', named(damage))
  }
}

/** What a body is of, for a person: an object, what an object was in the past, or a record. */
function named(holder: DamagedHolder): Record<string, string | number> {
  if (holder.kind === 'record') return { record: holder.of, key: holder.key }
  const { interest, key, version } = holder
  return holder.kind === 'object' ? { interest, object: key } : { interest, history: key, version }
}

/** An authority that began over what an edge has mirrored would be an empty cluster. */
export async function refuseMirrored(store: Store): Promise<void> {
  if ((await store.records('interest')).length === 0) return
  throw new StoreUnusable('it is a folder of `ake edge`: choose another one with --data')
}

/** Why a start ends here, in words for the operator. */
export function refuse(error: unknown, folder: string): never {
  if (!(error instanceof StoreUnusable)) throw error
  const advice = error.damaged ? ': restore the folder from a backup, or start anew with another one (--data)' : ''
  throw new UsageError(`the store in ${folder} cannot be used: ${error.message}${advice}`)
}

/**
 * Opens with `open`; where what is stored is beyond repair it is set aside, since all of it can be mirrored again. One
 * earlier set is kept, for an operator who wants to look. Anything else that is wrong is refused by name.
 */
export async function openOrSetAside<Opened>(
  parts: FolderParts,
  open: (store: Store) => Promise<Opened>,
): Promise<{ store: Store; opened: Opened; setAside?: string }> {
  const { data, log } = parts
  let setAside: string | undefined
  for (;;) {
    const store = openStore(parts)
    try {
      const opened = await open(store)
      if (setAside !== undefined) return { store, opened, setAside }
      if (parts.keys.length > 0) dropPlainAside(data)
      return { store, opened }
    } catch (error) {
      await store.close()
      if (!(error instanceof StoreUnusable) || !error.damaged || setAside !== undefined) return refuse(error, data)
      setAside = takeAside(data)
      log.error('store.setAside', { folder: setAside, why: error.message })
    }
  }
}

function takeAside(folder: string): string {
  const aside = join(folder, 'aside')
  try {
    rmSync(aside, { recursive: true, force: true })
    mkdirSync(aside, { mode: 0o700 })
    for (const name of stored) if (existsSync(join(folder, name))) renameSync(join(folder, name), join(aside, name))
  } catch (error) {
    throw new UsageError(`the store in ${folder} cannot be used, and cannot be set aside: ${reasonOf(error)}`)
  }
  return aside
}

/** Where what is stored is sealed, an earlier set that is not does not stay. */
function dropPlainAside(folder: string): void {
  const aside = join(folder, 'aside')
  const log = logFolder(aside)
  if (existsSync(log) && readSegments(log).every((segment) => sealOf(segmentPath(log, segment)) !== 0)) return
  rmSync(aside, { recursive: true, force: true })
}

/** What is lost or damaged, a sentence each; empty when nothing is. */
export function damageOf(copy: Copy, { figures }: Store): string[] {
  const names: string[] = []
  let more = 0
  const tell = (interest: string, key: string) => {
    if (names.length < namesMax) names.push(`${interest} "${key}"`)
    else more++
  }
  // What concerns a whole interest comes first.
  for (const { interest, isDoubted } of copy.caches.values()) if (isDoubted) tell(interest, '*')
  for (const { interest, corrupt } of copy.caches.values()) for (const key of corrupt) tell(interest, key)
  const others = more > 0 ? ` and ${more} more` : ''
  return [...figures.losses, ...(names.length > 0 ? [`damaged: ${names.join(', ')}${others}`] : [])]
}
