import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { LinkFault } from '../link/frames/bytes.ts'
import type { TunnelEffect } from './effects.ts'
import { decodeTunnelFrame, type TunnelFrame } from './frames.ts'
import { pieceBytesMax } from './limits.ts'
import { begin, begun, give, limits, none, sides, some, takeAll } from './oneend.test-support.ts'
import type { StreamState, TunnelStream } from './stream.ts'
import { Tunnel, type TunnelSide } from './tunnel.ts'

/** As bare as it is told in the table. */
function told(effects: readonly TunnelEffect[]): string[] {
  return effects.map(({ type }) => type)
}

type Case = StreamState | 'resetting, ended' | 'resetting, unsent' | 'never'

/** A stream of either side in each state. */
function inState(
  side: TunnelSide,
  isOwn: boolean,
  state: Case,
): { tunnel: Tunnel; number: number; stream?: TunnelStream } {
  const tunnel = begun(side)
  const number = isOwn === (side === 'edge') ? 1 : 2
  if (state === 'never') return { tunnel, number }
  let stream: TunnelStream
  if (isOwn) {
    stream = tunnel.open({ purpose: 'test' }) as TunnelStream
    takeAll(tunnel)
  } else {
    const [opened] = give(tunnel, {
      kind: 'open',
      stream: number,
      purpose: 'test',
      credential: 0,
      last: 0,
      bytes: none,
    })
    stream = opened?.stream as TunnelStream
  }
  if (state === 'ended' || state === 'over' || state === 'resetting, ended') tunnel.end(stream)
  takeAll(tunnel)
  if (state === 'heard' || state === 'over') give(tunnel, { kind: 'end', stream: number, bytes: none })
  if (state.startsWith('resetting')) tunnel.reset(stream, 'cancelled', 'enough')
  if (state === 'answering') give(tunnel, { kind: 'reset', stream: number, reason: 'cancelled', sentence: 'enough' })
  else if (state !== 'resetting, unsent') takeAll(tunnel)
  assert.equal(stream.state, state.split(',')[0])
  return { tunnel, number, stream }
}

/**
 * What a frame does to a stream: what its owner is told, the state it is in then, and what is sent at once. Everything that is
 * not possible between two sides that hold to the rules closes the link.
 */
type Outcome = 'fault' | { readonly told?: readonly string[]; readonly state: StreamState; readonly sent?: string }
const ignored = (state: StreamState): Outcome => ({ state })
const table: Record<Exclude<Case, 'waiting'>, Record<'data' | 'end' | 'reset' | 'credit', Outcome>> = {
  never: { data: 'fault', end: 'fault', reset: 'fault', credit: 'fault' },
  open: {
    data: { told: ['data'], state: 'open' },
    end: { told: ['data', 'ended'], state: 'heard' },
    reset: { told: ['reset'], state: 'over', sent: 'reset' },
    credit: ignored('open'),
  },
  ended: {
    data: { told: ['data'], state: 'ended' },
    end: { told: ['data', 'ended'], state: 'over' },
    reset: { told: ['reset'], state: 'over', sent: 'reset' },
    credit: ignored('ended'),
  },
  heard: {
    data: 'fault',
    end: 'fault',
    reset: { told: ['reset'], state: 'over', sent: 'reset' },
    credit: ignored('heard'),
  },
  // What crossed our reset.
  resetting: {
    data: ignored('resetting'),
    end: ignored('resetting'),
    reset: ignored('over'),
    credit: ignored('resetting'),
  },
  // The other side had both ends before our reset came, and does not answer it.
  'resetting, ended': {
    data: ignored('resetting'),
    end: ignored('over'),
    reset: ignored('over'),
    credit: ignored('resetting'),
  },
  // The other side waits for ours as for an answer.
  'resetting, unsent': {
    data: { state: 'resetting', sent: 'reset' },
    end: { state: 'resetting', sent: 'reset' },
    reset: { state: 'over', sent: 'reset' },
    credit: { state: 'resetting', sent: 'reset' },
  },
  answering: {
    data: 'fault',
    end: 'fault',
    reset: { state: 'over', sent: 'reset' },
    credit: { state: 'over', sent: 'reset' },
  },
  // A credit or a reset may have crossed the last end.
  over: { data: 'fault', end: 'fault', reset: ignored('over'), credit: ignored('over') },
}

test('[L16] every frame in every state of a stream, of either side, has the outcome of the table', () => {
  for (const side of sides)
    for (const isOwn of [true, false])
      for (const [state, outcomes] of Object.entries(table) as [Case, (typeof table)['open']][])
        for (const [kind, outcome] of Object.entries(outcomes)) {
          const { tunnel, number, stream: found } = inState(side, isOwn, state)
          const stream = { stream: number }
          const frames: Record<string, TunnelFrame> = {
            data: { kind: 'data', ...stream, bytes: some },
            end: { kind: 'end', ...stream, bytes: some },
            reset: { kind: 'reset', ...stream, reason: 'broken', sentence: 'why' },
            credit: { kind: 'credit', ...stream, bytes: 10 },
          }
          const where = `${kind} at ${side} in ${state} of ${isOwn ? 'its own' : 'the other'}`
          const frame = frames[kind] as TunnelFrame
          if (outcome === 'fault') {
            assert.throws(() => give(tunnel, frame), LinkFault, where)
            continue
          }
          assert.deepEqual(told(give(tunnel, frame)), outcome.told ?? [], where)
          assert.deepEqual(
            takeAll(tunnel).map(({ kind }) => kind),
            outcome.sent === undefined ? [] : [outcome.sent],
            where,
          )
          assert.equal(found?.state, outcome.state, where)
          const isOver = outcome.state === 'over'
          assert.equal(tunnel.figures().streams, isOver && !outcome.told?.includes('data') ? 0 : 1, where)
        }
})

test('[L16] frames about no stream: begin comes first and once, numbers go up one by one', () => {
  for (const side of sides) {
    const open = (stream: number): TunnelFrame => ({
      ...{ kind: 'open', stream, purpose: 'test', credential: 0, last: 1, bytes: some },
    })
    const first = side === 'edge' ? 2 : 1
    const early = new Tunnel({ side, limits })
    assert.throws(() => give(early, open(first)), /before begin/)
    assert.throws(() => give(begun(side), begin), /begin twice/)
    for (const wrong of [0, first + 1, first + 2, 3 - first])
      assert.throws(() => give(begun(side), open(wrong)), LinkFault)
    const tunnel = begun(side)
    assert.deepEqual(told(give(tunnel, open(first))), ['opened', 'data', 'ended'])
    assert.throws(() => give(tunnel, open(first)), LinkFault)
    assert.deepEqual(told(give(begun(side), open(first))), ['opened', 'data', 'ended'])
    const streamless: TunnelFrame = { kind: 'credit', stream: 0, bytes: 1 }
    assert.throws(() => give(begun(side), streamless), /never opened/)
  }
})

test('[L16] nothing is opened before the other side has begun, and what was given up by then is never heard of', () => {
  const tunnel = new Tunnel({ side: 'edge', limits })
  const first = tunnel.open({ purpose: 'test' }) as TunnelStream
  const second = tunnel.open({ purpose: 'test' }) as TunnelStream
  tunnel.write(second, some)
  tunnel.end(second)
  assert.deepEqual(
    takeAll(tunnel).map(({ kind }) => kind),
    ['begin'],
  )
  tunnel.reset(first, 'cancelled', '')
  assert.equal(first.isSent, false)
  give(tunnel, begin)
  assert.deepEqual(takeAll(tunnel), [{ kind: 'open', stream: 1, purpose: 'test', credential: 0, last: 1, bytes: some }])
  assert.equal(second.isSent, true)
  assert.equal(second.state, 'ended')
})

test('[L17] more than the credit, a credit of nothing or without end, and data without a byte close the link', () => {
  const cases: TunnelFrame[] = [
    { kind: 'data', stream: 2, bytes: Buffer.alloc(101) },
    { kind: 'end', stream: 2, bytes: Buffer.alloc(101) },
    { kind: 'data', stream: 2, bytes: none },
    { kind: 'credit', stream: 2, bytes: 0 },
    { kind: 'credit', stream: 2, bytes: 64 << 20 },
  ]
  for (const frame of cases) assert.throws(() => give(inState('edge', false, 'open').tunnel, frame), LinkFault)
  const { tunnel } = inState('edge', false, 'resetting')
  give(tunnel, { kind: 'data', stream: 2, bytes: Buffer.alloc(100) })
  assert.throws(() => give(tunnel, { kind: 'data', stream: 2, bytes: some }), LinkFault)
})

test('[L17] a reader that keeps up is given more, out of what all streams share, and one that sleeps keeps what it has', () => {
  const tunnel = begun('hub', { ...limits, grownBytesMax: 500 })
  const streams = [1, 3, 5].map((stream) => {
    const [opened] = give(tunnel, { kind: 'open', stream, purpose: 'test', credential: 0, last: 0, bytes: none })
    return opened?.stream as TunnelStream
  })
  const windows = () => streams.map(({ window }) => window)
  const pass = (stream: TunnelStream) => {
    const bytes = Buffer.alloc(stream.granted)
    give(tunnel, { kind: 'data', stream: stream.number, bytes })
    tunnel.read(stream, bytes.length)
    takeAll(tunnel)
  }
  const [first, second, third] = streams as [TunnelStream, TunnelStream, TunnelStream]
  for (let round = 0; round < 5; round++) pass(first)
  assert.deepEqual(windows(), [400, 100, 100])
  for (let round = 0; round < 5; round++) pass(second)
  assert.deepEqual(windows(), [400, 300, 100])
  give(tunnel, { kind: 'data', stream: 1, bytes: Buffer.alloc(400) })
  for (let round = 0; round < 5; round++) pass(third)
  assert.deepEqual(windows(), [400, 300, 100], 'it goes on with what it had from its beginning')
  assert.equal(tunnel.figures().grown, 500)
  tunnel.reset(first, 'cancelled', '')
  takeAll(tunnel)
  give(tunnel, { kind: 'reset', stream: 1, reason: 'cancelled', sentence: '' })
  assert.equal(tunnel.figures().grown, 200)
})

test('[L17] credits go out for half a window and not for every byte', () => {
  const { tunnel } = inState('edge', false, 'open')
  const [effect] = give(tunnel, { kind: 'data', stream: 2, bytes: Buffer.alloc(90) })
  const stream = effect?.stream as TunnelStream
  for (let at = 0; at < 49; at++) tunnel.read(stream, 1)
  assert.deepEqual(takeAll(tunnel), [])
  tunnel.read(stream, 1)
  assert.deepEqual(takeAll(tunnel), [{ kind: 'credit', stream: 2, bytes: 50 }])
})

test('[L17] more streams than allowed close the link; what is over and unread makes the next one wait', () => {
  const tunnel = begun('hub')
  const open = (stream: number, last = 1): TunnelFrame => ({
    ...{ kind: 'open', stream, purpose: 'test', credential: 0, last, bytes: some },
  })
  const opened = [1, 3, 5].map((number) => give(tunnel, open(number))[0]?.stream as TunnelStream)
  for (const stream of opened) tunnel.end(stream)
  takeAll(tunnel)
  assert.deepEqual(told(give(tunnel, open(7))), ['opened', 'data', 'ended'], 'three are over, and not read')
  assert.deepEqual(give(tunnel, open(9)), [])
  assert.deepEqual(takeAll(tunnel), [
    { kind: 'reset', stream: 9, reason: 'busy', sentence: 'too many streams are not read' },
  ])
  give(tunnel, { kind: 'reset', stream: 9, reason: 'cancelled', sentence: '' })
  tunnel.read(opened[0] as TunnelStream, some.length)
  assert.deepEqual(told(give(tunnel, open(11))), ['opened', 'data', 'ended'])
  // Now with all of them alive.
  const full = begun('hub')
  for (const number of [1, 3, 5, 7]) give(full, open(number, 0))
  assert.throws(() => give(full, open(9)), /more than 4 streams/)
  // Resets do not make room before their answer was sent: a side that opens and resets without waiting is cut.
  const rapid = begun('hub')
  for (const number of [1, 3, 5, 7]) {
    give(rapid, open(number, 0))
    give(rapid, { kind: 'reset', stream: number, reason: 'cancelled', sentence: '' })
  }
  assert.throws(() => give(rapid, open(9)), /more than 4 streams/)
})

test('[L17] a side opens no more streams than either allows', () => {
  const tunnel = begun('edge', { ...limits, streamsMax: 2 })
  assert.ok(tunnel.open({ purpose: 'test' }) && tunnel.open({ purpose: 'test' }))
  assert.equal(tunnel.open({ purpose: 'test' }), undefined)
  const fewer = new Tunnel({ side: 'edge', limits })
  const streams = [1, 2, 3].map(() => fewer.open({ purpose: 'test' }) as TunnelStream)
  takeAll(fewer)
  give(fewer, { ...begin, streams: 2 })
  assert.equal(fewer.open({ purpose: 'test' }), undefined)
  assert.equal(takeAll(fewer).length, 2)
  fewer.end(streams[0] as TunnelStream)
  takeAll(fewer)
  give(fewer, { kind: 'end', stream: 1, bytes: none })
  assert.deepEqual(
    takeAll(fewer).map(({ kind }) => kind),
    ['open'],
  )
})

test('[L18] streams take turns, a frame of at most 16 KiB each, behind what controls them and what is new', () => {
  const wide = { ...limits, windowBytes: 1 << 20, windowBytesMax: 1 << 20 }
  const tunnel = new Tunnel({ side: 'edge', limits: wide })
  takeAll(tunnel)
  give(tunnel, { ...begin, window: 1 << 20 })
  const [a, b, c] = [1, 2, 3].map(() => tunnel.open({ purpose: 'test' }) as TunnelStream) as [
    TunnelStream,
    TunnelStream,
    TunnelStream,
  ]
  takeAll(tunnel)
  tunnel.write(a, Buffer.alloc(3 * pieceBytesMax))
  tunnel.write(b, Buffer.alloc(pieceBytesMax + 1))
  tunnel.end(b)
  tunnel.open({ purpose: 'new' })
  tunnel.reset(c, 'cancelled', '')
  assert.deepEqual(
    takeAll(tunnel, false).map(({ kind }) => kind),
    ['reset'],
  )
  const order = takeAll(tunnel).map((frame) => {
    const { kind, stream, bytes } = frame as TunnelFrame & { kind: 'data' }
    return [kind, stream, bytes.length]
  })
  assert.deepEqual(order, [
    ['open', 7, 0],
    ['data', 1, pieceBytesMax],
    ['data', 3, pieceBytesMax],
    ['data', 1, pieceBytesMax],
    ['end', 3, 1],
    ['data', 1, pieceBytesMax],
  ])
})

test('[L19] a token is sent once in a link, then by number; the one not used for longest is replaced', () => {
  const tunnel = begun('edge')
  const far = begun('hub', { ...limits, credentialsMax: 2 })
  let frames: string[] = []
  const ask = (token: string) => {
    const stream = tunnel.open({ purpose: 'test', token }) as TunnelStream
    tunnel.end(stream)
    frames = []
    let seen: string | undefined
    for (let taken = tunnel.next(true); taken !== undefined; taken = tunnel.next(true)) {
      frames.push(decodeTunnelFrame(taken.frame)?.kind as string)
      for (const effect of far.receive(taken.frame)) {
        if (effect.type === 'opened') seen = effect.credential.token?.tell()
        far.end(effect.stream)
      }
    }
    for (let taken = far.next(true); taken !== undefined; taken = far.next(true)) tunnel.receive(taken.frame)
    return seen
  }
  for (const token of ['one', 'two']) {
    assert.equal(ask(token), token)
    assert.deepEqual(frames, ['credential', 'open'])
  }
  assert.equal(ask('one'), 'one')
  assert.deepEqual(frames, ['open'])
  for (const [token, isSent] of [
    ['three', true],
    ['one', false],
    ['two', true],
    ['three', true],
  ] as const) {
    assert.equal(ask(token), token)
    assert.deepEqual(frames, isSent ? ['credential', 'open'] : ['open'], token)
  }
})

test('[L19] an unknown number, a number beyond the limit and what no header can carry close the link', () => {
  const bad: TunnelFrame[] = [
    { kind: 'open', stream: 1, purpose: 'test', credential: 1, last: 0, bytes: none },
    { kind: 'credential', number: 64, token: 'abc', is: 'token' },
    { kind: 'credential', number: 0, token: 'abc\r\nx: y', is: 'token' },
    { kind: 'credential', number: 0, token: '', is: 'token' },
    { kind: 'credential', number: 0, token: 'abc+', is: 'certificate' },
    { kind: 'credential', number: 0, token: 'a.b.c.d.e', is: 'certificate' },
  ]
  for (const frame of bad) assert.throws(() => give(begun('hub'), frame), LinkFault)
  assert.throws(() => begun('edge').open({ purpose: 'test', token: 'a b' }), LinkFault)
})

test('[L13, L26] a certificate is shown to who says that it takes them, and never taken for a token', () => {
  const opened = { purpose: 'test', certificate: 'YWJj.ZGVm' }
  const older = begun('edge')
  assert.equal(older.takesCertificates, false)
  assert.throws(() => older.open(opened), LinkFault)
  const tunnel = begun('edge', limits, { ...begin, certificates: 1 })
  assert.throws(() => tunnel.open({ purpose: 'test', certificate: 'not/one' }), LinkFault)
  const far = begun('hub')
  tunnel.open(opened)
  tunnel.open({ purpose: 'test', token: 'YWJj.ZGVm' })
  const credentials: unknown[] = []
  for (let taken = tunnel.next(true); taken !== undefined; taken = tunnel.next(true))
    for (const effect of far.receive(taken.frame))
      if (effect.type === 'opened')
        credentials.push([
          effect.credential.token?.tell(),
          effect.credential.certificate?.chain.map((one) => one.toString()),
        ])
  assert.deepEqual(credentials, [
    [undefined, ['abc', 'def']],
    ['YWJj.ZGVm', undefined],
  ])
  // A kind of a later release stands for no caller.
  give(far, { kind: 'credential', number: 1, token: '?', is: 'other' })
  const [effect] = give(far, { kind: 'open', stream: 5, purpose: 'test', credential: 2, last: 0, bytes: none })
  assert.ok(effect?.type === 'opened')
  assert.deepEqual(effect.credential, { token: undefined, certificate: undefined })
})

test('[L19, I4] nothing that holds a token prints it', () => {
  const tunnel = begun('edge')
  const far = begun('hub')
  tunnel.open({ purpose: 'test', token: 'very-secret' })
  const effects: TunnelEffect[] = []
  for (let taken = tunnel.next(true); taken !== undefined; taken = tunnel.next(true))
    effects.push(...far.receive(taken.frame))
  assert.equal(effects.length, 1)
  const printed = inspect([tunnel, far, effects], { depth: 9, showHidden: true }) + JSON.stringify(effects)
  assert.doesNotMatch(printed, /very-secret/)
})
