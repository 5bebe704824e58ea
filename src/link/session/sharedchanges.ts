/**
 * Changes encoded once for all edges that are told of them: by the object, and by what it is a delta against. Objects are compared as
 * values that are never changed, so that finding one costs a lookup. What was encoded is kept in two halves: when the
 * newer is full the older goes, which keeps what is being sent and forgets what was.
 */
import { encodeDelta } from '../delta.ts'
import { encodeChange } from '../frames/change.ts'
import { changeBytesMax } from '../frames/frames.ts'
import type { LinkObject } from './session.ts'

/** Of both halves: thousands of updates, or the largest ones for as long as it takes to send them. */
const keptBytesMax = 8 * 1024 * 1024
/** Of an entry beside its bytes. */
const overheadBytes = 200

type DeltaBase = LinkObject | undefined
type Half = Map<LinkObject, Map<DeltaBase, Buffer | 'large'>>

export class SharedChanges {
  #newer: Half = new Map()
  #older: Half = new Map()
  #bytes = 0

  /** 'large': it does not fit among events. */
  put(item: LinkObject, base: DeltaBase): Buffer | 'large' {
    const found = this.#newer.get(item)?.get(base) ?? this.#older.get(item)?.get(base)
    if (found !== undefined) return found
    const encoded = encodePut(item, base)
    if (this.#bytes > keptBytesMax / 2) {
      this.#older = this.#newer
      this.#newer = new Map()
      this.#bytes = 0
    }
    const ofItem = this.#newer.get(item)
    if (ofItem === undefined) this.#newer.set(item, new Map([[base, encoded]]))
    else ofItem.set(base, encoded)
    // The cache may be the last to keep what an entry names.
    this.#bytes += overheadBytes + item.bytes.length + (base?.bytes.length ?? 0) + encoded.length
    return encoded
  }
}

function encodePut(item: LinkObject, base: DeltaBase): Buffer | 'large' {
  const delta = encodeDelta(item.bytes, base?.bytes)
  if (delta.length + 2 * item.key.length + (base?.key.length ?? 0) * 2 + 32 > changeBytesMax) return 'large'
  const { key, version } = item
  return encodeChange({ type: 'put', key, version, base: base?.key ?? '', delta }, changeBytesMax)
}
