/**
 * Brings a store under the key that seals now: what lies in clear, or under an earlier key, is sealed anew in the
 * background. New segments are sealed from their first byte on; the bodies of the others move into sealed segments, as
 * what outlives its segment always does (`space.ts`), and then they are removed behind a base. Until the last of them is
 * gone each start finds what is left to do by looking at them: nothing has to be remembered.
 */
import type { DatabaseSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'
import type { Applier } from './apply.ts'
import type { Aside } from './aside.ts'
import type { Bodies, BodyRow } from './bodies.ts'
import type { BodySegments } from './bodysegments.ts'
import { type Statements, scrub } from './connection.ts'
import { isSound } from './scrub.ts'
import { isSealed, objectPlace, recordPlace, type Seal, sealBytes } from './seal.ts'
import { readSegments, sealOf, segmentPath } from './segment.ts'
import { nowhere } from './segments.ts'
import { objectSum, recordSum } from './sums.ts'

/** In one step, which looks through all objects and history once: a question waits for no more than this. */
const sealBytesMax = 4 * 1024 * 1024
const sealBodiesMax = 2_048

/** Of all segments that were not sealed with the key when the store was opened, those that still lie there. */
export type SealProgress = { readonly left: number; readonly of: number }

export class Sealing {
  readonly #folder: string
  readonly #seal: Seal
  #stale = new Set<number>()
  #of = 0
  #isScrubbed = false

  constructor(folder: string, seal: Seal) {
    this.#folder = folder
    this.#seal = seal
    this.look()
  }

  /** Throws where part of the store is sealed with a key that is not there: then nothing in it may be touched. */
  static refuseUnknown(folder: string, seal: Seal): void {
    for (const segment of readSegments(folder)) {
      const id = sealOf(segmentPath(folder, segment))
      if (id !== 0 && !seal.knows(id)) seal.refuse(id)
    }
  }

  /** Which files there are; of what was set aside only what is sealed stays. */
  look(aside?: Aside): void {
    if (this.#seal.id === 0) return
    const { id } = this.#seal
    const found = readSegments(this.#folder).filter((one) => sealOf(segmentPath(this.#folder, one)) !== id)
    this.#stale = new Set(found)
    this.#of = Math.max(this.#of, found.length)
    aside?.dropPlain({ withIndex: found.length > 0 })
  }

  get stale(): ReadonlySet<number> {
    return this.#stale
  }

  get progress(): SealProgress {
    return { left: this.#stale.size, of: this.#of }
  }

  /** Something of a stale segment was sealed. */
  sealed(): void {
    this.#isScrubbed = false
  }

  removed(segment: number): void {
    this.#stale.delete(segment)
  }

  get needsScrub(): boolean {
    return this.#stale.size > 0 && !this.#isScrubbed
  }

  /**
   * Before the last of them is removed nothing else may have what was in it, or the next start would not know. A disk
   * without room for it does not keep them from going: pages that held bodies are only in a file of the first schemas.
   */
  scrub(db: DatabaseSync, aside: Aside): void {
    this.#isScrubbed = true
    try {
      aside.dropPlain({ withIndex: true })
      scrub(db)
    } catch {
      // The checksums of plain bodies stay in free pages until these are written over.
    }
  }
}

type SealParts = {
  readonly statements: Statements
  readonly applier: Applier
  readonly bodies: Bodies
  readonly kept: BodySegments
}

/** What a body is stored as, and what has to count its other bytes. */
type BodyHolder = { readonly place: string; readonly resum?: (was: number, now: number) => void }

/** Seals some of what lies in a segment; false where there is nothing in it that can be sealed now. */
export function sealSome(parts: SealParts, from: number): boolean {
  const { applier, statements, kept, bodies } = parts
  const { segments } = applier
  const rows = statements.sealableOf.all(from, sealBodiesMax) as unknown as SealableRow[]
  // Nothing lies there: the count was wrong. Where something does its name is about to be released, and it goes with that.
  const live = segments.counts.get(from)?.live ?? 0
  if (rows.length === 0 && (live === 0 || statements.bodiesOf.all(from, 1).length > 0)) return false
  if (rows.length === 0) segments.refer(from, -live)
  const holders = holdersOf(parts, rows)
  let done = 0
  for (const [id, segment, start, length, checksum] of rows) {
    if (done > 0 && done + length > sealBytesMax) break
    done += length
    const [holder] = holders.get(id) ?? []
    const bytes = holder && sealed(bodies, { segment, start, length, checksum }, holder.place)
    segments.refer(segment, -length)
    // Damaged, or held by nothing: what cannot be told is not sealed, or it would pass for sound.
    if (bytes === undefined) {
      statements.sealBody.run(nowhere, 0, length, checksum, id)
      continue
    }
    const place = kept.add(bytes)
    const now = crc32(bytes)
    statements.sealBody.run(place.segment, place.start, bytes.length, now, id)
    segments.refer(place.segment, bytes.length)
    segments.reach(place.segment, place.start + bytes.length)
    for (const { resum } of holders.get(id) ?? []) resum?.(checksum, now)
  }
  kept.sync()
  applier.store()
  return true
}

/**
 * Puts a body in the place of one whose own bytes are damaged, inside a transaction; false where it is not what was written.
 * The checksum tells that; where what it is of was sealed, version and length have to.
 */
export function mendBody(parts: SealParts, { id, version, body }: MendingBody): boolean {
  const { applier, statements, kept, bodies } = parts
  const row = statements.body.get(id) as unknown as SealableRow | undefined
  if (row === undefined) return false
  const [, segment, start, length, checksum, stored] = row
  if (isSound(bodies, { segment, start, length, checksum })) return false
  const holders = holdersOf(parts, [row]).get(id) ?? []
  const isSame = crc32(body) === checksum
  const isLike = bodies.seal.id !== 0 && version === stored && length === body.length + sealBytes
  const place = holders[0]?.place
  if (place === undefined || !(isSame || isLike)) return false
  const bytes = bodies.seal.id === 0 ? body : bodies.seal.seal(body, place)
  const now = crc32(bytes)
  const to = kept.add(bytes)
  applier.segments.refer(segment, -length)
  statements.sealBody.run(to.segment, to.start, bytes.length, now, id)
  applier.segments.refer(to.segment, bytes.length)
  applier.segments.reach(to.segment, to.start + bytes.length)
  for (const { resum } of holders) resum?.(checksum, now)
  kept.sync()
  applier.store()
  return true
}

type MendingBody = { readonly id: number; readonly version: number; readonly body: Uint8Array }

/** The body under the key that seals; undefined where it is not what was written. */
function sealed(bodies: Bodies, row: BodyRow, place: string): Buffer | undefined {
  const { seal } = bodies
  const bytes = bodies.readRaw(row)
  if (bytes === undefined || crc32(bytes) !== row.checksum) return undefined
  const body = isSealed(bytes, 0, bytes.length) ? seal.open(bytes, place) : bytes
  return body && seal.seal(body, place)
}

/** By body: an object, a record or an entry of history, which is of the same key and version. */
function holdersOf({ statements, applier }: SealParts, rows: readonly SealableRow[]): Map<number, BodyHolder[]> {
  const versions = new Map(rows.map(([id, , , , , version]) => [id, version]))
  const found = new Map<number, BodyHolder[]>()
  const add = (id: number, holder: BodyHolder) => void found.set(id, [...(found.get(id) ?? []), holder])
  const ids = JSON.stringify([...versions.keys()])
  for (const row of statements.objectsWith.iterate(ids)) {
    const [id, interest, key] = row as unknown as [number, number, string]
    const version = versions.get(id) as number
    const sum = (checksum: number) => objectSum(key, version, checksum)
    const resum = (was: number, now: number) => applier.resumObject(interest, sum(was), sum(now))
    add(id, { place: objectPlace(key, version), resum })
  }
  for (const row of statements.historyWith.iterate(ids)) {
    const [id, key] = row as unknown as [number, string]
    add(id, { place: objectPlace(key, versions.get(id) as number) })
  }
  for (const row of statements.recordsWith.iterate(ids)) {
    const [id, kind, key] = row as unknown as [number, string, string]
    const sum = (checksum: number) => recordSum(kind, key, checksum)
    const resum = (was: number, now: number) => applier.resumRecord(sum(was), sum(now))
    add(id, { place: recordPlace(kind, key), resum })
  }
  return found
}

type SealableRow = [id: number, segment: number, start: number, length: number, checksum: number, version: number]
