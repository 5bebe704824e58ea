/**
 * A write of much lets others in between its steps. Each step takes time in proportion to what it works on, and none of
 * them changes what others see before the commit; a write that pauses holds the lock of its key, or asks again afterwards.
 */

import { turns } from '../base/turns.ts'
import type { WriteRequest } from './write.ts'

/** Bytes of a body or an object from which a write is much: each step of a smaller one takes a few ms at most. */
const muchBytes = 64 * 1024

/** Rarely so: a write of little is not put off. `stored`: the size of what it changes, in bytes. */
export function isMuch({ body }: Pick<WriteRequest, 'body'>, stored = 0): boolean {
  return stored > muchBytes || (body !== undefined && body.length > muchBytes)
}

export function pause({ who }: Pick<WriteRequest, 'who'>): Promise<void> {
  return turns.take(who)
}
