/** Streams with a side two releases older (L9, L13): its frames as they were recorded, against today's other end. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { ByteReader } from '../link/frames/bytes.ts'
import { decodeFrame, encodeFrame } from '../link/frames/frames.ts'
import { bytes, count, type Layout, oneOf, record, text } from '../link/frames/layouts.ts'
import type { TunnelDuplex } from './duplex.ts'
import type { CarriedFrame } from './frames.ts'
import { standardTunnelLimits } from './limits.ts'
import { answerTo, headOf, recordedLimits, recordedRequests } from './recordedrequests.test-support.ts'
import { decodeRequestHead, encodeRequestHead, isSmall, likenessOf, requestPurpose } from './request/request.ts'
import { RequestServer } from './request/serve.ts'
import { TunnelStreams } from './streams.ts'

const piece = bytes(16 * 1024)
const reason = oneOf(['other', 'cancelled', 'unknown', 'busy', 'unsent', 'broken'], 'other')
/** As that release knew them, kept as they were. */
const layouts: Readonly<Record<number, readonly [kind: string, layout: Layout<any>]>> = {
  128: ['begin', record({ streams: count, window: count, credentials: count })],
  129: ['credential', record({ number: count, token: text(16 * 1024) })],
  130: ['open', record({ stream: count, purpose: text(63), credential: count, last: count, bytes: piece })],
  131: ['data', record({ stream: count, bytes: piece })],
  132: ['end', record({ stream: count, bytes: piece })],
  133: ['reset', record({ stream: count, reason, sentence: text(1_024) })],
  134: ['credit', record({ stream: count, bytes: count })],
}

type Older = {
  readonly kind: string
  readonly stream?: number
  readonly bytes?: Buffer | number
  readonly token?: string
}

function readAsOlder(message: Buffer): Older {
  const [kind, layout] = layouts[message[0] as number] ?? assert.fail(`an older release does not know ${message[0]}`)
  return { kind, ...layout.read(new ByteReader(message.subarray(1))) }
}

type Line = { readonly to: 'edge' | 'hub'; readonly bytes: Buffer }

/** What began the link, and then of each request what was sent, in order. */
const recording: Line[][] = [[]]
for (const line of readFileSync(join(import.meta.dirname, 'recorded.txt'), 'utf8').split('\n')) {
  if (line === 'request') recording.push([])
  else if (/^[<>] /.test(line))
    recording.at(-1)?.push({ to: line.startsWith('<') ? 'edge' : 'hub', bytes: Buffer.from(line.slice(2), 'hex') })
}
const [begun = [], ...requests] = recording

/** One end as it is today, and what it has sent. */
class Today {
  readonly streams: TunnelStreams
  readonly sent: Buffer[] = []

  constructor(side: 'edge' | 'hub') {
    const server = new RequestServer({ handle: answerTo, callerRequestsMax: 10 })
    const limits = { ...standardTunnelLimits, ...recordedLimits }
    const ready = () => {
      for (let frame = this.streams.next(true); frame !== undefined; frame = this.streams.next(true))
        this.sent.push(encodeFrame(frame))
    }
    this.streams = new TunnelStreams({ side, limits, accept: (incoming) => server.accept(incoming), ready })
  }

  /** Each frame by itself, as they came. */
  async take(lines: readonly Line[]): Promise<void> {
    for (const { bytes } of lines) {
      this.streams.receive(decodeFrame(bytes) as CarriedFrame)
      for (let at = 0; at < 5; at++) await turn()
    }
  }
}

/** What a stream brought in one direction, whatever frames that took. */
function brought(messages: readonly Buffer[]): string {
  const frames = messages.map(readAsOlder)
  return Buffer.concat(frames.flatMap(({ bytes }) => (Buffer.isBuffer(bytes) ? [bytes] : []))).toString('latin1')
}

const to = (side: 'edge' | 'hub', lines: readonly Line[]) => lines.filter((line) => line.to === side)

test('[L9, L13] today’s hub answers the recorded requests of an older edge as they were answered, in frames that it knows', async () => {
  const hub = new Today('hub')
  await hub.take(to('hub', begun))
  hub.sent.splice(0)
  for (const [at, lines] of requests.entries()) {
    await hub.take(to('hub', lines))
    const recorded = to('edge', lines).map((line) => line.bytes)
    assert.equal(brought(hub.sent.splice(0)), brought(recorded), `request ${at}`)
  }
  assert.equal(requests.length, recordedRequests.length)
  assert.equal(hub.streams.figures().streams, 0)
})

test('[L9, L13] today’s edge asks a recorded older hub in frames that it knows, and has its answers', async () => {
  const edge = new Today('edge')
  await edge.take(to('edge', begun))
  edge.sent.splice(0)
  for (const [at, asked] of recordedRequests.entries()) {
    const { token, body = '' } = asked
    const head = headOf(asked)
    const bytes = encodeRequestHead(head)
    const stream = edge.streams.open({ purpose: requestPurpose, token }) as TunnelDuplex
    stream.likened(likenessOf(head, token, bytes.length))
    stream.gather(isSmall(head.headers))
    stream.write(bytes)
    stream.end(body)
    for (let rounds = 0; rounds < 5; rounds++) await turn()
    const { sent } = edge
    const understood = sent.splice(0).map(readAsOlder)
    const recorded = to('hub', requests[at] as Line[]).map((line) => readAsOlder(line.bytes))
    const opening = (frames: readonly Older[]) => frames.find(({ kind }) => kind === 'open')
    assert.equal(opening(understood)?.stream, opening(recorded)?.stream)
    // An older hub reads the head behind its length, and passes over what was added at its end.
    const carried = Buffer.concat(understood.flatMap((one) => (Buffer.isBuffer(one.bytes) ? [one.bytes] : [])))
    const told = decodeRequestHead(new ByteReader(carried).bytes(bytes.length))
    assert.deepEqual([told.method, told.path, told.actor], [head.method, head.path, head.actor])
    assert.ok(carried.toString().endsWith(body))
    const tokens = (frames: readonly Older[]) => frames.flatMap((one) => one.token ?? [])
    assert.deepEqual(tokens(understood), tokens(recorded))

    const answered = to('edge', requests[at] as Line[])
    let answer = ''
    const reading = (async () => {
      for await (const read of stream) answer += (read as Buffer).toString('latin1')
    })()
    await edge.take(answered)
    await reading
    assert.equal(answer, brought(answered.map((line) => line.bytes)), `request ${at}`)
    for (const message of edge.sent.splice(0)) assert.equal(readAsOlder(message).kind, 'credit')
  }
})
