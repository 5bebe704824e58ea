/**
 * A base says everything that segments which are about to be removed have said, and where the rest lies: all rows of the
 * index at one position of the log. From it and the log behind that position the index is made again. No segment is
 * removed before a base that does without it is on the disk.
 *
 * The file: a line that says what it is, then blocks, each with its length, its checksum and rows of one table, packed.
 */
import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { constants, crc32, inflateRawSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { ownerOnly, type Position, syncFolder } from './segment.ts'
import { FileWindow } from './window.ts'

/** Rows in one block: some hundred KB before they are packed. */
const rowsPerBlock = 2_000
/** The fastest: a base is written by the thread that answers questions. */
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
/** With which each packed block begins; those of an older ake are deflated, and begin otherwise. */
const packedBegins = 0xfd2fb528
const magic = 'ake.base'
const headBytesMax = 4_096

/** In the order in which they are put back, with what orders the rows of each. */
const tables = {
  interests: 'id',
  bodies: 'id',
  keys: 'id',
  objects: 'interest, key',
  history: 'interest, version, position',
  records: 'kind, key',
  segments: 'number',
  applied: 'one',
}
/** Those of a base that an older ake wrote, besides. */
const olderTables = ['heads'] as const

/** `number`: bases are counted, since two may be of one position. */
export type BaseHead = Position & {
  readonly number: number
  readonly schema: number
  readonly identity: number
  readonly blocks: number
}

export type Base = { readonly path: string; readonly head: BaseHead; readonly bytes: number }

function basePath(folder: string, number: number): string {
  return join(folder, `${String(number).padStart(10, '0')}.base`)
}

/** The names of all bases, the newest first. */
function basePaths(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => /^\d{10}\.base$/.test(name))
  return names
    .sort()
    .reverse()
    .map((name) => join(folder, name))
}

/** Writes all rows as they are in the open transaction, or after the last one. */
export function writeBase(db: DatabaseSync, { folder, ...says }: { folder: string } & Omit<BaseHead, 'blocks'>): Base {
  const blocks = Object.entries(tables).flatMap(([table, order]) => [...packedRows(db, table, order)])
  const { segment, offset, sequence, number, schema, identity } = says
  const head: BaseHead = { segment, offset, sequence, number, schema, identity, blocks: blocks.length }
  const spelled = JSON.stringify(head)
  const pieces: Buffer[] = [Buffer.from(`${magic} ${crc32(spelled)} ${spelled}\n`)]
  for (const block of blocks) {
    const prefix = Buffer.alloc(8)
    prefix.writeUInt32LE(block.length, 0)
    prefix.writeUInt32LE(crc32(block), 4)
    pieces.push(prefix, block)
  }
  const path = basePath(folder, number)
  const bytes = Buffer.concat(pieces)
  // Whole or absent: the one it takes the place of may be all there is.
  writeSynced(`${path}.new`, bytes)
  renameSync(`${path}.new`, path)
  syncFolder(folder)
  return { path, head, bytes: bytes.length }
}

/** All rows of a table, some in each block. SQLite spells them: a row that becomes an array first costs three times as much. */
function* packedRows(db: DatabaseSync, table: string, order: string): Generator<Buffer> {
  const columns = db.prepare(`SELECT * FROM ${table}`).columns()
  const spelled = `json_group_array(json_array(${columns.map(({ column }) => column).join(', ')}))`
  const marks = order.replaceAll(/\w+/g, '?')
  let after: SQLInputValue[] = []
  for (let more = true; more; ) {
    const rest = after.length === 0 ? table : `${table} WHERE (${order}) > (${marks})`
    const last = db.prepare(`SELECT ${order} FROM ${rest} ORDER BY ${order} LIMIT 1 OFFSET ${rowsPerBlock - 1}`)
    const end = last.get(...after)
    more = end !== undefined
    const rows = db.prepare(
      `SELECT ${spelled} AS rows FROM (SELECT * FROM ${rest} ORDER BY ${order} LIMIT ${rowsPerBlock})`,
    )
    const text = rows.get(...after)?.rows as string
    if (text !== '[]') yield zstdCompressSync(`["${table}",${text}]`, packing)
    after = Object.values(end ?? {}) as SQLInputValue[]
  }
}

/** One that could not be written as a whole is removed: half a base is none. */
export function writeSynced(path: string, bytes: Buffer): void {
  const file = openSync(path, 'w', ownerOnly)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
    fsyncSync(file)
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/** The newest base that says what it is; whether it is whole is known only when all of it is read. */
export function newestBase(folder: string): Base | undefined {
  for (const path of basePaths(folder)) {
    const file = new FileWindow(path, headBytesMax)
    try {
      const head = headOf(file.at(0, Math.min(headBytesMax, file.size)))
      if (head !== undefined) return { path, head: head.says, bytes: file.size }
    } finally {
      file.close()
    }
  }
  return undefined
}

/** Whether there is or was a base, readable or not: then segments may have been removed. */
export function hasBase(folder: string): boolean {
  return basePaths(folder).length > 0
}

function headOf(bytes: Buffer): { says: BaseHead; end: number } | undefined {
  const end = bytes.subarray(0, headBytesMax).indexOf('\n')
  const [word, checksum, spelled] = bytes.toString('utf8', 0, Math.max(0, end)).split(' ')
  if (word !== magic || spelled === undefined || crc32(spelled) !== Number(checksum)) return undefined
  return { says: JSON.parse(spelled) as BaseHead, end: end + 1 }
}

type Block = readonly [table: string, rows: readonly (readonly (string | number | null)[])[]]

/** Everything in it; undefined where it is not whole. */
export function readBase({ path }: Base): readonly Block[] | undefined {
  const bytes = readFileSync(path)
  const head = headOf(bytes)
  if (head === undefined) return undefined
  const blocks: Block[] = []
  let at = head.end
  for (let i = 0; i < head.says.blocks; i++) {
    if (at + 8 > bytes.length) return undefined
    const block = bytes.subarray(at + 8, at + 8 + bytes.readUInt32LE(at))
    if (crc32(block) !== bytes.readUInt32LE(at + 4)) return undefined
    blocks.push(JSON.parse(unpacked(block).toString()) as Block)
    at += 8 + block.length
  }
  return blocks
}

function unpacked(block: Buffer): Buffer {
  const isOlder = block.length < 4 || block.readUInt32LE(0) !== packedBegins
  return isOlder ? inflateRawSync(block) : zstdDecompressSync(block)
}

/** Puts the rows into an empty file of the base's own schema. */
export function restoreBase(db: DatabaseSync, blocks: readonly Block[]): void {
  db.exec('BEGIN IMMEDIATE; DELETE FROM applied')
  for (const [table, rows] of blocks) {
    const known = [...Object.keys(tables), ...olderTables].find((one) => one === table)
    if (known === undefined || rows.length === 0) continue
    const add = db.prepare(`INSERT INTO ${known} VALUES (${rows[0]?.map(() => '?').join(', ')})`)
    for (const row of rows) add.run(...row)
  }
  db.exec('COMMIT')
}

/** Removes those that a newer one has replaced. */
export function dropBases(folder: string, { path }: Base): void {
  for (const other of basePaths(folder)) if (other !== path) rmSync(other, { force: true })
}
