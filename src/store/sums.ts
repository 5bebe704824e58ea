/**
 * Sums that tell whether the tables still are what was written into them. SQLite has no checksums of its own: a page that
 * a disk has changed is an index all the same, only of another past. Each part goes into a sum with what makes it that
 * part, in any order; what changes is taken out and put in again.
 */
import { crc32 } from 'node:zlib'

const modulus = 2 ** 32

/** An object as it is now: which version of which bytes. */
export function objectSum(key: string, version: number | null, checksum: number | null): number {
  return crc32(key, ((checksum ?? 0) ^ ((version ?? 0) % modulus)) >>> 0)
}

export function recordSum(kind: string, key: string, checksum: number | null): number {
  return crc32(`${kind}\0${key}`, checksum ?? 0)
}

/** What a row says besides its parts. */
export function rowSum(...said: readonly (string | number | undefined)[]): number {
  return crc32(said.join('\0'))
}

export function plus(sum: number, part: number): number {
  return (sum + part) % modulus
}

export function minus(sum: number, part: number): number {
  return (sum - part + modulus) % modulus
}
