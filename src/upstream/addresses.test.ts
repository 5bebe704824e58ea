import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Addresses } from './addresses.ts'
import type { Sign } from './judgement.ts'

const good: Sign = { kind: 'probe answered', rttMs: 1 }
const silent: Sign = { kind: 'probe failed', why: 'silence', certain: false, alive: false }
const refused: Sign = { kind: 'probe failed', why: 'connection refused', certain: true, alive: false }

function world(...names: string[]) {
  const signs = new Map<string, Sign>(names.map((name) => [name, good]))
  const asked: string[] = []
  const moves: string[] = []
  const addresses = new Addresses({
    urls: names.map((name) => new URL(`https://${name}`)),
    probe: async ({ url }) => {
      asked.push(url.hostname)
      return signs.get(url.hostname) ?? refused
    },
    moved: (from, to) => void moves.push(`${from.url.hostname}→${to.url.hostname}`),
  })
  const round = async () => {
    asked.length = 0
    return (await addresses.probe()).kind
  }
  return { addresses, signs, asked, moves, round, current: () => addresses.current.url.hostname }
}

test('the first is used while it answers, and the others are left alone', async () => {
  const { round, asked, current } = world('a', 'b')
  assert.equal(await round(), 'probe answered')
  assert.deepEqual([current(), asked], ['a', ['a']])
})

test('when it is gone the next that answers takes over in the same round', async () => {
  const { round, signs, current, moves } = world('a', 'b', 'c')
  signs.set('a', refused)
  signs.set('b', silent)
  assert.equal(await round(), 'probe answered')
  assert.deepEqual([current(), moves], ['c', ['a→c']])
})

test('silence has to last for two probes, and slowness never moves it', async () => {
  const { round, signs, current } = world('a', 'b')
  signs.set('a', { ...silent, alive: true } as Sign)
  for (let probes = 0; probes < 4; probes++) await round()
  assert.equal(current(), 'a')
  signs.set('a', good)
  await round()
  signs.set('a', silent)
  assert.equal(await round(), 'probe failed')
  assert.equal(current(), 'a')
  assert.equal(await round(), 'probe answered')
  assert.equal(current(), 'b')
})

test('it goes back to an earlier one after three good probes in a row', async () => {
  const { round, signs, current, moves } = world('a', 'b')
  signs.set('a', refused)
  await round()
  signs.set('a', good)
  await round()
  await round()
  signs.set('a', refused)
  await round()
  signs.set('a', good)
  await round()
  await round()
  assert.equal(current(), 'b')
  await round()
  assert.deepEqual([current(), moves], ['a', ['a→b', 'b→a']])
})

test('nobody answers: the sign is the failure, the address stays', async () => {
  const { round, signs, current, addresses } = world('a', 'b')
  signs.set('a', refused)
  signs.set('b', refused)
  assert.equal(await round(), 'probe failed')
  assert.equal(current(), 'a')
  assert.deepEqual(
    addresses.all.map(({ why }) => why),
    ['connection refused', 'connection refused'],
  )
})
