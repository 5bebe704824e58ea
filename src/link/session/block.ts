/**
 * What a block holds: objects of a snapshot in the order of their keys, changes that were found or came meanwhile, or one
 * large change among the events. It is packed as a whole and stands for itself, so that no block depends on what was held before it.
 */
import { decodeDelta, encodeDelta, expandedBytesMax } from '../delta.ts'
import { ByteReader, ByteWriter, LinkFault } from '../frames/bytes.ts'
import { keyBytesMax } from '../frames/frames.ts'
import { bytes, count, oneOf, record, text } from '../frames/layouts.ts'
import type { StagedChange } from './session.ts'

const contents = ['objects', 'changes', 'event'] as const
export type BlockContent = (typeof contents)[number]

const identity = record({ key: text(keyBytesMax), version: count })
const object = bytes(expandedBytesMax)
/** An unknown one must not become another: it is `event`, which fits nowhere but among events. */
const content = oneOf(contents, 'event')

/** Throws `LinkFault` where it is larger than a block may be. */
export function encodeBlock(of: BlockContent, changes: readonly StagedChange[]): Buffer {
  const to = new ByteWriter(expandedBytesMax)
  content.write(to, of)
  for (const change of changes) {
    to.byte(change.type === 'put' ? 1 : 0)
    identity.write(to, change)
    if (change.type === 'put') object.write(to, change.bytes)
  }
  return encodeDelta(to.whole())
}

export function decodeBlock(packed: Buffer): { readonly of: BlockContent; readonly changes: readonly StagedChange[] } {
  const from = new ByteReader(decodeDelta(packed))
  const of = content.read(from)
  const changes: StagedChange[] = []
  while (!from.isAtEnd) {
    const kind = from.byte()
    const { key, version } = identity.read(from)
    if (kind > 1 || key === '') throw new LinkFault('a block of something else')
    changes.push(
      kind === 0 ? { type: 'remove', key, version } : { type: 'put', key, version, bytes: object.read(from) },
    )
  }
  return { of, changes }
}
