/** What drives a link does with time, silence, wishes of its hub, and readers that are slow; over a line in memory and a clock of its own. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { createLog } from '../../base/log.ts'
import { until } from '../../base/until.test-support.ts'
import type { LinkFrame } from '../../link/frames/frames.ts'
import { known, scopeOf, settle } from '../../mirror/world.test-support.ts'
import { Expired, type Followed, type From, Refused, TooLarge } from '../follow/follow.ts'
import { Unreachable, type Upstream } from '../upstream.ts'
import { EdgeLink } from './edgelink.ts'
import { followLinked } from './followlinked.ts'
import { knownBy, MemoryLine, ModelHub } from './modelhub.test-support.ts'

const { plan, resource } = known('pods')
const interest = 'v1/pods'
const anew: From = { held: undefined, start: 'anew', check: false }

function open(
  parts: { name?: string; bytesMax?: number; admit?: () => Promise<string | undefined>; cluster?: string } = {},
) {
  const clock = fakeClock()
  const hub = new ModelHub({ clock, interest })
  const told: string[] = []
  const lines: MemoryLine[] = []
  const events: string[] = []
  const state = { isThere: true, version: 10 }
  const connect = async (signal: AbortSignal) => {
    while (!state.isThere && !signal.aborted) await settle(1)
    if (parts.admit !== undefined) await new Promise((resolve) => void setTimeout(resolve, 2))
    if (signal.aborted) return undefined
    events.push('connect')
    const line = new MemoryLine('wss://hub')
    lines.push(line)
    hub.accept(line.hub)
    return line.edge
  }
  const hubs = {
    connect,
    beside: (signal: AbortSignal) => (state.isThere ? connect(signal) : Promise.resolve(undefined)),
    lived: () => void events.push('lived'),
    moveOn: () => void events.push('moveOn'),
    leaveAlone: (address: string, ms: number) => void events.push(`leave ${address} for ${ms}`),
    hurry: (address: string) => void events.push(`hurry ${address}`),
  }
  const log = createLog({ level: 'info', write: (line) => void told.push(line) })
  const epochs = new Map<string, number>()
  const { admit, cluster } = parts
  const own = {
    ...(admit === undefined ? {} : { admit }),
    ...(cluster === undefined ? {} : { known: () => ({ cluster, epoch: 1 }) }),
  }
  const link = new EdgeLink({
    hubs,
    edge: 'e1',
    release: '1',
    ...knownBy(epochs),
    ...own,
    clock,
    log,
    random: () => 0.5,
  })
  const ending = new AbortController()
  const running = link.run(ending.signal)
  const end = async () => {
    ending.abort()
    await running
  }
  const { follow } = followLinked({
    epochs: { of: (name) => epochs.get(name), reached: (name, epoch) => void epochs.set(name, epoch) },
    ...{
      link,
      clock,
      nameOf: () => parts.name ?? interest,
      limits: { objects: 999, bytes: parts.bytesMax ?? 1 << 20 },
    },
    upstream: { ask: () => Promise.reject(new Unreachable('none', false)) } as unknown as Upstream,
  })({ scope: scopeOf({}), custom: false, kind: resource.kind, plan: () => plan })
  return {
    ...{ clock, hub, link, lines, events, told, follow, state },
    put: (key: string, text: string) => {
      const version = ++state.version
      const [namespace, name] = key.split('/')
      const object = {
        metadata: { name, namespace, uid: `u-${key}`, resourceVersion: String(version) },
        spec: { text },
      }
      hub.change(key, { key, uid: `u-${key}`, version, bytes: Buffer.from(JSON.stringify(object)) }, version)
      return version
    },
    frames: (kind: LinkFrame['kind']) =>
      hub.ends.flatMap(({ frames }) => frames.filter((frame) => frame.kind === kind)),
    [Symbol.asyncDispose]: end,
    end,
  }
}

/** Takes one step at a time. */
async function kindsOf(steps: AsyncIterator<Followed>, count: number): Promise<string[]> {
  const kinds: string[] = []
  for (let at = 0; at < count; at++) kinds.push((await steps.next()).value?.kind ?? 'end')
  return kinds
}

test('[L4] it connects again after each end; only a hub that welcomes it ends the series of waits', async () => {
  await using it = open()
  const { link, lines, events, end } = it
  await settle(20)
  assert.notEqual(link.current, undefined)
  lines[0]?.cut('the line broke')
  await settle(4)
  assert.equal(link.current === undefined || lines.length === 2, true)
  await settle(20)
  assert.deepEqual(events, ['connect', 'lived', 'connect', 'lived'])
  await end()
  assert.equal(link.current, undefined)
})

test('[L3] a hub that falls silent on an idle link is given up 5 s after it was asked for a sign of life, and what is followed hears it', async () => {
  await using it = open()
  const { link, hub, clock, follow, put, state } = it
  put('a/1', 'x')
  await settle(20)
  const steps = follow(anew, new AbortController().signal)[Symbol.asyncIterator]()
  assert.deepEqual(await kindsOf(steps, 3), ['snapshot', 'complete', 'live'])
  state.isThere = false
  for (const one of hub.ends) one.isStill = true
  const next = assert.rejects(steps.next(), Unreachable)
  clock.advance(30_000)
  await settle(2)
  assert.equal(hub.ends.length, 1)
  clock.advance(5_000)
  await next
  await settle(4)
  assert.deepEqual([link.current, link.why], [undefined, 'no sign of life'])
})

test('[L2] a position is acknowledged when the step that brought it is taken over, and not before', async () => {
  await using it = open()
  const { follow, put, frames } = it
  put('a/1', 'x')
  await settle(20)
  const steps = follow(anew, new AbortController().signal)[Symbol.asyncIterator]()
  await kindsOf(steps, 3)
  const positions = () => frames('acknowledge').map((frame) => (frame as { position: number }).position)
  put('a/1', 'y')
  await settle(20)
  const step = await steps.next()
  assert.equal(step.value?.kind, 'changes')
  await settle(20)
  assert.equal(Math.max(0, ...positions()), 0)
  put('a/1', 'z')
  assert.equal((await steps.next()).value?.kind, 'changes')
  await settle(20)
  assert.equal(Math.max(...positions()), 1)
  await steps.return?.()
  await settle(20)
  assert.equal(Math.max(...positions()), 2)
  assert.equal(frames('unsubscribe').length, 1)
})

test('[L7] a hub that asks its edges to move is left in the first half of its time, in order', async () => {
  await using it = open()
  const { hub, clock, follow, put, events, link } = it
  put('a/1', 'x')
  await settle(20)
  const steps = follow(anew, new AbortController().signal)[Symbol.asyncIterator]()
  await kindsOf(steps, 3)
  hub.drain(10_000)
  await settle(10)
  assert.deepEqual(events.slice(-1), ['moveOn'])
  assert.notEqual(link.current, undefined)
  clock.advance(2_500)
  assert.deepEqual(await kindsOf(steps, 2), ['over', 'end'])
  await settle(20)
  assert.deepEqual(events.slice(-2), ['connect', 'lived'])
})

test('[L8] what is no frame closes the link with its reason, and a hub that wants to be left alone is', async () => {
  await using it = open()
  const { lines, hub, events, told } = it
  await settle(20)
  lines[0]?.hub.send(Buffer.from([0x3f, 1]))
  await settle(20)
  assert.ok(told.some((line) => line.includes('link.ended') && line.includes('unknown type')))
  hub.ends[0]?.session.close({ reason: 'busy', retryAfterMs: 7_000, sentence: 'too much to do' })
  hub.ends[0]?.tick()
  await settle(20)
  assert.ok(events.includes('leave wss://hub for 7000'), events.join())
})

test('[A3] what came while a link was away is replayed over the next one; other bytes under a base are found and healed', async () => {
  await using it = open()
  const { follow, put, hub, lines } = it
  put('a/1', 'x')
  put('a/2', 'x')
  await settle(20)
  const first = await Array.fromAsync(takeUntil(follow(anew, new AbortController().signal), 'live'))
  const items = first.flatMap((step) => (step.kind === 'snapshot' ? step.items : []))
  const complete = first.find((step) => step.kind === 'complete')
  assert.ok(complete)
  lines.at(-1)?.cut()
  put('a/1', 'y')
  await settle(20)
  const held = {
    ...{ version: complete.version, plan, size: 2, bytes: 0, corrupt: [], isCorrupt: () => false, isDamaged: false },
    peek: (key: string) => items.find((item) => item.key === key),
    all: () => items,
  }
  const steps = follow({ held, start: 'resume', check: false }, new AbortController().signal)[Symbol.asyncIterator]()
  assert.deepEqual(await kindsOf(steps, 2), ['live', 'changes'])
  await steps.return?.()
  const wrong = items.map((item) => Object.create(item, { bytes: { value: Buffer.from(`${item.bytes} `) } }))
  const damaged = { ...held, peek: (key: string) => wrong.find((item) => item.key === key), all: () => wrong }
  const astray = follow({ held: damaged, start: 'resume', check: false }, new AbortController().signal)
  await assert.rejects(Array.fromAsync(astray), Expired)
  const healing = follow({ held: damaged, start: 'compare', check: false }, new AbortController().signal)
  const [difference] = await Array.fromAsync(takeUntil(healing, 'live'))
  assert.ok(difference?.kind === 'difference')
  assert.deepEqual(
    [difference.changed, difference.repaired].map((some) => some.map(({ key }) => key)),
    [['a/1'], ['a/2']],
  )
  assert.ok(hub.counts.sent > 0)
})

test('a refusal, and more than there is room for, are told as such', async () => {
  await using other = open({ name: 'v1/secrets' })
  await settle(20)
  await assert.rejects(Array.fromAsync(other.follow(anew, new AbortController().signal)), Refused)
  await using long = open({ name: `v1/pods?${'x'.repeat(5_000)}` })
  await settle(20)
  await assert.rejects(Array.fromAsync(long.follow(anew, new AbortController().signal)), TooLarge)
  await using small = open({ bytesMax: 100 })
  small.put('a/1', 'x'.repeat(200))
  await settle(20)
  await assert.rejects(Array.fromAsync(small.follow(anew, new AbortController().signal)), TooLarge)
})

test('[L1] a large first snapshot that is cut goes on over the next link where it ended', async () => {
  await using it = open({ bytesMax: 64 << 20 })
  const { follow, put, hub, lines } = it
  for (let at = 10; at < 30; at++) put(`a/${at}`, randomBytes(60_000).toString('base64'))
  await settle(20)
  // More than a block, and not all of it.
  if (lines[0] !== undefined) lines[0].framesMax = 80
  const cutting = follow(anew, new AbortController().signal)
  const reading = assert.rejects(Array.fromAsync(cutting), Unreachable)
  await reading
  await settle(20)
  const steps = await Array.fromAsync(takeUntil(follow(anew, new AbortController().signal), 'live'))
  const [subscribed] = hub.ends.flatMap(({ frames }) => frames.filter((frame) => frame.kind === 'subscribe'))
  assert.ok(subscribed?.kind === 'subscribe' && (subscribed.interests[0]?.after ?? '') !== '')
  assert.equal(steps.flatMap((step) => (step.kind === 'snapshot' ? step.items : [])).length, 20)
})

async function* takeUntil(steps: AsyncIterable<Followed>, kind: Followed['kind']): AsyncGenerator<Followed> {
  for await (const step of steps) {
    yield step
    if (step.kind === kind) return
  }
}

test('[L7] a hub of another cluster is asked which, and used only once that cluster is believed in', async (t) => {
  const state = { isBelieved: false, asked: 0 }
  const admit = () => {
    state.asked++
    return Promise.resolve(state.isBelieved ? undefined : 'another cluster answers')
  }
  const { link, events, told, end } = open({ admit, cluster: 'c0' })
  t.after(end)
  await until(() => state.asked > 0)
  // The first hub refuses the copy of another cluster; the next is asked by an edge that says nothing of its own.
  assert.ok(told[0]?.includes('this is the hub of cluster c1'), told.join('\n'))
  assert.equal(link.current, undefined)
  await until(() => events.includes('leave wss://hub for 10000'))
  await until(() => told.some((line) => line.includes('another cluster answers')))
  state.isBelieved = true
  link.reconsider()
  assert.equal(events.filter((event) => event === 'hurry wss://hub').length, 1, 'what it was left alone for is over')
  await until(() => link.current !== undefined)
  link.reconsider()
  assert.equal(
    events.filter((event) => event === 'hurry wss://hub').length,
    1,
    'a hub of the copy’s cluster was not left alone',
  )
})

test('[A6] how fresh a copy is, is asked of the hub: as of the question, less what the hub has not heard for, and behind what it had to tell', async () => {
  await using it = open()
  const { clock, hub, link, put, follow, end } = it
  put('a/1', 'x')
  await settle(20)
  const steps = follow(anew, new AbortController().signal)[Symbol.asyncIterator]()
  assert.deepEqual(await kindsOf(steps, 3), ['snapshot', 'complete', 'live'])
  clock.advance(8_000)
  const current = link.current
  assert.ok(current !== undefined && current.freshAt < clock.steady() - 5_000)
  await current.freshen(300)
  assert.equal(current.freshAt, clock.steady())
  hub.ageMs = 700
  clock.advance(8_000)
  await current.freshen(300)
  assert.equal(current.freshAt, clock.steady() - 700)
  // What the hub told before its answer is taken over first.
  put('a/1', 'y')
  let isFresh = false
  const asking = current.freshen(300).then(() => {
    isFresh = true
  })
  await settle(10)
  assert.equal(isFresh, false)
  const step = await steps.next()
  assert.equal(step.value?.kind, 'changes')
  const more = steps.next().catch(() => undefined)
  await asking
  // A hub that does not answer is waited for no longer than that.
  for (const one of hub.ends) one.isStill = true
  const late = current.freshen(300)
  await settle(5)
  clock.advance(400)
  await late
  await end()
  await more
})

test('[L5] what is asked for in one round of the loop is asked for in one frame', async () => {
  await using it = open()
  const { link, frames } = it
  await settle(20)
  const listener = { held: () => undefined, told: () => {}, changed: () => {}, broken: () => {} }
  const held = { epoch: 1, version: 0, wish: 'resume' } as const
  // Immediates of one round run in that round; timers of one length may not.
  for (let at = 0; at < 5; at++) setImmediate(() => link.current?.subscribe(`v1/pods@n${at}`, held, listener))
  await until(() => frames('subscribe').length > 0)
  await settle(20)
  const [frame, ...more] = frames('subscribe') as Extract<LinkFrame, { kind: 'subscribe' }>[]
  assert.deepEqual([frame?.interests.length, more.length], [5, 0])
})

test('[L4] a link is handed over to another without a moment in which there is none, and not while none comes about', async () => {
  await using it = open()
  const { clock, link, lines, state, events, told } = it
  await settle(20)
  const [before, gaps] = [link.current, [] as string[]]
  link.observe(() => void (link.current === undefined && gaps.push('none')))
  const { signal } = new AbortController()
  state.isThere = false
  assert.equal(await link.handOver(signal), false)
  assert.equal(link.current, before)
  state.isThere = true
  assert.equal(await link.handOver(signal), true)
  assert.equal(await link.handOver(signal), false, 'one at a time')
  await settle(20)
  clock.advance(100)
  await settle(20)
  assert.notEqual(link.current, before)
  assert.notEqual(link.current, undefined)
  assert.deepEqual(gaps, [])
  assert.equal(before?.isOpen, false)
  assert.match(told.join(''), /link\.ended .*another link is in its place/)
  assert.deepEqual(events, ['connect', 'lived', 'connect', 'lived'])
  // And again, however often a certificate is renewed.
  for (let at = 2; at < 5; at++) {
    const last = link.current
    assert.equal(await link.handOver(signal), true)
    await settle(20)
    clock.advance(100)
    await settle(20)
    assert.notEqual(link.current, last)
    assert.equal(last?.isOpen, false)
    assert.equal(lines.length, at + 1)
  }
  assert.deepEqual(gaps, [])
  lines[4]?.cut('the line broke')
  await settle(20)
  assert.equal(lines.length, 6, 'the life of the last is looked after as any')
})
