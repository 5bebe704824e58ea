/**
 * The frames of streams, which the link hands on as they are: 80 to bf. `docs/link.md` says what they mean. Of those that this
 * release does not know the ones from a0 on are passed over, the others are a fault, as with frames of the link (L13).
 */
import { ByteReader, ByteWriter, LinkFault } from '../link/frames/bytes.ts'
import { frameBytesMax, type LinkFrame } from '../link/frames/frames.ts'
import { bytes, count, type Layout, later, oneOf, record, text, upTo, type ValueOf } from '../link/frames/layouts.ts'
import { carriedBytesMax, credentialBytesMax, creditBytesMax, pieceBytesMax, purposeBytesMax } from './limits.ts'

/**
 * Why a stream was reset. After `unknown` (the kind of stream), `busy` and `unsent` nothing of it had an effect, so that it may
 * be tried again; `cancelled` is a reader or writer that left; `broken` is what it led to. An unknown word is `other`, which
 * promises nothing.
 */
const reason = oneOf(['other', 'cancelled', 'unknown', 'busy', 'unsent', 'broken'], 'other')
export type ResetReason = ValueOf<typeof reason>

/** Of a sentence for a log or an answer. */
const sentenceBytesMax = 1_024

const layouts = {
  begin: [
    0x80,
    record({
      ...{ streams: count, window: upTo(creditBytesMax), credentials: count, contexts: later(count, 0) },
      /** 1: certificates are taken as credentials too; a side that does not say so is shown none. */
      certificates: later(count, 0),
    }),
  ],
  credential: [
    0x81,
    record({
      number: count,
      token: text(credentialBytesMax),
      is: later(oneOf(['token', 'certificate', 'other'], 'other'), 'token'),
    }),
  ],
  open: [
    0x82,
    record({
      stream: count,
      purpose: text(purposeBytesMax),
      credential: count,
      last: count,
      bytes: bytes(pieceBytesMax),
    }),
  ],
  data: [0x83, record({ stream: count, bytes: bytes(pieceBytesMax) })],
  end: [0x84, record({ stream: count, bytes: bytes(pieceBytesMax) })],
  reset: [0x85, record({ stream: count, reason, sentence: text(sentenceBytesMax) })],
  credit: [0x86, record({ stream: count, bytes: upTo(creditBytesMax) })],
  /** Another frame, which brings bytes of a stream: only to a side that says in its `begin` that it keeps contexts. */
  packed: [
    0x87,
    record({
      ...{ type: count, bytes: bytes(carriedBytesMax), keep: count, base: count },
      ...{ share: later(count, 0), kept: later(count, 0) },
    }),
  ],
} as const

/** Unknown ones from here on are passed over. */
const skippedFrom = 0xa0

type Layouts = typeof layouts
type FrameKind = keyof Layouts
/** A frame as the link carries it. */
export type CarriedFrame = LinkFrame & { readonly kind: 'tunnel' }
export type TunnelFrame = { [K in FrameKind]: { readonly kind: K } & ValueOf<Layouts[K][1]> }[FrameKind]

const byType = new Map<number, readonly [FrameKind, Layout<object>]>(
  (Object.keys(layouts) as FrameKind[]).map((kind) => [layouts[kind][0], [kind, layouts[kind][1] as Layout<object>]]),
)

/** Throws `LinkFault` for what the other side would refuse. */
export function encodeTunnelFrame(frame: TunnelFrame): CarriedFrame {
  const [type, layout] = layouts[frame.kind]
  const to = new ByteWriter(frameBytesMax)
  ;(layout as Layout<object>).write(to, frame)
  return { kind: 'tunnel', type, payload: to.whole() }
}

/** Undefined for a frame of a later release that may be passed over. Throws nothing but `LinkFault`. Bytes in it are views. */
export function decodeTunnelFrame({ type, payload }: CarriedFrame): TunnelFrame | undefined {
  const known = byType.get(type)
  if (known === undefined) {
    if (type >= skippedFrom) return undefined
    throw new LinkFault(`a frame of a tunnel of unknown type ${type}`)
  }
  const [kind, layout] = known
  return { kind, ...layout.read(new ByteReader(payload)) } as TunnelFrame
}

/** What a sentence may say, cut where it is too long: a message that cannot be sent would tell nothing at all. */
export function sentenceOf(text: string): string {
  const all = Buffer.from(text)
  if (all.length <= sentenceBytesMax) return all.toString()
  // A cut character becomes a sign of three bytes.
  return all.subarray(0, sentenceBytesMax - 3).toString()
}
