/** Two ends that hold to the rules, with frames under way between them for any time: whatever they do, in whatever order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstSeed, lives } from '../base/lives.test-support.ts'
import type { CarriedFrame } from './frames.ts'
import { standardTunnelLimits, type TunnelLimits } from './limits.ts'
import type { TunnelStream } from './stream.ts'
import { Tunnel, type TunnelSide } from './tunnel.ts'

const limits: TunnelLimits = {
  ...standardTunnelLimits,
  ...{ streamsMax: 3, windowBytes: 64, windowBytesMax: 256, grownBytesMax: 300, credentialsMax: 2, contextBytes: 150 },
}
/** What a side may hold unread at most. */
const unreadMax = 2 * limits.streamsMax * limits.windowBytes + limits.grownBytesMax

/** A stream as one end sees it. */
type Seen = {
  readonly stream: TunnelStream
  /** The far end's view of the same stream, once it was opened there. */
  far?: Seen
  token?: string | undefined
  written: number
  read: number
  held: Buffer[]
  received: Buffer[]
  hasEnded: boolean
  isReset: boolean
}

class End {
  readonly tunnel: Tunnel
  readonly seen: Seen[] = []
  readonly byStream = new Map<TunnelStream, Seen>()
  /** On their way to this end. */
  readonly coming: CarriedFrame[] = []

  constructor(side: TunnelSide) {
    this.tunnel = new Tunnel({ side, limits })
  }

  see(stream: TunnelStream): Seen {
    const seen: Seen = {
      ...{ stream, written: 0, read: 0, held: [], received: [], hasEnded: false, isReset: false },
    }
    this.seen.push(seen)
    this.byStream.set(stream, seen)
    return seen
  }

  /** The streams that it opened, as the frames that open them come. */
  opened = 0
}

const operations = ['open', 'write', 'end', 'reset', 'read', 'take', 'control', 'deliver'] as const
/** Each is done by one end; `which` chooses a stream, a size or how often. */
const step = fc.record({
  // Frames have to get through more often than streams begin and end.
  operation: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...operations) },
    { weight: 4, arbitrary: fc.constantFrom<(typeof operations)[number]>('write', 'read', 'take', 'deliver') },
  ),
  isEdge: fc.boolean(),
  which: fc.nat(20),
  size: fc.oneof(fc.nat(20), fc.nat(500)),
})

/** What a stream sends in one direction: bytes that tell where they stand. */
function pattern(from: number, length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, at) => (from + at) % 251))
}

/** Some are like others, of one caller or of another. */
function likeness(which: number): TunnelStream['context'] {
  if (which % 4 === 0) return undefined
  return {
    caller: `caller ${which % 2}`,
    subject: `subject ${which % 3}`,
    headBytes: which % 10,
    isWhole: which % 5 !== 0,
  }
}

class Pair {
  readonly edge = new End('edge')
  readonly hub = new End('hub')
  unreadPeak = 0
  packed = 0

  far(end: End): End {
    return end === this.edge ? this.hub : this.edge
  }

  do({ operation, isEdge, which, size }: { operation: string; isEdge: boolean; which: number; size: number }): void {
    const end = isEdge ? this.edge : this.hub
    const seen = end.seen[which % Math.max(1, end.seen.length)]
    if (operation === 'open') {
      const token = which % 2 === 0 ? undefined : `token-${which % 5}`
      const stream = end.tunnel.open({ purpose: 'test', token })
      if (stream !== undefined) {
        end.see(stream).token = token
        stream.context = likeness(which)
      }
    } else if (operation === 'take' || operation === 'control') this.take(end, operation === 'take', 1 + (size % 4))
    else if (operation === 'deliver') this.deliver(end, 1 + (size % 4))
    else if (seen !== undefined) this.use(end, seen, operation, size)
    this.check()
  }

  use(end: End, seen: Seen, operation: string, size: number): void {
    const { stream } = seen
    if (operation === 'write' && stream.isWritable && stream.waitingBytes === 0) {
      end.tunnel.write(stream, pattern(seen.written, size))
      seen.written += size
    } else if (operation === 'end') end.tunnel.end(stream)
    else if (operation === 'reset') {
      // One that is over only loses what was not read.
      if (stream.state !== 'over' || seen.held.length > 0) seen.isReset = true
      seen.held = []
      end.tunnel.reset(stream, 'cancelled', 'enough')
    } else if (operation === 'read') this.read(end, seen, size)
  }

  read(end: End, seen: Seen, most: number): void {
    let bytes = 0
    for (let next = seen.held[0]; next !== undefined && bytes + next.length <= most; next = seen.held[0]) {
      bytes += next.length
      seen.received.push(next)
      seen.held.shift()
    }
    if (bytes > 0) end.tunnel.read(seen.stream, bytes)
  }

  take(end: End, isBulkTaken: boolean, times: number): void {
    for (let at = 0; at < times; at++) {
      const taken = end.tunnel.next(isBulkTaken)
      if (taken === undefined) return
      this.far(end).coming.push(taken.frame)
      if (taken.frame.type === 0x87) this.packed++
    }
  }

  deliver(end: End, times: number): void {
    for (let at = 0; at < times; at++) {
      const frame = end.coming.shift()
      if (frame === undefined) return
      for (const effect of end.tunnel.receive(frame)) {
        const seen = effect.type === 'opened' ? this.opened(end, effect.stream) : end.byStream.get(effect.stream)
        assert.ok(seen)
        if (effect.type === 'opened') assert.equal(effect.credential.token?.tell(), seen.far?.token)
        else if (effect.type === 'data') seen.held.push(effect.bytes)
        else if (effect.type === 'ended') seen.hasEnded = true
        else {
          seen.isReset = true
          seen.held = []
        }
      }
    }
  }

  opened(end: End, stream: TunnelStream): Seen {
    const seen = end.see(stream)
    stream.context = likeness(stream.number)
    const far = this.far(end).seen.find(({ stream: { number, isOwn } }) => isOwn && number === stream.number)
    assert.ok(far, 'what comes was sent')
    seen.far = far
    far.far = seen
    return seen
  }

  check(): void {
    for (const end of [this.edge, this.hub]) {
      let unread = 0
      for (const { stream, held } of end.seen) {
        assert.ok(stream.credit >= 0 && stream.granted >= 0 && stream.unread >= 0)
        if (stream.window > 0) assert.ok(stream.granted + stream.unread <= stream.window)
        assert.equal(
          stream.unread,
          held.reduce((sum, { length }) => sum + length, 0),
        )
        unread += stream.unread
      }
      this.unreadPeak = Math.max(this.unreadPeak, unread)
      assert.ok(unread <= unreadMax, `${unread} bytes are held`)
      // Its own, the other side's that it took, and those that it refused and whose answer is to come.
      assert.ok(end.tunnel.figures().streams <= 3 * limits.streamsMax)
      assert.ok(end.tunnel.figures().grown <= limits.grownBytesMax)
    }
  }

  /** Everything is ended, read and delivered. */
  settle(): void {
    for (let round = 0; round < 1_000; round++) {
      let isQuiet = true
      for (const end of [this.edge, this.hub]) {
        for (const seen of end.seen) {
          this.read(end, seen, Number.POSITIVE_INFINITY)
          end.tunnel.end(seen.stream)
        }
        if (end.tunnel.isWaiting(true) || end.coming.length > 0) isQuiet = false
        this.take(end, true, 10)
        this.deliver(end, 10)
      }
      this.check()
      if (isQuiet) return
    }
    assert.fail('it never comes to an end')
  }
}

test('[L16, L17, L25] bytes arrive whole, in order and once, whatever two ends do and however late frames come', () => {
  let [ended, reset, peak, packed] = [0, 0, 0, 0]
  fc.assert(
    fc.property(fc.array(step, { minLength: 50, maxLength: 200, size: 'max' }), (steps) => {
      const pair = new Pair()
      for (const end of [pair.edge, pair.hub]) pair.take(end, true, 1)
      for (const one of steps) pair.do(one)
      pair.settle()
      peak = Math.max(peak, pair.unreadPeak)
      packed += pair.packed
      for (const end of [pair.edge, pair.hub])
        for (const seen of end.seen) {
          assert.equal(seen.stream.state, 'over')
          const { far } = seen
          if (far === undefined) {
            // It was given up before the other side could hear of it.
            assert.ok(seen.isReset)
            continue
          }
          const received = Buffer.concat(seen.received)
          assert.deepEqual(received, pattern(0, received.length), 'in order, once')
          if (seen.isReset || far.isReset) {
            assert.ok(received.length <= far.written)
            reset++
          } else {
            assert.equal(received.length, far.written, 'whole')
            assert.equal(seen.hasEnded, true)
            ended++
          }
        }
      for (const { tunnel } of [pair.edge, pair.hub]) {
        assert.deepEqual(tunnel.figures(), { streams: 0, grown: 0 })
        assert.equal(tunnel.next(true), undefined)
      }
    }),
    { seed: firstSeed, numRuns: lives(1_000) },
  )
  assert.ok(packed > 0, 'some travel as a difference')
  assert.ok(ended > 0 && reset > 0, `${ended} directions ended, ${reset} were reset, ${peak} bytes were held at most`)
})

test('[L17] a stream whose reader sleeps delays no other stream', () => {
  const pair = new Pair()
  for (const end of [pair.edge, pair.hub]) pair.take(end, true, 1)
  for (const end of [pair.edge, pair.hub]) pair.deliver(end, 1)
  const [asleep, awake] = [1, 2].map(() => pair.edge.see(pair.edge.tunnel.open({ purpose: 'test' }) as TunnelStream))
  const size = 10_000
  for (const seen of [asleep, awake]) pair.use(pair.edge, seen as Seen, 'write', size)
  let rounds = 0
  for (; (awake?.far?.received ?? []).reduce((sum, { length }) => sum + length, 0) < size; rounds++) {
    pair.take(pair.edge, true, 10)
    pair.deliver(pair.hub, 10)
    if (awake?.far !== undefined) pair.read(pair.hub, awake.far, Number.POSITIVE_INFINITY)
    pair.take(pair.hub, true, 10)
    pair.deliver(pair.edge, 10)
    pair.check()
    assert.ok(rounds < 60, 'at the speed of a window in each trip')
  }
  assert.equal(asleep?.far?.stream.unread, limits.windowBytes)
})
