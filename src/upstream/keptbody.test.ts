import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptBody, KeptRoom } from './keptbody.ts'

const room = (bodyBytesMax = 100, bytesMax = 100) => new KeptRoom({ bodyBytesMax, bytesMax })

/** A body whose pieces come when the test says so. */
function source() {
  const told = { asked: 0, left: false }
  let give: (piece: string | undefined) => void = () => {}
  async function* pieces() {
    try {
      for (;;) {
        told.asked++
        const piece = await new Promise<string | undefined>((resolve) => {
          give = resolve
        })
        if (piece === undefined) return
        yield Buffer.from(piece)
      }
    } finally {
      told.left = true
    }
  }
  return { told, pieces: pieces(), give: (piece?: string) => give(piece) }
}

const textOf = async (next: Promise<IteratorResult<Buffer>>) => (await next).value?.toString()
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a second attempt has the body from its beginning, and what the first still waits for', async () => {
  const { told, pieces, give } = source()
  const body = new KeptBody(pieces, room())
  const first = body.attempt()
  const one = first.next()
  give('one')
  assert.equal(await textOf(one), 'one')
  const late = first.next()
  const second = body.attempt()
  assert.equal(await textOf(second.next()), 'one')
  const two = second.next()
  give('two')
  assert.deepEqual([await textOf(two), await textOf(late), told.asked], ['two', 'two', 2])
  await first.return()
  assert.equal(told.left, false, 'another attempt goes on')
  body.settle()
  const end = second.next()
  await turn()
  give()
  assert.equal((await end).done, true)
  assert.equal(told.left, true)
})

test('its source hears that nobody reads on, once no attempt can follow', async () => {
  for (const isSettledFirst of [true, false]) {
    const { told, pieces, give } = source()
    const body = new KeptBody(pieces, room())
    const attempt = body.attempt()
    const one = attempt.next()
    give('one')
    await one
    if (isSettledFirst) body.settle()
    await attempt.return()
    assert.equal(told.left, isSettledFirst)
    body.settle()
    await turn()
    assert.equal(told.left, true)
  }
})

test('a body beyond its own limit or that of all is passed on and not kept, and what was kept of it is free again', async () => {
  const shared = room(10, 15)
  const begun = async (...texts: string[]) => {
    async function* pieces() {
      for (const text of texts) yield Buffer.from(text)
    }
    const body = new KeptBody(pieces(), shared)
    const attempt = body.attempt()
    const read: string[] = []
    for (const _ of texts) read.push((await textOf(attempt.next())) ?? '')
    assert.deepEqual(read, texts)
    return body
  }
  const small = await begun('12345', '67890')
  assert.equal(small.isWhole, true)
  assert.equal((await begun('12345', '678901')).isWhole, false, 'its own')
  assert.equal((await begun('123456')).isWhole, false, 'of all')
  small.settle()
  small.settle()
  const next = await begun('1234567890')
  assert.equal(next.isWhole, true)
  assert.equal((await begun('123456')).isWhole, false, 'given back once')
})

test('a body that breaks off does so for each attempt', async () => {
  async function* pieces() {
    yield Buffer.from('one')
    throw new Error('broken off')
  }
  const body = new KeptBody(pieces(), room())
  for (const attempt of [body.attempt(), body.attempt()]) {
    assert.equal(await textOf(attempt.next()), 'one')
    await assert.rejects(attempt.next(), /broken off/)
  }
})
