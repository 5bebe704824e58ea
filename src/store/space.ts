/**
 * Gives space back to the disk. A segment that nothing refers to is removed; while too much of the log is dead, what is
 * still alive in its emptiest segment is moved, a little at a time, so that this can be.
 *
 * Greedy: the emptiest is nearly always one whose history was forgotten as a whole, so little is written twice. The bound
 * on the whole makes the emptiest at most two thirds full.
 */
import { unlinkSync } from 'node:fs'
import type { Applier } from './apply.ts'
import type { Bodies, BodyRow } from './bodies.ts'
import { type Statements, syncIndex } from './connection.ts'
import type { Kept } from './kept.ts'
import { segmentPath } from './segment.ts'
import { nowhere } from './segments.ts'

/** The log may be so much larger than what is alive in it, and a few segments more. */
const sizePerLive = 1.5
const slackSegments = 4
/** In one step: a question that comes meanwhile waits for no more than this. */
const moveBytesMax = 1024 * 1024
const moveBodiesMax = 512
const removeMax = 16

export type SpaceParts = {
  readonly path: string
  readonly folder: string
  readonly segmentBytes: number
  readonly statements: Statements
  readonly applier: Applier
  readonly bodies: Bodies
  readonly kept: Kept
}

/** One step, inside a transaction; false when there is nothing to do. */
export function tidy(parts: SpaceParts): boolean {
  return removeDead(parts) || moveSome(parts)
}

/** Whatever is still written to stays: it is about to hold more. */
function isSealed({ applier, kept }: SpaceParts, segment: number): boolean {
  return segment > 0 ? segment < applier.applied.segment : segment !== kept.segment
}

function removeDead(parts: SpaceParts): boolean {
  const { segments } = parts.applier
  const dead = [...segments.counts].filter(([segment, { live }]) => live === 0 && isSealed(parts, segment))
  if (dead.length === 0) return false
  // An index that is put back by a power cut must not refer to what is gone.
  syncIndex(parts.path)
  for (const [segment] of dead.slice(0, removeMax)) {
    parts.bodies.close(segment)
    removeFile(segmentPath(parts.folder, segment))
    segments.remove(segment)
  }
  segments.store()
  return true
}

export function removeFile(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function moveSome(parts: SpaceParts): boolean {
  const { applier, statements, kept, bodies } = parts
  const { segments } = applier
  if (segments.size <= segments.live * sizePerLive + slackSegments * parts.segmentBytes) return false
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
    if (share >= least || !isSealed(parts, segment)) continue
    least = share
    found = segment
  }
  return found
}

type PlaceColumns = [segment: number, start: number, length: number, checksum: number]
