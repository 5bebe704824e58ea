import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alice, openBench, settle } from './access.test-support.ts'
import { FairQueue, strangers } from './fairqueue.ts'
import { makeQuestion } from './question.ts'

test('callers take turns, strangers come last, and nobody takes all places', () => {
  const turns = new FairQueue()
  const went: string[] = []
  const enter = (who: string, times: number) =>
    Array.from({ length: times }, () => turns.enter(who, () => went.push(who))).filter((taken) => taken).length
  assert.equal(enter(strangers, 300), 8 + 256, 'those under way and those that may wait')
  assert.equal(went.length, 8)
  assert.equal(enter('greedy', 1000), 16 + 768)
  assert.equal(went.length, 24)
  enter('a', 6)
  enter('b', 6)
  assert.equal(went.length, 32)
  went.length = 0
  for (let i = 0; i < 4; i++) turns.leave('a')
  assert.deepEqual(went, ['b', 'b', 'b', 'b'], 'a caller that waits and has room')
  enter('c', 1)
  turns.leave(strangers)
  assert.equal(went.at(-1), 'c', 'a stranger’s place goes to a caller who is known')
  turns.leave('greedy')
  assert.equal(went.at(-1), 'greedy')
  turns.leave('c')
  assert.equal(went.at(-1), strangers, 'who else waits has all the places that one may have')
})

test('[I5] a flood of invented tokens does not keep known callers from being asked about', async () => {
  const { access, cloud, clock } = await openBench()
  const honest = { kind: 'token', token: 'honest' } as const
  const pods = makeQuestion({ verb: 'list', resource: 'pods' })
  cloud.users.set(honest.token, alice)
  await access.decide(honest, pods)
  cloud.mode = 'hang'
  cloud.probes = () => true
  clock.advance(10_000)
  const flood = Array.from({ length: 2000 }, (_, i) => access.decide({ kind: 'token', token: `invented-${i}` }, pods))
  await settle()
  cloud.mode = 'answer'
  cloud.allows = () => false
  assert.equal(await access.decide(honest, pods), 'denied', 'while the invented ones are still being verified')
  cloud.release()
  await settle()
  clock.advance(1000)
  assert.ok(!(await Promise.all(flood.map((one) => Promise.resolve(one)))).includes('allowed'))
  assert.equal(cloud.reachability.state, 'reachable')
})
