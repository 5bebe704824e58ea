/**
 * A small frame as its difference from one that the other side has: raw deflate with that as its dictionary. zstd, which makes the
 * deltas of objects (`link/delta`), needs 6 bytes more and twice the CPU for a renewed lease (33 bytes and 60 µs at both ends
 * against 27 and 28), since it is made for more than this; it would win where a frame has several KB (40 bytes against 80). All that
 * is compared here fits into deflate's window of 32 KiB.
 */
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import { LinkFault } from '../link/frames/bytes.ts'

const checksumBytes = 4
/** The least memory whose result is as small as any (measured): each frame takes it for itself. */
const memLevel = 4

export function encodeDifference(bytes: Buffer, base: Buffer): Buffer {
  const sum = Buffer.allocUnsafe(checksumBytes)
  sum.writeUInt32LE(crc32(bytes))
  return Buffer.concat([sum, deflateRawSync(bytes, { dictionary: base, memLevel })])
}

/** No more than `bytesMax` are ever made. Throws `LinkFault` for what no encoder made of this base: its checksum is against mistakes. */
export function decodeDifference(difference: Buffer, base: Buffer, bytesMax: number): Buffer {
  if (difference.length < checksumBytes) throw new LinkFault('a difference ends too early')
  const bytes = inflate(difference.subarray(checksumBytes), base, bytesMax)
  if (crc32(bytes) !== difference.readUInt32LE()) throw new LinkFault('a difference is not of its bytes')
  return bytes
}

function inflate(packed: Buffer, dictionary: Buffer, maxOutputLength: number): Buffer {
  try {
    return inflateRawSync(packed, { dictionary, maxOutputLength })
  } catch {
    throw new LinkFault('a difference cannot be unpacked')
  }
}
