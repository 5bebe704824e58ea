/**
 * Bodies as the index counts them: objects, records and entries of history hold them, a name lets later frames refer to one, and
 * each goes with the last of these. What lies in a segment is counted with it, so that an empty one can be removed.
 */
import type { StatementSync } from 'node:sqlite'
import type { Statements } from './connection.ts'
import { elsewhere, type FrameChange, type Piece } from './frame.ts'
import type { Position } from './segment.ts'
import { nowhere, type Segments } from './segments.ts'

/** Names that are released, or bodies that are dropped, by one statement. */
const atOnce = 1_000

export class HeldBodies {
  readonly #use: Statements
  readonly #segments: Segments

  constructor(use: Statements, segments: Segments) {
    this.#use = use
    this.#segments = segments
  }

  /** The body that a change brings, or shares with what has brought it. */
  bodyOf({ version, name }: FrameChange, piece: Piece, at: Position): { id: number; checksum: number } {
    const { checksum } = piece
    if (piece.start !== elsewhere) return { id: this.add(version, piece, at, name), checksum }
    const [id, named, known = 0] = (this.#use.named.get(name as number) as unknown as NamedRow | undefined) ?? []
    if (id !== undefined && named === version) {
      this.#use.shareBody.run(id)
      return { id, checksum: known }
    }
    // Lost with the frame that held it: its reader is told.
    const lost = this.add(version, { ...piece, start: 0 }, { segment: nowhere, offset: 0, sequence: 0 })
    return { id: lost, checksum }
  }

  add(version: number, { start, length, checksum }: Piece, at: Position, name?: number): number {
    this.#segments.refer(at.segment, length)
    const added = this.#use.addBody.run(version, checksum, at.segment, at.offset + start, length, name ?? null)
    return added.lastInsertRowid as number
  }

  /** One holder less: the body goes with the last, unless it can still be referred to. */
  drop(body: number): void {
    if (!this.#remove(this.#use.dropBody, body)) this.#use.letGoOfBody.run(body)
  }

  /** The same of many. */
  dropAll(bodies: readonly number[]): void {
    for (let at = 0; at < bodies.length; at += atOnce) this.#dropSome(bodies.slice(at, at + atOnce))
  }

  /** In one statement: those with another holder, or a name, are let go of one by one. */
  #dropSome(bodies: readonly number[]): void {
    if (bodies.length === 0) return
    const dropped = new Set<number>()
    for (const row of this.#use.dropBodies.all(JSON.stringify(bodies))) {
      const [body, segment, length] = row as unknown as [number, number, number]
      this.#segments.refer(segment, -length)
      dropped.add(body)
    }
    for (const body of bodies) if (!dropped.has(body)) this.drop(body)
  }

  #remove(statement: StatementSync, body: number): boolean {
    const dropped = statement.get(body) as unknown as [segment: number, length: number] | undefined
    if (dropped !== undefined) this.#segments.refer(dropped[0], -dropped[1])
    return dropped !== undefined
  }

  /** No later frame refers to these. */
  release(names: readonly number[]): void {
    for (let at = 0; at < names.length; at += atOnce) {
      for (const row of this.#use.dropNames.all(JSON.stringify(names.slice(at, at + atOnce)))) {
        const [body, holders] = row as unknown as [number, number]
        if (holders === 0) this.#remove(this.#use.dropUnheld, body)
      }
    }
  }

  /** What no frame can refer to after a start: everything but the objects that are there. */
  otherNames(): number[] {
    return this.#use.otherNames.all().map((row) => (row as unknown as [number])[0])
  }
}

type NamedRow = [body: number, version: number, checksum: number]
