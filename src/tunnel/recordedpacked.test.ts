/**
 * Streams with a side of the first release with hubs (L9, L13), whose frames already travelled as differences: as they were recorded,
 * against today's other end. What such frames say depends on all before them, so both ends go through every request.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { decodeFrame, encodeFrame } from '../link/frames/frames.ts'
import type { TunnelDuplex } from './duplex.ts'
import type { CarriedFrame } from './frames.ts'
import { standardTunnelLimits } from './limits.ts'
import { answerTo, headOf, recordedLimits, recordedRequests } from './recordedrequests.test-support.ts'
import { encodeRequestHead, isSmall, likenessOf, requestPurpose } from './request/request.ts'
import { RequestServer } from './request/serve.ts'
import { TunnelStreams } from './streams.ts'

type Line = { readonly to: 'edge' | 'hub'; readonly bytes: Buffer }

/** What began the link, and then of each request what was sent, in order. */
const recording: Line[][] = [[]]
for (const line of readFileSync(join(import.meta.dirname, 'recordedpacked.txt'), 'utf8').split('\n')) {
  if (line === 'request') recording.push([])
  else if (/^[<>] /.test(line))
    recording.at(-1)?.push({ to: line.startsWith('<') ? 'edge' : 'hub', bytes: Buffer.from(line.slice(2), 'hex') })
}
const [begun = [], ...requests] = recording
const bytesTo = (side: 'edge' | 'hub', lines: readonly Line[]) =>
  lines.filter((line) => line.to === side).map(({ bytes }) => bytes)

/** What that release knew: begin, credential, open, data, end, reset, credit and packed. */
const newestKnown = 0x87
const packed = 0x87
/** Turns after which an end has done all that follows from a frame. */
const turns = 10

class Today {
  readonly streams: TunnelStreams
  /** What came out of the requests that it was asked, in order. */
  readonly handled: string[] = []
  readonly #sent: Buffer[] = []

  constructor(side: 'edge' | 'hub') {
    const server = new RequestServer({
      handle: async (request) => {
        const reply = await answerTo(request)
        this.handled.push(String(reply.body))
        return reply
      },
      callerRequestsMax: 10,
    })
    const ready = () => {
      for (let frame = this.streams.next(true); frame !== undefined; frame = this.streams.next(true))
        this.#sent.push(encodeFrame(frame))
    }
    const limits = { ...standardTunnelLimits, ...recordedLimits }
    this.streams = new TunnelStreams({ side, limits, accept: (incoming) => server.accept(incoming), ready })
  }

  /** Answers what it had to say meanwhile. */
  async take(messages: readonly Buffer[]): Promise<Buffer[]> {
    for (const bytes of messages) {
      this.streams.receive(decodeFrame(bytes) as CarriedFrame)
      await settled()
    }
    return this.#sent.splice(0)
  }
}

async function settled(): Promise<void> {
  for (let at = 0; at < turns; at++) await turn()
}

/** The edge asks; answers what it is told, once that has ended. */
function ask(edge: Today, asked: (typeof recordedRequests)[number]): Promise<string> {
  const { token, body = '' } = asked
  const head = headOf(asked)
  const bytes = encodeRequestHead(head)
  const stream = edge.streams.open({ purpose: requestPurpose, token }) as TunnelDuplex
  stream.likened(likenessOf(head, token, bytes.length))
  stream.gather(isSmall(head.headers))
  stream.write(bytes)
  stream.end(body)
  return (async () => {
    let answer = ''
    for await (const read of stream) answer += (read as Buffer).toString('latin1')
    return answer
  })()
}

/** As the API server of the recording answered. */
async function expectedOf({ method, path, actor, token, body = '' }: (typeof recordedRequests)[number]) {
  const identity = token === undefined ? { kind: actor } : { kind: 'token', token }
  return String((await answerTo({ method, path, identity, body: [body] } as never)).body)
}

test('[L9, L13] today’s hub understands the packed requests of a recorded edge of the first hubs, and says nothing that it does not know', async () => {
  const hub = new Today('hub')
  // Reads what today's hub answers, as the recorded one did: by what it was told before.
  const reader = new Today('edge')
  await reader.take(await hub.take(bytesTo('hub', begun)))
  for (const [at, asked] of recordedRequests.entries()) {
    const answer = ask(reader, asked)
    await settled()
    const sent = await hub.take(bytesTo('hub', requests[at] as Line[]))
    assert.ok(sent.length > 0 && sent.every(([type = 0]) => type >= 0x80 && type <= newestKnown), `request ${at}`)
    await reader.take(sent)
    const expected = await expectedOf(asked)
    assert.equal(hub.handled.at(-1), expected)
    assert.ok((await answer).endsWith(expected), `request ${at}`)
  }
  assert.equal(hub.handled.length, recordedRequests.length)
  assert.equal(hub.streams.figures().streams, 0)
})

test('[L9, L13] today’s edge understands the packed answers of a recorded hub of the first hubs, and asks in frames that it knows', async () => {
  const edge = new Today('edge')
  await edge.take(bytesTo('edge', begun))
  for (const [at, asked] of recordedRequests.entries()) {
    const answer = ask(edge, asked)
    await settled()
    const recorded = bytesTo('edge', requests[at] as Line[])
    const sent = await edge.take(recorded)
    assert.ok(sent.length > 0 && sent.every(([type = 0]) => type >= 0x80 && type <= newestKnown), `request ${at}`)
    assert.ok((await answer).endsWith(await expectedOf(asked)), `request ${at}`)
  }
  const kinds = requests.flat().map(({ bytes }) => bytes[0])
  assert.ok(kinds.filter((type) => type === packed).length > recordedRequests.length, 'they travelled as differences')
})
