/** Frames as a later release may write them (L13): every field stands, others follow the last one of each frame and each entry, in whatever form. */
import { ByteWriter } from '../../frames/bytes.ts'
import type { LinkFrame } from '../../frames/frames.ts'
import { alike, bytes, count, each, type Layout, list, oneOf, record, text } from '../../frames/layouts.ts'

const name = text(253)
const key = text(512)
const sentence = text(1_024)
const large = bytes(48 * 1024)
const limits = { entriesMax: 1_024, bytesMax: 60 * 1024 }
const start = oneOf(['replay', 'compare', 'snapshot', 'wait'], 'compare')
const wish = oneOf(['resume', 'compare', 'anew'], 'compare')
const reason = oneOf(
  ['other', 'protocol', 'frame', 'limit', 'identity', 'forbidden', 'unknown', 'busy', 'cluster', 'replaced', 'never'],
  'other',
)

/** Something that today's release has never heard of. */
const unheard: Layout<unknown> = {
  write: (to) => {
    to.number(300)
    to.bytes(Buffer.from('unheard of'))
  },
  read: () => undefined,
}
const entries = (fields: Parameters<typeof record>[0]) => list(record({ ...fields, unheard }), limits)

const layouts: Readonly<
  Partial<Record<LinkFrame['kind'], readonly [type: number, fields: Parameters<typeof record>[0]]>>
> = {
  hello: [
    1,
    {
      ...{ oldest: count, newest: count, edge: name, release: name, cluster: name, epoch: count, window: count },
      counts: count,
    },
  ],
  welcome: [
    2,
    {
      ...{ protocol: count, hub: name, release: name, cluster: name, epoch: count, window: count },
      ...{ digestKey: bytes(253), trusts: count, counts: count },
    },
  ],
  refused: [3, { interest: count, reason, retryAfterMs: count, sentence }],
  subscribe: [
    4,
    {
      interests: each(() =>
        entries({ interest: count, name: alike(4_096), version: count, wish, partial: count, after: key }),
      ),
      epoch: count,
    },
  ],
  unsubscribe: [5, { interests: list(count, limits) }],
  accepted: [6, { interests: entries({ interest: count, source: count, start, version: count }) }],
  block: [7, { interest: count, version: count, after: key, size: count, offset: count, piece: large }],
  complete: [8, { interest: count, version: count, root: count }],
  events: [9, { position: count, events: entries({ interest: count, change: large }) }],
  acknowledge: [10, { position: count, bulk: count }],
  progress: [11, { marks: entries({ source: count, version: count }) }],
  compare: [12, { interest: count, version: count, request: large }],
  compared: [13, { interest: count, version: count, answer: large }],
  lost: [14, { interest: count, epoch: count, version: count }],
  ping: [15, { number: count }],
  pong: [16, { number: count, ageMs: count, stale: list(count, limits) }],
  drain: [17, { withinMs: count, sentence }],
  terms: [0x40, { trusts: count, tokenAgeMs: count, serveAgeMs: count }],
  documents: [0x50, { signs: list(bytes(32), limits) }],
}

export function asFuture(frame: LinkFrame): Buffer {
  const [type, fields] = layouts[frame.kind] ?? []
  if (type === undefined) throw new Error(`${frame.kind} is not spelled here`)
  const to = new ByteWriter(64 * 1024)
  to.byte(type)
  record({ ...fields, unheard }).write(to, { ...frame, unheard: undefined })
  return to.whole()
}
