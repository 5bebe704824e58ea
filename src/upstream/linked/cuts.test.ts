/** Many requests at once over a link that is cut at some moment: each is answered whole, or its asker knows what may have been done. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { systemClock } from '../../base/clock.ts'
import { firstSeed, lives } from '../../base/lives.test-support.ts'
import { TunnelPair } from '../../tunnel/pair.test-support.ts'
import { RequestFailed, RequestServer } from '../../tunnel/request/serve.ts'
import { Unreachable } from '../upstream.ts'
import { readWhole } from '../whole.ts'
import { LinkedRequests } from './linked.ts'

const life = fc.record({
  requests: fc.array(
    fc.record({
      sent: fc.nat(60_000),
      answered: fc.nat(60_000),
      startTurns: fc.nat(20),
      isRefused: fc.boolean(),
      /** After so many turns of the loop; most stay. */
      leftTurns: fc.option(fc.nat(30), { nil: undefined, freq: 1 }),
    }),
    { minLength: 1, maxLength: 12, size: 'max' },
  ),
  /** It is cut in the middle of what it would carry, or not at all. */
  framesMax: fc.option(fc.nat(150), { nil: undefined }),
  windowBytes: fc.constantFrom(50, 1_000, 16_384),
})

/** Six lives have met no request that was cut after it was sent. */
const livesMin = 30

test('[L20] whatever a cut falls into, an answer is whole or none, and unsent is what the hub never passed on', async () => {
  const outcomes = { whole: 0, unsent: 0, sent: 0 }
  await fc.assert(
    fc.asyncProperty(life, async ({ requests, framesMax, windowBytes }) => {
      const passed = new Set<string>()
      const server = new RequestServer({
        callerRequestsMax: 100,
        handle: async ({ path, body }) => {
          const request = requests[Number(path.slice(1))]!
          if (request.isRefused) throw new RequestFailed('no API server', false)
          passed.add(path)
          let bytes = 0
          for await (const chunk of body ?? []) bytes += chunk.length
          assert.equal(bytes, request.sent)
          async function* pieces() {
            for (let left = request.answered; left > 0; left -= 7_000) yield Buffer.alloc(Math.min(left, 7_000), 'x')
          }
          return { status: 200, headers: [], body: pieces() }
        },
      })
      const pair = new TunnelPair({
        hubAccepts: (incoming) => server.accept(incoming),
        limits: { windowBytes },
        framesMax,
      })
      const linked = new LinkedRequests({
        ...{ streams: () => pair.edge, heardAt: () => 0, node: 'node', userAgent: 'ake', clock: systemClock },
      })
      const asking = requests.map(async ({ sent, answered, startTurns, leftTurns, isRefused }, at) => {
        await turns(startTurns)
        const path = `/${at}`
        const token = `token-${at % 3}`
        const leaving = new AbortController()
        if (leftTurns !== undefined) void turns(leftTurns).then(() => leaving.abort())
        try {
          const answer = await linked.ask({
            ...{ method: 'POST', path, identity: { kind: 'token', token }, signal: leaving.signal },
            body: Buffer.alloc(sent),
          })
          assert.equal((await readWhole(answer, 1 << 20)).length, answered)
          outcomes.whole++
        } catch (error) {
          assert.ok(error instanceof Unreachable, String(error))
          const isExpected = framesMax !== undefined || isRefused || leftTurns !== undefined
          assert.ok(isExpected, error.message)
          if (!error.sent) assert.equal(passed.has(path), false, error.message)
          outcomes[error.sent ? 'sent' : 'unsent']++
        }
      })
      await Promise.all(asking)
      pair.cut()
    }),
    { seed: firstSeed, numRuns: Math.max(livesMin, lives(60)) },
  )
  for (const [outcome, count] of Object.entries(outcomes)) assert.ok(count > 0, `none was ${outcome}`)
})

async function turns(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await turn()
}
