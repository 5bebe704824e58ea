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
