import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from './turns.ts'

test('[A8] one piece of work is done in a round of the loop, however many have work, each in its turn', async () => {
  const rounds: (() => void)[] = []
  const turns = new Turns((fn) => rounds.push(fn))
  const done: string[] = []
  const work = async (name: string) => {
    for (let piece = 1; piece <= 2; piece++) {
      await turns.take()
      done.push(`${name}${piece}`)
    }
  }
  const all = Promise.all([work('a'), work('b'), work('c')])
  const perRound: number[] = []
  for (let round = rounds.shift(); round !== undefined; round = rounds.shift()) {
    const before = done.length
    round()
    await new Promise((resolve) => setImmediate(resolve))
    perRound.push(done.length - before)
  }
  await all
  assert.deepEqual(done, ['a1', 'b1', 'c1', 'a2', 'b2', 'c2'])
  assert.deepEqual(perRound, [1, 1, 1, 1, 1, 1])
})

test('[A8] work that begins has every other turn: it does not wait for all that is long', async () => {
  const rounds: (() => void)[] = []
  const turns = new Turns((fn) => rounds.push(fn))
  const done: string[] = []
  const note = (name: string) => () => void done.push(name)
  for (const name of ['long1', 'long2', 'long3']) void turns.take().then(note(name))
  for (const name of ['new1', 'new2']) void turns.takeFirst().then(note(name))
  for (let round = rounds.shift(); round !== undefined; round = rounds.shift()) {
    round()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(done, ['new1', 'long1', 'new2', 'long2', 'long3'])
})

test('[A8] turns go round by who asks: a caller that comes waits for one piece of each other, not for all that one has waiting', async () => {
  const rounds: (() => void)[] = []
  const turns = new Turns((fn) => rounds.push(fn))
  const done: string[] = []
  const wait = (who: string | undefined, kind: 'take' | 'takeFirst', name: string) => {
    void turns[kind](who).then(() => done.push(name))
  }
  const go = async () => {
    for (let round = rounds.shift(); round !== undefined; round = rounds.shift()) {
      round()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  for (let at = 1; at <= 4; at++) wait('greedy', 'take', `greedy${at}`)
  for (const name of ['late1', 'late2']) wait('late', 'take', name)
  wait(undefined, 'take', 'own')
  await go()
  assert.deepEqual(done.splice(0), ['greedy1', 'late1', 'own', 'greedy2', 'late2', 'greedy3', 'greedy4'])
  for (let at = 1; at <= 3; at++) wait('greedy', 'takeFirst', `greedy${at}`)
  for (let at = 1; at <= 3; at++) wait('greedy', 'take', `long${at}`)
  wait('late', 'takeFirst', 'late')
  await go()
  assert.deepEqual(done, ['greedy1', 'long1', 'late', 'long2', 'greedy2', 'long3', 'greedy3'])
})
