/** What an event waits for behind blocks and forwarded bodies, over a line of 1 Mbit/s that queues whatever it is sent, as a modem does; by a clock of its own. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { DigestTree } from '../../link/digest/digest.ts'
import { decodeFrame, encodeFrame, type LinkFrame } from '../../link/frames/frames.ts'
import { EdgeSession } from '../../link/session/edge.ts'
import { HubSession } from '../../link/session/hub.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import {
  digestEntry,
  type EdgeEffect,
  type HubEffect,
  type InterestView,
  type LinkObject,
} from '../../link/session/session.ts'
import { SharedChanges } from '../../link/session/sharedchanges.ts'
import { standardTunnelLimits } from '../../tunnel/limits.ts'
import { type IncomingStream, TunnelStreams } from '../../tunnel/streams.ts'
import { HubWorld } from './hub.test-support.ts'
import { StreamSending } from './streamsending.ts'

const bytesPerMs = 125
const oneWayMs = 20
/** Of TLS and WebSocket, for each frame. */
const overheadBytes = 26
const secret = Buffer.from('a secret of the hubs')

/** Objects that no packing makes smaller. */
function viewOf(objects: readonly LinkObject[], source: number): InterestView {
  const digest = new DigestTree(secret)
  for (const object of objects) digest.put(digestEntry(object))
  return {
    ...{ source, version: 1, floor: 1, digest, since: () => [], near: () => undefined },
    get: (key) => objects.find((object) => object.key === key),
    behind: (after) => objects.filter(({ key }) => key > after),
  }
}

function noise(count: number, bytes: number): LinkObject[] {
  return Array.from({ length: count }, (_, at) => {
    const key = `a/k${at + 100}`
    return { key, uid: key, version: 1, bytes: randomBytes(bytes) }
  })
}

/** A hub, an edge, and the line between them. `isOlder`: the edge does not acknowledge what streams bring. */
class SlowWorld {
  readonly clock = fakeClock(0)
  readonly hub: HubSession
  readonly edge: EdgeSession
  readonly #views: ReadonlyMap<string, InterestView>
  readonly #isOlder: boolean
  readonly #toEdge: { readonly at: number; readonly bytes: Buffer }[] = []
  readonly #toHub: { readonly at: number; readonly bytes: Buffer }[] = []
  readonly #hubStreams: TunnelStreams
  readonly edgeStreams: TunnelStreams
  readonly #sending: StreamSending
  #freeAt = 0
  /** When each event arrived, by its version. */
  readonly arrived = new Map<number, number>()
  /** Of blocks, as they came. */
  blockBytes = 0
  sentBytes = 0
  acknowledgements = 0

  constructor(parts: { views: ReadonlyMap<string, InterestView>; isOlder: boolean; answers: Record<string, number> }) {
    const { clock } = this
    this.#views = parts.views
    this.#isOlder = parts.isOlder
    this.hub = new HubSession({
      ...{ hub: 'h', release: '1', cluster: 'c1', epoch: 1, lost: 0, digestKey: secret, now: clock.steady() },
      ...{ changes: new SharedChanges(), admit: () => undefined },
      areStreamsWaiting: () => this.#hubStreams.isWaiting,
    })
    this.edge = new EdgeSession({
      ...{ edge: 'e', release: '1', cluster: '', epoch: 0, keepaliveMs: 30_000, held: () => undefined },
      now: clock.steady(),
    })
    this.#hubStreams = new TunnelStreams({
      ...{ side: 'hub', limits: standardTunnelLimits, ready: () => this.#flush() },
      accept: ({ stream, purpose }) => {
        stream.resume()
        stream.end(Buffer.alloc(parts.answers[purpose] ?? 0, 'x'))
      },
    })
    this.edgeStreams = new TunnelStreams({
      ...{ side: 'edge', limits: standardTunnelLimits, accept: () => {} },
      ready: () => this.#pump(),
    })
    this.#sending = new StreamSending({
      ...{ streams: this.#hubStreams, session: this.hub, clock, line: { hasRoom: true, bufferedBytes: 0 } },
      send: (frame) => this.#down(frame),
      sent: () => queueMicrotask(() => this.#hubDoes(this.hub.tick(clock.steady()))),
    })
  }

  /** What the edge asks for over a stream: when the answer began, and how much of it came. */
  ask(purpose: string): { readonly came: { bytes: number; firstAt: number | undefined } } {
    const came: { bytes: number; firstAt: number | undefined } = { bytes: 0, firstAt: undefined }
    const stream = this.edgeStreams.open({ purpose })
    assert.ok(stream !== undefined)
    stream.on('data', (bytes: Buffer) => {
      came.bytes += bytes.length
      came.firstAt ??= this.clock.steady()
    })
    stream.end('asked')
    return { came }
  }

  change(interest: number, version: number): void {
    const item = { key: 'a/e', uid: 'e', version, bytes: randomBytes(200) }
    this.hub.event(interest, { key: 'a/e', version, item, previous: undefined })
    this.#hubDoes(this.hub.tick(this.clock.steady()))
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left--) {
      const now = this.clock.steady()
      for (const bytes of due(this.#toHub, now)) this.#hubDoes(this.hub.receive(decodeFrame(bytes) as LinkFrame, now))
      for (const bytes of due(this.#toEdge, now)) this.#edgeTakes(decodeFrame(bytes) as LinkFrame, now)
      this.#edgeDoes(this.edge.tick(now))
      await turn()
      this.clock.advance(1)
    }
  }

  #edgeTakes(frame: LinkFrame, now: number): void {
    if (frame.kind === 'block') this.blockBytes += frame.piece.length
    this.#edgeDoes(this.edge.receive(frame, now))
  }

  #down(frame: LinkFrame): void {
    const bytes = encodeFrame(frame)
    this.sentBytes += bytes.length + overheadBytes
    this.#freeAt = Math.max(this.clock.steady(), this.#freeAt) + (bytes.length + overheadBytes) / bytesPerMs
    this.#toEdge.push({ at: this.#freeAt + oneWayMs, bytes })
  }

  #up(frame: LinkFrame): void {
    if (frame.kind === 'acknowledge') this.acknowledgements++
    const said = frame.kind === 'hello' && this.#isOlder ? { ...frame, counts: 0 } : frame
    this.#toHub.push({ at: this.clock.steady() + oneWayMs, bytes: encodeFrame(said) })
  }

  #hubDoes(effects: readonly HubEffect[]): void {
    for (const effect of effects)
      if (effect.effect === 'send') this.#down(effect.frame)
      else if (effect.effect === 'tunnel') this.#hubStreams.receive(effect.frame)
      else if (effect.effect === 'open') {
        this.hub.opened(effect.interest, this.#views.get(effect.name) as InterestView)
        queueMicrotask(() => this.#hubDoes(this.hub.tick(this.clock.steady())))
      } else assert.notEqual(effect.effect, 'close', JSON.stringify(effect))
    this.#flush()
  }

  /** Streams begin when the link is welcomed. */
  #flush(): void {
    if (this.hub.state !== 'greeting') this.#sending.flush()
  }

  #pump(): void {
    if (this.edge.state === 'greeting') return
    for (let frame = this.edgeStreams.next(true); frame !== undefined; frame = this.edgeStreams.next(true))
      this.#up(frame)
  }

  #edgeDoes(effects: readonly EdgeEffect[]): void {
    for (const effect of effects)
      if (effect.effect === 'send') this.#up(effect.frame)
      else if (effect.effect === 'tunnel') this.edgeStreams.receive(effect.frame)
      else if (effect.effect === 'welcomed') this.#pump()
      else if (effect.effect === 'commit') {
        for (const { version } of effect.changes) this.arrived.set(version, this.clock.steady())
        this.edge.committed(effect.position)
      } else assert.notEqual(effect.effect, 'close', JSON.stringify(effect))
  }
}

function due(queue: { readonly at: number; readonly bytes: Buffer }[], now: number): Buffer[] {
  const found: Buffer[] = []
  while (queue[0] !== undefined && queue[0].at <= now) found.push((queue.shift() as { bytes: Buffer }).bytes)
  return found
}

/** A large first copy and a large answer, both under way for some seconds; meanwhile an event every 100 ms, and small questions. */
async function crowded({ isOlder, hasBlocks = true }: { isOlder: boolean; hasBlocks?: boolean }) {
  const views = new Map([
    ['few', viewOf(noise(1, 100), 1)],
    ['many', viewOf(noise(60, 50_000), 2)],
  ])
  const world = new SlowWorld({ views, isOlder, answers: { large: 3_000_000, small: 300 } })
  const { clock, edge } = world
  edge.subscribe('few', { epoch: 0, version: 0, wish: 'resume' })
  await world.pass(400)
  if (hasBlocks) edge.subscribe('many', { epoch: 0, version: 0, wish: 'resume' })
  const { came } = world.ask('large')
  await world.pass(1_000)
  const [blocksBefore, cameBefore, sentBefore] = [world.blockBytes, came.bytes, world.sentBytes]
  const sent = new Map<number, number>()
  const small: { readonly at: number; readonly came: { readonly firstAt: number | undefined } }[] = []
  const forMs = 5_000
  for (let version = 2; version < 2 + forMs / 100; version++) {
    sent.set(version, clock.steady())
    world.change(1, version)
    if (version % 10 === 0) small.push({ at: clock.steady(), came: world.ask('small').came })
    await world.pass(100)
  }
  await world.pass(isOlder ? 4_000 : 600)
  const late = [...sent].map(
    ([version, at]) => (world.arrived.get(version) ?? Number.POSITIVE_INFINITY) - at - oneWayMs,
  )
  const answered = small.map(({ at, came: { firstAt = Number.POSITIVE_INFINITY } }) => firstAt - at - 2 * oneWayMs)
  return {
    latest: Math.max(...late),
    slowest: Math.max(...answered),
    used: (world.sentBytes - sentBefore) / (bytesPerMs * (forMs + (isOlder ? 4_000 : 600))),
    blocks: world.blockBytes - blocksBefore,
    body: came.bytes - cameBefore,
  }
}

test('[L2] an event waits at most 300 ms behind a first copy and forwarded bodies together, at 1 Mbit/s, and the line is used all the same', async () => {
  const { latest, used } = await crowded({ isOlder: false })
  assert.ok(latest <= 300, `${latest} ms late`)
  assert.ok(used > 0.85, `${used} of the line`)
  const body = await crowded({ isOlder: false, hasBlocks: false })
  assert.ok(body.latest <= 300, `${body.latest} ms late behind a body alone`)
  assert.ok(body.used > 0.85, `${body.used} of the line`)
})

test('[L2, L18] blocks and bodies share the line by halves, and a small answer starves behind neither', async () => {
  const { blocks, body, slowest } = await crowded({ isOlder: false })
  assert.ok(Math.abs(blocks - body) < 0.2 * blocks, `${blocks} bytes of blocks, ${body} of a body`)
  assert.ok(slowest <= 700, `${slowest} ms until a small answer began`)
})

test('[L9, L13] an edge of an older release, which does not acknowledge what streams bring, has all of it', async () => {
  const { body, latest } = await crowded({ isOlder: true })
  assert.ok(body > 0)
  assert.ok(latest > 300, 'it is served as ever')
})

test('[L5] small answers cost no acknowledgement each, and none of them is owed', async () => {
  const world = new SlowWorld({ views: new Map(), isOlder: false, answers: { small: 300 } })
  await world.pass(100)
  for (let at = 0; at < 12; at++) {
    const { came } = world.ask('small')
    await world.pass(100)
    assert.equal(came.bytes, 300)
  }
  assert.ok(world.acknowledgements <= 2, `${world.acknowledgements} acknowledgements`)
  const asked = world.sentBytes
  await world.pass(4_000)
  assert.equal(world.sentBytes, asked, 'nothing waits, and the edge is not asked whether it is there')
})

test('[L2] what a hub sends of streams is bulk: no more is on its way than was acknowledged, though the line takes everything', async () => {
  const accept =
    () =>
    ({ stream }: IncomingStream) => {
      stream.on('error', () => undefined)
      stream.resume()
      stream.end(Buffer.alloc(400_000, 'x'))
    }
  await using world = await HubWorld.open({ accept })
  const edge = world.edge('n1', 'v1/pods')
  edge.connect()
  await world.until(() => edge.copy().version > 0)
  // What came is acknowledged when the test says so.
  const { send } = edge
  const said: LinkFrame[] = []
  edge.send = (frame) => void (frame.kind === 'acknowledge' ? said.push(frame) : send.call(edge, frame))
  const stream = edge.streams?.open({ purpose: 'request' })
  let came = 0
  stream?.on('data', (bytes: Buffer) => {
    came += bytes.length
  })
  stream?.end('hello')
  await world.until(() => came > 0)
  await world.settle()
  assert.ok(came <= sessionLimits.bulkBytesMin, `${came} bytes came`)
  edge.send = send
  for (const frame of said) edge.send(frame)
  for (let at = 0; at < 50 && came < 400_000; at++) await world.pass(100)
  assert.equal(came, 400_000)
})
