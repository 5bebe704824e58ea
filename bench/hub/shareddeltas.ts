/**
 * Makes the edges of a fleet unpack each delta once for all of them (`node --import`): they hold the same bytes, and on a machine of
 * each edge's own it is done at the same time. In the one process of a fleet it was most of what a delivery cost, so that with
 * thousands of edges a burst kept their links silent until the hub took them for dead.
 */
import { registerHooks } from 'node:module'
import * as delta from '../../src/link/delta.ts'

type Unpacked = { readonly delta: Buffer; readonly bytes: Buffer }

/** By the bytes that a delta is against, as an object: what the edges hold is shared (`fleetcopy.ts`). */
const unpacked = new WeakMap<Buffer, Unpacked>()

export const { encodeDelta, expandedBytesMax, WrongBase } = delta

export function decodeDelta(packed: Buffer, base?: Buffer): Buffer {
  if (base === undefined || base.length === 0) return delta.decodeDelta(packed, base)
  const known = unpacked.get(base)
  if (known?.delta.equals(packed)) return known.bytes
  const bytes = delta.decodeDelta(packed, base)
  unpacked.set(base, { delta: Buffer.from(packed), bytes })
  return bytes
}

registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context)
    const isDelta = resolved.url.endsWith('/src/link/delta.ts') && context.parentURL !== import.meta.url
    return isDelta ? { ...resolved, url: import.meta.url } : resolved
  },
})
