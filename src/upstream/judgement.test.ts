import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstJudgement, type Judgement, judge, judgementLimits, limitMsOf, type Sign } from './judgement.ts'

const good: Sign = { kind: 'probe answered', rttMs: 10 }
const silent: Sign = { kind: 'probe failed', why: 'no answer within 2000 ms', certain: false, alive: false }
const refused: Sign = { kind: 'probe failed', why: 'connection refused', certain: true, alive: false }
const slow: Sign = { kind: 'probe failed', why: 'no answer within 2000 ms', certain: false, alive: true }
const traffic: Sign = { kind: 'traffic failed', why: 'a read took too long' }

/** Judges signs a second apart. */
function after(...signs: Sign[]): Judgement {
  return signs.reduce(
    (before, sign, second) => judge(before, sign, { steadyMs: second * 1000, nowMs: second * 1000 }),
    firstJudgement(0),
  )
}

test('it begins suspect; the first good probe makes it reachable', () => {
  assert.equal(after().state, 'suspect')
  assert.equal(after(good).state, 'reachable')
})

test('one failure is suspect, a second or a clear refusal unreachable', () => {
  assert.equal(after(good, silent).state, 'suspect')
  assert.equal(after(good, silent, silent).state, 'unreachable')
  assert.equal(after(good, refused).state, 'unreachable')
  assert.equal(after(good, traffic).state, 'suspect')
  assert.equal(after(good, traffic, traffic, traffic).state, 'suspect', 'only probes condemn')
  assert.equal(after(good, refused, traffic).state, 'unreachable')
})

test('it was last heard when a probe was last answered, whatever failed since', () => {
  assert.equal(after(silent, refused).heardAt, Number.NEGATIVE_INFINITY)
  assert.equal(after(silent, good, traffic, refused, slow).heardAt, 1_000)
})

test('whether it refuses the edge is what the last answered probe said, whatever failed since', () => {
  const unauthorized: Sign = { ...good, refusesEdge: true }
  assert.equal(after(good, silent).refusesEdge, false)
  assert.equal(after(unauthorized, traffic, silent).refusesEdge, true)
  assert.equal(after(unauthorized, traffic, good).refusesEdge, false)
})

test('a link that is slow but carries bytes is suspect, never unreachable', () => {
  assert.equal(after(good, slow, slow, slow).state, 'suspect')
  assert.equal(after(good, refused, slow).state, 'unreachable')
})

test('the reason is the first one, and since when is the moment of the change', () => {
  const judged = after(good, good, traffic, silent, silent)
  assert.deepEqual([judged.why, judged.sinceMs], ['no answer within 2000 ms', 4000])
  assert.equal(after(good, traffic, { kind: 'traffic failed', why: 'another' }).why, 'a read took too long')
})

test('one that flaps has to answer three times in a row', () => {
  const flapping = [good, refused, good, refused, good, refused, good, refused]
  assert.equal(after(...flapping, good).state, 'suspect')
  assert.equal(after(...flapping, good, good, refused, good, good).state, 'suspect')
  assert.equal(after(...flapping, good, good, good).state, 'reachable')
  const calm = judge(after(...flapping), good, { steadyMs: 120_000, nowMs: 0 })
  assert.equal(calm.state, 'reachable', 'a minute later it is forgotten')
})

test('a read waits four round trips, within bounds', () => {
  const limit = (rttMs: number) => limitMsOf(after({ kind: 'probe answered', rttMs }))
  assert.deepEqual([limit(1), limit(100), limit(5_000)], [300, 400, 2_000])
  assert.equal(limitMsOf(after()), 300)
})

test('any order of signs: three good probes always heal, two silent ones always condemn, a jump of the clock changes nothing', () => {
  const signs = fc.array(fc.tuple(fc.constantFrom(good, silent, refused, slow, traffic), fc.nat(90_000)), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(signs, fc.integer({ min: -1e12, max: 1e12 }), (steps, skewMs) => {
      let [plain, skewed] = [firstJudgement(0), firstJudgement(0)]
      let steadyMs = 0
      for (const [sign, waitMs] of steps) {
        steadyMs += waitMs
        plain = judge(plain, sign, { steadyMs, nowMs: steadyMs })
        skewed = judge(skewed, sign, { steadyMs, nowMs: steadyMs + skewMs })
        assert.equal(plain.state, skewed.state)
        assert.ok(plain.losses.length <= steps.length)
        if (sign === refused) assert.equal(plain.state, 'unreachable')
        if (sign === traffic) assert.notEqual(plain.state, 'reachable')
      }
      const at = { steadyMs, nowMs: 0 }
      let healed = plain
      for (let probe = 0; probe < judgementLimits.steadyProbes; probe++) healed = judge(healed, good, at)
      assert.equal(healed.state, 'reachable')
      assert.equal(judge(judge(plain, silent, at), silent, at).state, 'unreachable')
    }),
  )
})
