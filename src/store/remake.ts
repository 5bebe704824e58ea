/**
 * Makes the index again from the log: from the newest base, if segments were ever removed, otherwise from nothing. What
 * it takes the place of is set aside, never removed: an operator who wants to know what became of it can look.
 */
import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { Applier } from './apply.ts'
import type { Aside } from './aside.ts'
import { type Base, hasBase, newestBase, readBase, restoreBase } from './base.ts'
import { readChain } from './chain.ts'
import { IndexDamaged, open, prepare, type Statements } from './connection.ts'
import { isUsed, markPath, readMark } from './mark.ts'
import { headerBytes, logStart, parseHeader, readSegments, segmentPath } from './segment.ts'
import { StoreUnusable } from './store.ts'
import { FileWindow } from './window.ts'

export type RemakeParts = {
  readonly path: string
  readonly folder: string
  readonly segmentBytes: number
  readonly historyBytesMax: number
}

type Opened = { readonly db: DatabaseSync; readonly statements: Statements; readonly applier: Applier }

/** The file as it is, if it is what was written into it and belongs to this log. */
export function openSound(parts: RemakeParts, base: Base | undefined): Opened {
  const { path, folder } = parts
  if (!existsSync(path)) {
    if (readSegments(folder).length > 0 || hasBase(folder)) throw new IndexDamaged(`${path} is missing`)
    const mark = markPath(path)
    if (isUsed(readMark(mark))) {
      const why = `${folder} and ${path} are gone, and were in use (to begin anew with nothing, remove ${mark})`
      throw new StoreUnusable(why, { damaged: true })
    }
  }
  const db = open(path, parts)
  try {
    const statements = prepare(db)
    const applier = new Applier({ ...parts, statements })
    checkBelongs({ folder, applier, base })
    checkWhole(db, path)
    if (!applier.isSound()) throw new IndexDamaged(`${path}: its sums do not add up`)
    return { db, statements, applier }
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Throws unless what finds rows agrees with the rows. The sums are of the tables alone: a key that is not found by its text is
 * a ghost once it is deleted, and its sum is right. Takes some 2 ms for 1,000 objects.
 */
function checkWhole(db: DatabaseSync, path: string): void {
  const [said] = Object.values(db.prepare('PRAGMA integrity_check(1)').get() as Record<string, unknown>)
  if (said !== 'ok') throw new IndexDamaged(`${path}: ${String(said).replaceAll('\n', ' ')}`)
}

/** Throws unless the index can be one of this log, and not older than what the log still has. */
function checkBelongs(parts: { folder: string; applier: Applier; base: Base | undefined }): void {
  const { folder, applier, base } = parts
  const { bases, identity } = applier
  if (base !== undefined && base.head.number > bases) {
    throw new IndexDamaged('the index is older than what the log has removed since')
  }
  const newest = readSegments(folder).at(-1) ?? 0
  const logs = newest > 0 ? identityOf(folder, newest) : 0
  if (identity !== 0 && logs !== 0 && logs !== identity) throw new IndexDamaged('the index is that of another log')
}

/** 0 where a segment does not say it. */
export function identityOf(folder: string, segment: number): number {
  const file = new FileWindow(segmentPath(folder, segment), headerBytes)
  try {
    return parseHeader(file.at(0, Math.min(headerBytes, file.size)))?.identity ?? 0
  } finally {
    file.close()
  }
}

/** An index without what the log has behind the base. */
export function remake(parts: RemakeParts, aside: Aside): Opened {
  const { path, folder } = parts
  const base = newestBase(folder)
  const blocks = base === undefined ? undefined : readBase(base)
  if (blocks === undefined) {
    const why = hasBase(folder) ? 'what its removed segments said is damaged too' : incomplete(folder)
    if (why !== undefined) {
      throw new StoreUnusable(`${path} cannot be used, and cannot be made again: ${why}`, { damaged: true })
    }
  }
  for (const file of [`${path}-wal`, path]) if (existsSync(file)) aside.take(file)
  if (base !== undefined && blocks !== undefined) {
    const restored = open(path, { ...parts, schema: base.head.schema })
    try {
      restoreBase(restored, blocks)
    } finally {
      restored.close()
    }
  }
  const db = open(path, parts)
  const statements = prepare(db)
  return { db, statements, applier: new Applier({ ...parts, statements }) }
}

/** Why the log alone does not say it all, where no base says the rest. */
function incomplete(folder: string): string | undefined {
  const segments = readSegments(folder)
  const [first] = segments.filter((segment) => segment > 0)
  // Files of the first schemas had no log.
  if (first === undefined) return 'there is no log'
  if (first !== 1) return `the log begins with segment ${first}`
  // Bodies were moved: then what is missing may have been removed. What no segment continues was never part of the log.
  const isMoved = segments.some((segment) => segment < 0)
  const isMissing = isMoved && readChain({ folder, from: logStart }).some(({ missingBytes }) => missingBytes > 0)
  return isMissing ? 'segments of the log are missing' : undefined
}
