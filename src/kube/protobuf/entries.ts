/** The entries of a map in a message: each a message of a key and a value, in any order, of which the last with a key counts. */
import { AROUND, type Collecting, NEXT } from './collect.ts'
import { BYTES, type Field, STRING } from './facts.ts'

/** What an entry's link becomes: where its key begins and ends, and the two cells of its value. */
export const KEY_END = 1
export const VALUE = 2

/** In the order of keys. Links are used up. */
export function entriesOf(collecting: Collecting, field: Field, first: number): number[] {
  const { frames, bytes } = collecting
  const entries: number[] = []
  let ordered = true
  let last = 0
  for (let link = first; link !== 0; ) {
    const next = frames.cells[link + NEXT] as number
    readEntry(collecting, field, link)
    const { cells } = frames
    if (last !== 0 && !isBefore(bytes, cells, last, link)) ordered = false
    entries.push(link)
    last = link
    link = next
  }
  if (ordered) return entries
  const unique = sorted(bytes, frames.cells, entries)
  if (unique.length < entries.length) collecting.overwritten = true
  return unique
}

/**
 * As Go's readers do, only the numbers of fields are looked at, not their wire types, and a key or value may claim more
 * than its entry, as long as the message around it goes on.
 */
function readEntry(collecting: Collecting, { kind }: Field, link: number): void {
  const { frames, wire } = collecting
  const end = frames.cells[link + 1] as number
  const around = frames.cells[link + AROUND] as number
  wire.at = frames.cells[link] as number
  let from = 0
  let to = 0
  let value = 0
  let valueEnd = 0
  while (wire.at < end) {
    const before = wire.at
    const number = wire.number(around)
    if (number === 1) {
      to = wire.length(around)
      from = wire.at
      wire.at = to
    } else if (number === 2) {
      if (value !== 0) collecting.overwritten = true
      valueEnd = wire.length(around)
      value = wire.at + 1
      wire.at = valueEnd
    } else wire.skip(before, around, end)
  }
  // Bytes are never nil here: none given is none inside.
  if (kind === STRING || kind === BYTES) {
    if (value === 0) value = 1
  } else if (value !== 0) {
    const piece = frames.take(AROUND + 1)
    frames.cells[piece] = value - 1
    frames.cells[piece + 1] = valueEnd
    value = piece
  }
  const { cells } = frames
  cells[link] = from
  cells[link + KEY_END] = to
  cells[link + VALUE] = value
  cells[link + VALUE + 1] = valueEnd
}

function isBefore(bytes: Buffer, cells: Int32Array, left: number, right: number): boolean {
  const leftEnd = cells[left + KEY_END] as number
  const rightEnd = cells[right + KEY_END] as number
  return bytes.compare(bytes, cells[right] as number, rightEnd, cells[left] as number, leftEnd) < 0
}

/** Bytes as characters are ordered like bytes. */
function sorted(bytes: Buffer, cells: Int32Array, entries: readonly number[]): number[] {
  const byKey = new Map<string, number>()
  for (const entry of entries) {
    byKey.set(bytes.toString('latin1', cells[entry] as number, cells[entry + KEY_END] as number), entry)
  }
  return [...byKey.keys()].sort().map((key) => byKey.get(key) as number)
}
