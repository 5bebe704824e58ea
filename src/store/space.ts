/**
 * Gives space back to the disk. Segments that nothing refers to are removed, some at a time, behind a base that does
 * without them; while too much of the log is dead, what is still alive in its emptiest segment is moved, a little at a
 * time, so that this can be.
 *
 * Greedy: the emptiest is nearly always one whose history was forgotten as a whole, so little is written twice. The bound
 * on the whole makes the emptiest at most two thirds full.
 */
import { rmSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Applier } from './apply.ts'
import { type Base, dropBases, writeBase } from './base.ts'
import type { Bodies, BodyRow } from './bodies.ts'
import type { BodySegments } from './bodysegments.ts'
import type { Statements } from './connection.ts'
import { newestSchema } from './schema.ts'
import { type Sealing, sealSome } from './sealing.ts'
import { segmentPath } from './segment.ts'
import { nowhere } from './segments.ts'

/** The log may be so much larger than what is alive in it, and a few segments more. */
const sizePerLive = 1.5
const slackSegments = 4
/** In one step: a question that comes meanwhile waits for no more than this. */
const moveBytesMax = 1024 * 1024
const moveBodiesMax = 512
/** Removing takes a base, which costs its own size: it is worth it for so much, and for so many times that size. */
const removeSegmentsMin = 4
const removePerBase = 4

export type SpaceParts = {
  readonly db: DatabaseSync
  readonly folder: string
  readonly segmentBytes: number
  readonly statements: Statements
  readonly applier: Applier
  readonly bodies: Bodies
  readonly kept: BodySegments
  readonly sealing: Sealing
  /** The last base, if there is one. */
  readonly base: Base | undefined
  /** Whether what was applied of the log stays where it is: a base says where that is. */
  readonly mayRemove: boolean
}

/** One step, inside a transaction: undefined when there is nothing to do; the base, if another was written. */
export function tidy(parts: SpaceParts): { base?: Base } | undefined {
  const base = removeDead(parts)
  if (base !== undefined) return { base }
  return sealNext(parts) || moveSome(parts) ? {} : undefined
}

/** Whatever is still written to stays: it is about to hold more. Bodies are not added to what has another seal. */
function isFull({ applier, kept, sealing }: SealingParts, segment: number): boolean {
  return segment > 0 ? segment < applier.applied.segment : segment !== kept.segment || sealing.stale.has(segment)
}

type SealingParts = Pick<SpaceParts, 'applier' | 'kept' | 'sealing'>

/** Whether some of what has another seal can be sealed anew now. */
export function hasSealable(parts: SealingParts): boolean {
  const { counts } = parts.applier.segments
  return [...parts.sealing.stale].some((segment) => isFull(parts, segment) && (counts.get(segment)?.live ?? 0) !== 0)
}

function sealNext(parts: SpaceParts): boolean {
  for (const segment of parts.sealing.stale) {
    if (!isFull(parts, segment) || !sealSome(parts, segment)) continue
    parts.sealing.sealed()
    return true
  }
  return false
}

function deadOf(parts: SpaceParts): { dead: number[]; bytes: number } {
  const dead: number[] = []
  let bytes = 0
  for (const [segment, { live, size }] of parts.applier.segments.counts) {
    if (live !== 0 || !isFull(parts, segment)) continue
    dead.push(segment)
    bytes += size
  }
  return { dead, bytes }
}

function removeDead(parts: SpaceParts): Base | undefined {
  const { segments } = parts.applier
  const { dead, bytes } = deadOf(parts)
  const worth = Math.max(removeSegmentsMin * parts.segmentBytes, removePerBase * (parts.base?.bytes ?? 0))
  const stale = dead.filter((segment) => parts.sealing.stale.has(segment)).length
  const isDue = bytes >= worth || stale >= removeSegmentsMin || (stale > 0 && !hasSealable(parts))
  if (!parts.mayRemove || dead.length === 0 || !isDue) return undefined
  // Counts may be wrong, references are not.
  const used = new Set(parts.statements.used.all().map((row) => (row as unknown as [number])[0]))
  const removed = dead.filter((segment) => !used.has(segment))
  for (const segment of dead) {
    if (used.has(segment)) segments.refer(segment, 1)
    else segments.remove(segment)
  }
  const base = makeBase(parts)
  // From here on they are not needed, whichever of the two files is lost.
  for (const segment of removed) {
    parts.bodies.close(segment)
    removeFile(segmentPath(parts.folder, segment))
    parts.sealing.removed(segment)
  }
  return base
}

/** Says all there is to say up to where the log was applied, inside a transaction, and makes older ones superfluous. */
export function makeBase({ db, folder, applier }: Pick<SpaceParts, 'db' | 'folder' | 'applier'>): Base {
  applier.bases++
  applier.store()
  const { applied, bases: number, identity } = applier
  const base = writeBase(db, { folder, ...applied, number, schema: newestSchema, identity })
  dropBases(folder, base)
  return base
}

export function removeFile(path: string): void {
  rmSync(path, { force: true })
}

function moveSome(parts: SpaceParts): boolean {
  const { applier, statements, kept, bodies } = parts
  const { segments } = applier
  const size = segments.size - deadOf(parts).bytes
  if (size <= segments.live * sizePerLive + slackSegments * parts.segmentBytes) return false
  const from = emptiest(parts)
  if (from === undefined) return false
  let moved = 0
  const rows = statements.bodiesOf.all(from, moveBodiesMax) as unknown as [number, ...PlaceColumns][]
  for (const [id, segment, start, length, checksum] of rows) {
    if (moved > 0 && moved + length > moveBytesMax) break
    const row: BodyRow = { segment, start, length, checksum }
    const bytes = bodies.readRaw(row)
    const place = bytes === undefined ? { segment: nowhere, start: 0 } : kept.add(bytes)
    statements.moveBody.run(place.segment, place.start, id)
    segments.refer(segment, -length)
    segments.refer(place.segment, length)
    if (bytes !== undefined) segments.reach(place.segment, place.start + length)
    moved += length
  }
  // Nothing lies there: the count was wrong.
  if (rows.length === 0) segments.refer(from, -(segments.counts.get(from)?.live ?? 0))
  kept.sync()
  segments.store()
  return true
}

function emptiest(parts: SpaceParts): number | undefined {
  let found: number | undefined
  let least = 1
  for (const [segment, { size, live }] of parts.applier.segments.counts) {
    const share = live / size
    if (live === 0 || share >= least || !isFull(parts, segment) || parts.sealing.stale.has(segment)) continue
    least = share
    found = segment
  }
  return found
}

type PlaceColumns = [segment: number, start: number, length: number, checksum: number]
