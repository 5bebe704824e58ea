/**
 * The files of the log. Segments with positive numbers hold frames, in the order in which they were committed; those
 * with negative ones hold bodies only, which were moved there when their own segment was mostly dead.
 *
 * A segment begins with a header that says which one it continues and where that ends: what lies behind that, in a file
 * that could not be cut back after a failed write or that may not have reached the disk, never counts.
 */
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { parseSealHead, sealHeadBytes, stampedId, writeStamp } from './seal.ts'
import { FileWindow } from './window.ts'

/** Secrets and tokens lie in them: only their owner reads them. */
export const ownerOnly = 0o600
const ownerOnlyFolder = 0o700

/**
 * Small enough that emptying one is soon done and a few of them are no waste on a small flash, large enough that a store
 * of hundreds of megabytes is a hundred files.
 */
export const segmentBytesUsual = 4 * 1024 * 1024

/** A place in the log: at this offset begins the frame with this sequence. */
export type Position = { readonly segment: number; readonly offset: number; readonly sequence: number }

type Header = {
  readonly segment: number
  /** Of its first frame. */
  readonly sequence: number
  /** The segment it continues, nearly always the one before it, and where that ends. */
  readonly previous: number
  readonly previousEnd: number
  /** The same in every segment of a log and in its index; 0 in a segment of an older ake. */
  readonly identity: number
  /** Of the key with which every body in it is sealed; absent: none is. */
  readonly seal?: number
}

const magic = Buffer.from('ake.log2')
const magicBefore = Buffer.from('ake.log\n')
export const headerBytes = 36

/** Where the log of an empty folder ends: the first segment is still to come. */
export const logStart: Position = { segment: 0, offset: 0, sequence: 1 }

export function encodeHeader({ segment, sequence, previous, previousEnd, identity, seal = 0 }: Header): Buffer {
  const bytes = Buffer.alloc(headerBytes)
  if (seal === 0) magic.copy(bytes)
  else writeStamp(bytes, seal)
  bytes.writeUInt32LE(segment, 8)
  bytes.writeUInt32LE(previous, 12)
  bytes.writeDoubleLE(sequence, 16)
  bytes.writeUInt32LE(previousEnd, 24)
  bytes.writeUInt32LE(identity, 28)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 32)), 32)
  return bytes
}

export function parseHeader(bytes: Buffer): Header | undefined {
  if (bytes.length < headerBytes || crc32(bytes.subarray(0, 32)) !== bytes.readUInt32LE(32)) return undefined
  const sequence = bytes.readDoubleLE(16)
  const seal = stampedId(bytes)
  if (seal !== 0 || bytes.subarray(0, magic.length).equals(magic)) {
    const [segment, previous] = [bytes.readUInt32LE(8), bytes.readUInt32LE(12)]
    const [previousEnd, identity] = [bytes.readUInt32LE(24), bytes.readUInt32LE(28)]
    return { segment, sequence, previous, previousEnd, identity, ...(seal !== 0 && { seal }) }
  }
  if (!bytes.subarray(0, magicBefore.length).equals(magicBefore)) return undefined
  const segment = bytes.readDoubleLE(8)
  return { segment, sequence, previous: segment - 1, previousEnd: bytes.readDoubleLE(24), identity: 0 }
}

export function logFolder(folder: string): string {
  return join(folder, 'log')
}

export function segmentPath(folder: string, segment: number): string {
  const name = String(Math.abs(segment)).padStart(10, '0')
  return join(folder, segment > 0 ? `${name}.log` : `${name}.kept`)
}

/** The numbers of all segments in the folder. */
export function readSegments(folder: string): number[] {
  const found: number[] = []
  for (const name of readdirSync(folder)) {
    const [, digits, kind] = /^(\d{10,})\.(log|kept)$/.exec(name) ?? []
    if (digits !== undefined) found.push(kind === 'log' ? Number(digits) : -Number(digits))
  }
  return found.sort((one, another) => one - another)
}

/** With which key a segment, or a copy of one, says to be sealed; 0 where it does not say. */
export function sealOf(path: string): number {
  const file = new FileWindow(path, headerBytes)
  try {
    const bytes = file.at(0, Math.min(headerBytes, file.size))
    return parseHeader(bytes)?.seal ?? parseSealHead(bytes.subarray(0, sealHeadBytes))
  } finally {
    file.close()
  }
}

/** Makes the folder, or takes from others what they could read of it. */
export function makeLogFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: ownerOnlyFolder })
  if ((statSync(folder).mode & 0o077) !== 0) chmodSync(folder, ownerOnlyFolder)
  for (const segment of readSegments(folder)) {
    const path = segmentPath(folder, segment)
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, ownerOnly)
  }
}

/** A file that was made is there after a power cut only when its folder was synced too. */
export function syncFolder(folder: string): void {
  const opened = openSync(folder, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
