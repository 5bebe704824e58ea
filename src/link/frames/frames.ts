/**
 * The frames of a link between an edge and a hub, one in each binary message: a byte that says which it is, and its fields.
 * `docs/link.md` says what they mean; here is how they are written and what they may hold at most.
 */
import { ByteReader, ByteWriter, LinkFault } from './bytes.ts'
import {
  alike,
  bytes,
  count,
  each,
  type Layout,
  later,
  list,
  oneOf,
  record,
  text,
  upTo,
  type ValueOf,
} from './layouts.ts'

/** The versions of the protocol that this release speaks. The hub answers a hello with the newest that both speak. */
export const oldestProtocol = 1
export const newestProtocol = 1

/** Of any frame: 64 KiB take half a second at 1 Mbit/s, and thousands of links may each hold one. Larger things are blocks. */
export const frameBytesMax = 64 * 1024
/** Of a block, as it travels: what an object may take at most at an API server (3 MiB in a request), and room. */
const blockBytesMax = 4 * 1024 * 1024
/** Of a block in one frame: an event behind it waits for 0.25 s at 1 Mbit/s. */
const pieceBytesMax = 32 * 1024
/** Of a change among events: a larger one travels as a block. */
export const changeBytesMax = 32 * 1024
/** Namespace and name of an object, both 253 at most. */
export const keyBytesMax = 512
/** Of an interest's name with its selectors: a longer one is not followed over a link. */
export const interestBytesMax = 4 * 1024
/** Entries in one frame, whatever they are; there may be several frames. */
export const entriesMax = 1_024
/** Of the name of a release, a cluster, a hub or an edge. */
const nameBytesMax = 253
/** Of a sentence for a log. */
const sentenceBytesMax = 1_024
/** Of one message of a comparison by digests. */
export const comparisonBytesMax = 48 * 1024
/** Of the sign of a document. */
const signBytesMax = 32
/** Bytes of numbers in an entry, where later releases may add some. */
const smallEntryBytesMax = 256

const name = text(nameBytesMax)
const small = { entriesMax, bytesMax: smallEntryBytesMax }

/** Why something was refused; what a later release says is `other`, and its sentence tells. */
const reason = oneOf(
  ['other', 'protocol', 'frame', 'limit', 'identity', 'forbidden', 'unknown', 'busy', 'cluster', 'replaced', 'never'],
  'other',
)

/** How an interest begins: events behind what the edge has, a comparison, everything, or waiting for the hub to come as far. */
const start = oneOf(['replay', 'compare', 'snapshot', 'wait'], 'compare')

/** What the edge wants: what came behind its version, a comparison, or everything whatever it has. */
const wish = oneOf(['resume', 'compare', 'anew'], 'compare')

/** `partial` and `after`: an unfinished snapshot of that version, whole up to that key; 0 for none. */
const subscribed = each(() =>
  list(
    record({
      interest: count,
      name: alike(interestBytesMax),
      version: count,
      wish: later(wish, 'resume'),
      partial: later(count, 0),
      after: later(text(keyBytesMax), ''),
    }),
    { entriesMax, bytesMax: interestBytesMax + keyBytesMax + smallEntryBytesMax },
  ),
)

/** By name, with the byte that stands for it. A number is used once and never again for something else. */
const layouts = {
  hello: [
    0x01,
    record({
      ...{ oldest: count, newest: count, edge: name, release: name, cluster: name, epoch: count, window: count },
      // 1: it can acknowledge bytes of streams among those of blocks.
      counts: later(count, 0),
    }),
  ],
  welcome: [
    0x02,
    record({
      protocol: count,
      hub: name,
      release: name,
      cluster: name,
      epoch: count,
      window: count,
      digestKey: bytes(nameBytesMax),
      // 1: it trusts its edges, and passes on what their administrators ask.
      trusts: later(count, 0),
      // 1: bytes of streams are to be acknowledged among those of blocks.
      counts: later(count, 0),
    }),
  ],
  refused: [0x03, record({ interest: count, reason, retryAfterMs: count, sentence: text(sentenceBytesMax) })],
  subscribe: [0x04, record({ interests: subscribed, epoch: later(count, 0) })],
  unsubscribe: [0x05, record({ interests: list(count, small) })],
  accepted: [
    0x06,
    record({ interests: list(record({ interest: count, source: count, start, version: count }), small) }),
  ],
  block: [
    0x07,
    record({
      interest: count,
      version: count,
      after: text(keyBytesMax),
      size: upTo(blockBytesMax),
      offset: upTo(blockBytesMax),
      piece: bytes(pieceBytesMax),
    }),
  ],
  complete: [0x08, record({ interest: count, version: count, root: later(count, 0) })],
  events: [
    0x09,
    record({
      position: count,
      events: list(record({ interest: count, change: bytes(changeBytesMax) }), {
        entriesMax,
        bytesMax: changeBytesMax + smallEntryBytesMax,
      }),
    }),
  ],
  acknowledge: [0x0a, record({ position: count, bulk: count })],
  progress: [0x0b, record({ marks: list(record({ source: count, version: count }), small) })],
  compare: [0x0c, record({ interest: count, version: count, request: bytes(comparisonBytesMax) })],
  compared: [0x0d, record({ interest: count, version: count, answer: bytes(comparisonBytesMax) })],
  lost: [0x0e, record({ interest: count, epoch: count, version: count })],
  ping: [0x0f, record({ number: count })],
  /** `ageMs`: as old is what the hub was told at most, and all of it sent; of the interests in `stale` it does not know that. */
  pong: [0x10, record({ number: count, ageMs: later(count, 0), stale: later(list(count, small), []) })],
  drain: [0x11, record({ withinMs: count, sentence: text(sentenceBytesMax) })],
  /** What policies say of the edge: 1 if it is trusted; how long it takes tokens, and answers, without the cloud (0: policies do not say). */
  terms: [0x40, record({ trusts: count, tokenAgeMs: count, serveAgeMs: count })],
  /** Of each document that edges keep (`mirror/documents/signs`), in a fixed order; empty where the hub does not know. */
  documents: [0x50, record({ signs: list(bytes(signBytesMax), small) })],
} as const

/** Unknown ones below are a fault, from here on they are passed over: a release chooses which its new frame may be (L13). */
const skippedFrom = 0x40
/** Streams of a tunnel; what is in them is not the link's affair. */
const tunnelFrom = 0x80
const tunnelUpTo = 0xbf

type Layouts = typeof layouts
type FrameKind = keyof Layouts
type KnownFrame = { [K in FrameKind]: { readonly kind: K } & ValueOf<Layouts[K][1]> }[FrameKind]
export type LinkFrame = KnownFrame | { readonly kind: 'tunnel'; readonly type: number; readonly payload: Buffer }

const byType = new Map<number, readonly [FrameKind, Layout<object>]>(
  (Object.keys(layouts) as FrameKind[]).map((kind) => [layouts[kind][0], [kind, layouts[kind][1] as Layout<object>]]),
)

/** The newest protocol that both sides speak; undefined if there is none, or the hello makes no sense. */
export function chooseProtocol(hello: { readonly oldest: number; readonly newest: number }): number | undefined {
  const chosen = Math.min(newestProtocol, hello.newest)
  return chosen < Math.max(oldestProtocol, hello.oldest) ? undefined : chosen
}

/** Throws `LinkFault` for what the other side would refuse. */
export function encodeFrame(frame: LinkFrame): Buffer {
  const to = new ByteWriter(frameBytesMax)
  if (frame.kind === 'tunnel') {
    if (frame.type < tunnelFrom || frame.type > tunnelUpTo) throw new LinkFault(`${frame.type} is no frame of a tunnel`)
    to.byte(frame.type)
    to.raw(frame.payload)
  } else {
    const [type, layout] = layouts[frame.kind]
    to.byte(type)
    ;(layout as Layout<object>).write(to, frame)
  }
  return to.whole()
}

/** Undefined for a frame of a later release that may be passed over. Throws nothing but `LinkFault`. Bytes in it are views. */
export function decodeFrame(message: Buffer): LinkFrame | undefined {
  if (message.length > frameBytesMax) throw new LinkFault(`a frame of ${message.length} bytes`)
  const from = new ByteReader(message)
  const type = from.byte()
  if (type >= tunnelFrom && type <= tunnelUpTo) return { kind: 'tunnel', type, payload: from.rest() }
  const known = byType.get(type)
  if (known === undefined) {
    if (type >= skippedFrom && type < tunnelFrom) return undefined
    throw new LinkFault(`a frame of unknown type ${type}`)
  }
  const [kind, layout] = known
  return { kind, ...layout.read(from) } as LinkFrame
}
