/**
 * One change of an object, as it stands in the events of every edge that is told of it: encoded once, then copied. What it
 * brings is a delta (`link/delta`) against the object's bytes before, against another object's that both sides hold, or
 * against nothing.
 */
import { ByteReader, ByteWriter, LinkFault } from './bytes.ts'
import { keyBytesMax } from './frames.ts'
import { count, record, text } from './layouts.ts'

export type LinkChange =
  | { readonly type: 'remove'; readonly key: string; readonly version: number }
  | {
      readonly type: 'put'
      readonly key: string
      readonly version: number
      /** The key of the object whose bytes the delta is against; '' for none. */
      readonly base: string
      readonly delta: Buffer
    }

const remove = 0
/** Against nothing, against what this key has, against what another key has. */
const whole = 1
const update = 2
const like = 3

const identity = record({ key: text(keyBytesMax), version: count })
const otherKey = text(keyBytesMax)

/** At most `bytesMax` bytes: a larger one has another way to travel. */
export function encodeChange(change: LinkChange, bytesMax: number): Buffer {
  const to = new ByteWriter(bytesMax)
  if (change.type === 'remove') {
    to.byte(remove)
    identity.write(to, change)
    return to.whole()
  }
  const { key, base, delta } = change
  const kind = base === '' ? whole : base === key ? update : like
  to.byte(kind)
  identity.write(to, change)
  if (kind === like) otherKey.write(to, base)
  to.raw(delta)
  return to.whole()
}

/** An unknown kind is a fault: a change that is passed over would leave a copy wrong. The delta is a view. */
export function decodeChange(bytes: Buffer): LinkChange {
  const from = new ByteReader(bytes)
  const kind = from.byte()
  if (kind > like) throw new LinkFault(`a change of unknown kind ${kind}`)
  const { key, version } = identity.read(from)
  if (key === '') throw new LinkFault('a change without a key')
  if (kind === remove) return { type: 'remove', key, version }
  const base = kind === whole ? '' : kind === update ? key : otherKey.read(from)
  return { type: 'put', key, version, base, delta: from.rest() }
}
