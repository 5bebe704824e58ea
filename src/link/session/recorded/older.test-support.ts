/**
 * The frames of protocol 1 as older releases knew them, kept as they were: what today's side writes has to be readable so. The first
 * did not know yet whom a hub trusts in welcome and ages in pong; the second, of the first hubs, neither terms nor documents, nor what is never mirrored. Neither
 * knew whether bytes of streams are acknowledged.
 */
import { ByteReader, ByteWriter, LinkFault } from '../../frames/bytes.ts'
import { alike, bytes, count, each, type Layout, later, list, oneOf, record, text } from '../../frames/layouts.ts'

const name = text(253)
const sentence = text(1_024)
const key = text(512)
const small = { entriesMax: 1_024, bytesMax: 256 }
const reason = oneOf(
  ['other', 'protocol', 'frame', 'limit', 'identity', 'forbidden', 'unknown', 'busy', 'cluster', 'replaced'],
  'other',
)
const start = oneOf(['replay', 'compare', 'snapshot', 'wait'], 'compare')
const wish = oneOf(['resume', 'compare', 'anew'], 'compare')
const change = record({ interest: count, change: bytes(32 * 1024) })
const piece = bytes(32 * 1024)
const comparison = bytes(48 * 1024)

/** Names are shortened by the one before in the same list. */
const names = each(() =>
  list(
    record({
      ...{ interest: count, name: alike(4_096), version: count },
      ...{ wish: later(wish, 'resume'), partial: later(count, 0), after: later(key, '') },
    }),
    { entriesMax: 1_024, bytesMax: 4_096 + 512 + 256 },
  ),
)

type Layouts = Readonly<Record<number, readonly [kind: string, layout: Layout<any>]>>

const layouts: Layouts = {
  1: [
    'hello',
    record({ oldest: count, newest: count, edge: name, release: name, cluster: name, epoch: count, window: count }),
  ],
  2: [
    'welcome',
    record({
      ...{ protocol: count, hub: name, release: name, cluster: name, epoch: count, window: count },
      digestKey: bytes(253),
    }),
  ],
  3: ['refused', record({ interest: count, reason, retryAfterMs: count, sentence })],
  4: ['subscribe', record({ interests: names, epoch: later(count, 0) })],
  5: ['unsubscribe', record({ interests: list(count, small) })],
  6: [
    'accepted',
    record({ interests: list(record({ interest: count, source: count, start, version: count }), small) }),
  ],
  7: ['block', record({ interest: count, version: count, after: key, size: count, offset: count, piece })],
  8: ['complete', record({ interest: count, version: count, root: later(count, 0) })],
  9: ['events', record({ position: count, events: list(change, { entriesMax: 1_024, bytesMax: 33 * 1024 }) })],
  10: ['acknowledge', record({ position: count, bulk: count })],
  11: ['progress', record({ marks: list(record({ source: count, version: count }), small) })],
  12: ['compare', record({ interest: count, version: count, request: comparison })],
  13: ['compared', record({ interest: count, version: count, answer: comparison })],
  14: ['lost', record({ interest: count, epoch: count, version: count })],
  15: ['ping', record({ number: count })],
  16: ['pong', record({ number: count })],
  17: ['drain', record({ withinMs: count, sentence })],
}

const layoutsOfHubs: Layouts = {
  ...layouts,
  2: [
    'welcome',
    record({
      ...{ protocol: count, hub: name, release: name, cluster: name, epoch: count, window: count },
      ...{ digestKey: bytes(253), trusts: later(count, 0) },
    }),
  ],
  16: ['pong', record({ number: count, ageMs: later(count, 0), stale: later(list(count, small), []) })],
}

export type OlderFrame = { readonly kind: string; readonly [field: string]: unknown }

/** A release that was, as far as its frames go. */
export class OlderRelease {
  readonly #layouts: Layouts

  constructor(which: 'first' | 'with the first hubs') {
    this.#layouts = which === 'first' ? layouts : layoutsOfHubs
  }

  /** What that release understood; undefined where it passed the frame over. Throws where it closed the link. */
  read(message: Buffer): OlderFrame | undefined {
    const [kind, layout] = this.#layouts[message[0] as number] ?? []
    if (kind === undefined || layout === undefined) {
      if ((message[0] as number) >= 0x40 && (message[0] as number) <= 0x7f) return undefined
      throw new LinkFault(`an older release does not know frame ${message[0]}`)
    }
    return { kind, ...layout.read(new ByteReader(message.subarray(1))) }
  }

  /** The same as that release would have written it. */
  write(message: Buffer): Buffer | undefined {
    const frame = this.read(message)
    if (frame === undefined) return undefined
    const to = new ByteWriter(64 * 1024)
    to.byte(message[0] as number)
    this.#layouts[message[0] as number]?.[1].write(to, frame)
    return to.whole()
  }
}
