import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { seeded } from '../base/seeded.test-support.ts'
import { askOf, isDoubtful, next, WayBack, type WayInput, type WayState } from './wayback.ts'

const states: readonly WayState[] = [
  'empty',
  'unsure',
  'doubted',
  'sure',
  'unsure, to compare',
  'doubted, to compare',
  'sure, to compare',
  'lost',
  'live',
]
const inputs: readonly WayInput[] = [
  'verified',
  'lost',
  'live',
  'over',
  'listed',
  'expired',
  'broken',
  'differs',
  'doubt',
  'unfed',
]

/** Every transition: state, input, what comes of it. */
const transitions = states.flatMap((state) =>
  inputs.map((input) => {
    const [to, effect] = next(state, input)
    return { state, input, to, effect, ask: askOf(to), says: `${state} × ${input} → ${to}` }
  }),
)
const held = transitions.filter(({ state }) => state !== 'empty')

test('[A1] nothing is held until it was read, and then it is followed', () => {
  for (const { state, input, to, says } of transitions)
    if (to === 'empty') assert.ok(state === 'empty' && input !== 'listed', says)
  assert.deepEqual(askOf('empty'), { start: 'anew', check: false })
})

test('[A3] a lost past stays lost until everything was read anew, and clients do not read it meanwhile', () => {
  for (const { input, to, ask, says } of held.filter(({ state }) => state === 'lost')) {
    assert.equal(to, input === 'listed' ? 'sure' : 'lost', says)
    if (to === 'lost') assert.deepEqual(ask, { start: 'anew', check: false }, says)
  }
  for (const { input, to, says } of held) if (input === 'lost') assert.equal(to, 'lost', says)
})

test('[A3] after any outage the past is asked about before the copy goes on', () => {
  for (const { input, to, ask, says } of held) if (input === 'broken') assert.ok(ask.check || to === 'lost', says)
})

test('[A3] what the API server has forgotten, or what differs, is compared and never skipped', () => {
  for (const { input, ask, says } of held)
    if (input === 'expired' || input === 'differs') assert.notEqual(ask.start, 'resume', says)
  for (const { state, input, ask, says } of held)
    if (askOf(state).start === 'compare' && input !== 'listed') assert.notEqual(ask.start, 'resume', says)
})

test('a doubt is cleared by the cloud alone, one that another interest raised by a comparison alone', () => {
  for (const { state, input, to, says } of held) {
    if (!isDoubtful(state) || isDoubtful(to)) continue
    const clears: readonly WayInput[] = state === 'doubted' ? ['verified', 'listed', 'live'] : ['listed']
    assert.ok(clears.includes(input), says)
  }
  for (const { state, input, to, says } of held)
    if (input === 'doubt') assert.ok(state === 'lost' || to === 'doubted, to compare', says)
})

test('clients are let in exactly where the cloud has just spoken for the copy', () => {
  for (const { input, to, effect, says } of transitions) {
    const spoken = (input === 'verified' || input === 'listed') && to !== 'empty' && !isDoubtful(to)
    assert.equal(effect === 'trust', spoken, says)
    if (effect === 'again') assert.ok(input === 'doubt' || input === 'differs', says)
  }
})

test('since when a copy is in doubt is the moment of the first doubt', () => {
  const clock = fakeClock()
  const way = new WayBack({ clock, isHeld: true })
  way.take('unfed')
  const sinceMs = clock.steady()
  clock.advance(1_000)
  way.take('doubt')
  way.take('broken')
  assert.equal(way.doubtedAtMs, sinceMs)
  way.take('listed')
  assert.equal(way.doubtedAtMs, undefined)
})

const firstSeed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 1e9))
const runs = Number(process.env.AKE_SEEDS ?? 2_000)

/** A copy and a cluster of which only the past and the versions matter; the line between them breaks anywhere. */
function simulate(seed: number): void {
  const random = seeded(seed)
  const cluster = { past: 0, version: 10, forgotten: 0 }
  let copy: { past: number; version: number } | undefined
  const way = new WayBack({ clock: fakeClock(), isHeld: false })
  const story: string[] = []
  const take = (input: WayInput) => {
    way.take(input)
    story.push(`${input}→${way.state}`)
  }
  /** One call of `follow`; `breaks` after so many steps. */
  const follow = (breaks: number) => {
    const { start, check } = askOf(way.state)
    let left = breaks
    const broken = () => left-- === 0
    if (broken()) return take('broken')
    if (copy !== undefined && check) {
      if (copy.past !== cluster.past) return take('lost')
      take('verified')
      if (broken()) return take('broken')
    }
    if (copy === undefined || start === 'anew') {
      copy = { ...cluster }
      take('listed')
    } else if (start === 'compare') {
      if (copy.past !== cluster.past) return take('lost')
      copy.version = cluster.version
      take('listed')
    } else if (copy.version < cluster.forgotten) return take('expired')
    if (broken()) return take('broken')
    take('live')
    assert.equal(copy.past, cluster.past, 'the copy goes on in a past that is lost')
    assert.ok(copy.version >= cluster.forgotten, 'the copy has skipped something')
    copy.version = cluster.version
  }
  const act = () => {
    const what = random(8)
    cluster.version += random(5)
    if (way.state === 'live' && copy !== undefined) copy.version = cluster.version
    if (what === 0) cluster.forgotten = cluster.version
    else if (what === 1) take('doubt')
    else if (what === 2) take('differs')
    else if (what === 3) take(way.state === 'live' ? 'over' : 'unfed')
    else if (what === 4) {
      cluster.past++
      cluster.version += random(20) - 10
      cluster.forgotten = Math.min(cluster.forgotten, cluster.version)
      take('broken')
    } else if (what === 5) take('broken')
  }
  try {
    for (let step = 0; step < 40; step++) {
      act()
      if (way.state !== 'live') follow(random(6))
    }
    for (let attempts = 0; way.state !== 'live'; attempts++) {
      assert.ok(attempts < 4, 'it never gets there')
      follow(-1)
    }
    assert.equal(copy?.past, cluster.past)
  } catch (error) {
    throw new Error(`AKE_SEED=${seed} AKE_SEEDS=1: ${(error as Error).message}\n${story.slice(-12).join(' ')}`)
  }
}

test(`[A2] [A3] ${runs} random ways back: a copy goes on only in the past it is of, skips nothing, and always gets there`, () => {
  for (let run = 0; run < runs; run++) simulate(firstSeed + run)
})
