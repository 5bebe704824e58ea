import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { credentialBytesMax } from '../../tunnel/limits.ts'
import { AskingCredentials, type ProvingShown } from './askingcredentials.ts'

const refused = { verdict: 'refused', forMs: 100, sentence: 'no', denied: 0 } as const
const unknown = { verdict: 'unknown', forMs: 50, sentence: 'not now', denied: 0 } as const
const allowed = { verdict: 'allowed', forMs: 1_000, sentence: '', denied: 0 } as const

const texts = (shown: readonly ProvingShown[]) => shown.map((one) => ('token' in one ? one.token : one.certificate))

function asked(...tokens: string[]): AskingCredentials {
  const asking = new AskingCredentials()
  for (const token of tokens) asking.keep({ token: token }, 0)
  return asking
}

test('[L24] who asked last is shown first, four at most, and whom the hub refused last', () => {
  assert.deepEqual(texts(asked('a', 'b', 'a', 'c').due(0)), ['c', 'a', 'b'])
  assert.deepEqual(texts(asked('a', 'b', 'c', 'd', 'e').due(0)), ['e', 'd', 'c', 'b'])
  const asking = asked('a', 'b', 'c')
  asking.answered({ token: 'c' }, refused, 0)
  asking.keep({ token: 'c' }, 10)
  assert.deepEqual(texts(asking.due(50)), ['b', 'a'])
  assert.deepEqual(texts(asking.due(100)), ['b', 'a', 'c'])
  asking.answered({ token: 'c' }, allowed, 100)
  assert.deepEqual(texts(asking.due(100)), ['c', 'b', 'a'])
})

test('[L24] many who may not do not push out the one who may', () => {
  const asking = asked('reader')
  asking.answered({ token: 'reader' }, allowed, 0)
  for (let at = 0; at < 20; at++) {
    asking.keep({ token: `stranger-${at}` }, at)
    asking.answered({ token: `stranger-${at}` }, refused, at)
  }
  assert.ok(texts(asking.due(20)).includes('reader'))
  assert.equal(asking.size, 4)
})

test('[L24] what was refused or unknown is not shown again before its time, or over another link', () => {
  const asking = asked('a', 'b')
  asking.answered({ token: 'a' }, unknown, 0)
  asking.answered({ token: 'b' }, refused, 0)
  assert.deepEqual(texts(asking.due(49)), [])
  assert.deepEqual(texts(asking.due(50)), ['a'])
  asking.anew(60)
  assert.deepEqual(texts(asking.due(60)), ['a', 'b'])
})

test('[L24] whom the hub refused is shown again soon when it asks, and however often it asks no sooner', () => {
  const asking = asked('a', 'b')
  const long = { ...refused, forMs: 60_000 }
  for (const token of ['a', 'b']) asking.answered({ token: token }, long, 0)
  asking.keep({ token: 'b' }, 1_000)
  asking.keep({ token: 'b' }, 2_000)
  assert.deepEqual(texts(asking.due(4_999)), [])
  assert.deepEqual(texts(asking.due(5_000)), ['b'])
  asking.answered({ token: 'b' }, long, 5_000)
  assert.deepEqual(texts(asking.due(59_999)), [])
  asking.keep({ token: 'a' }, 59_999)
  assert.deepEqual(texts(asking.due(59_999)), ['a'])
  const unsure = asked('c')
  unsure.answered({ token: 'c' }, { ...unknown, forMs: 60_000 }, 0)
  unsure.keep({ token: 'c' }, 20_000)
  assert.deepEqual(texts(unsure.due(20_000)), [])
})

test('[L24, I4] a caller who asks no more is forgotten, and nothing prints a credential', () => {
  const asking = asked('secret-a')
  asking.keep({ token: 'secret-b' }, 3_600_000)
  asking.forget(2 * 3_600_000 - 1)
  assert.deepEqual(texts(asking.due(2 * 3_600_000)), ['secret-b'])
  assert.ok(!inspect(asking, { depth: 9, showHidden: true }).includes('secret'))
  for (const none of ['', 'a b', 'a\r\nx: y', 'a'.repeat(credentialBytesMax + 1)]) asking.keep({ token: none }, 0)
  assert.equal(asking.size, 1)
})
