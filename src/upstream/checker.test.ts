import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { fakeClock } from '../base/fakeclock.test-support.ts'
import { silentLog } from '../base/log.ts'
import { Checker } from './checker.ts'
import type { Sign } from './judgement.ts'
import { answersWell } from './upstream.ts'

const good: Sign = { kind: 'probe answered', rttMs: 10 }
const silent: Sign = { kind: 'probe failed', why: 'silence', certain: false, alive: false }

function world(random = () => 1, every: { everyMs?: number; awayEveryMs?: number } = {}) {
  const clock = fakeClock()
  const probes: ((sign: Sign) => void)[] = []
  let note: string | undefined
  const checker = new Checker({
    probe: () => new Promise((resolve) => void probes.push(resolve)),
    everyMs: 5_000,
    ...every,
    clock,
    log: silentLog,
    limits: { suspectEveryMs: 1_000, hurryEveryMs: 500 },
    random,
    note: () => note,
  })
  const ending = new AbortController()
  const running = checker.run(ending.signal)
  const end = async () => {
    ending.abort()
    await running
    assert.equal(clock.pending(), 0, 'no timer is left')
  }
  return {
    clock,
    checker,
    asked: () => probes.length,
    answer: async (sign: Sign) => {
      probes.at(-1)?.(sign)
      await turn()
    },
    says: (text: string) => {
      note = text
    },
    end,
    [Symbol.asyncDispose]: end,
  }
}

test('it probes at the start, then every 5 s while all is well, every second while in doubt', async () => {
  await using it = world()
  const { clock, checker, asked, answer } = it
  assert.deepEqual([checker.state, checker.why, asked()], ['suspect', 'not asked yet', 1])
  await answer(good)
  clock.advance(4_999)
  assert.equal(asked(), 1)
  clock.advance(1)
  assert.equal(asked(), 2)
  await answer(silent)
  assert.equal(checker.state, 'suspect')
  clock.advance(1_000)
  assert.equal(asked(), 3)
  await answer(silent)
  assert.equal(checker.state, 'unreachable')
  clock.advance(5_000)
  assert.equal(asked(), 4)
})

test('an upstream that is seldom asked while it is there is asked more often while it is not', async () => {
  await using it = world(() => 1, { everyMs: 30_000, awayEveryMs: 5_000 })
  const { clock, checker, asked, answer } = it
  await answer(good)
  clock.advance(29_999)
  assert.equal(asked(), 1)
  clock.advance(1)
  await answer({ ...silent, certain: true })
  assert.equal(checker.state, 'unreachable')
  clock.advance(5_000)
  assert.equal(asked(), 3)
})

test('a read that hit its limit is heard at once, and so is the probe that it causes; never two at a time', async () => {
  await using it = world()
  const { checker, asked, answer } = it
  await answer(good)
  const seen: string[] = []
  const stop = checker.observe((state) => seen.push(state))
  checker.suspect('slow')
  checker.suspect('slow again')
  assert.deepEqual([checker.state, checker.why, asked()], ['suspect', 'slow', 2])
  await answer(good)
  assert.deepEqual(seen, ['suspect', 'reachable'])
  stop()
  checker.suspect('unheard')
  assert.equal(seen.length, 2)
})

test('[L4] a line on which everything fails while probes are answered is not probed as often as it fails', async () => {
  await using it = world()
  const { clock, checker, asked, answer } = it
  await answer(good)
  const before = asked()
  for (let step = 0; step < 600; step++) {
    checker.suspect('reset')
    checker.suspect('reset again')
    await answer(good)
    clock.advance(100)
    await answer(good)
  }
  assert.ok(asked() - before <= 125, `${asked() - before} probes in a minute`)
  assert.ok(asked() - before >= 50, `${asked() - before} probes in a minute`)
})

test('what a probe of an earlier credential finds does not count, and another one follows it at once', async () => {
  await using it = world()
  const { clock, checker, asked, answer } = it
  await answer(good)
  checker.probeAnew()
  assert.equal(asked(), 2, 'none was under way')
  checker.probeAnew()
  checker.probeAnew()
  assert.equal(asked(), 2, 'never two at a time')
  await answer({ ...good, note: 'refused', refusesEdge: true })
  assert.deepEqual([checker.why, checker.refusesEdge, asked()], [answersWell, false, 3])
  await answer({ ...good, note: 'odd' })
  assert.deepEqual([checker.why, asked()], ['odd', 3])
  clock.advance(5_000)
  assert.equal(asked(), 4)
})

test('[L4] probes of a fleet are spread', async () => {
  await using it = world(() => 0)
  const { clock, asked, answer } = it
  await answer({ ...silent, certain: true })
  clock.advance(3_749)
  assert.equal(asked(), 1)
  clock.advance(1)
  assert.equal(asked(), 2)
})

test('after the end nothing is probed, and an answer that comes late changes nothing', async () => {
  const { checker, asked, answer, end, clock } = world()
  await end()
  await answer(good)
  checker.suspect('late')
  clock.advance(60_000)
  assert.deepEqual([checker.state, asked()], ['suspect', 1])
})

test('what people should know stands behind the reason', async () => {
  await using it = world()
  const { checker, answer, says } = it
  await answer(good)
  says("the edge's token expired")
  assert.equal(checker.why, "the API server answers; the edge's token expired")
})
