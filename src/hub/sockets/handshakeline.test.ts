import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { helloKind } from './clienthello.ts'
import { HandshakeLine } from './handshakeline.ts'

test('so many in a second, in their turn; a line that is full is said at once', () => {
  const clock = fakeClock()
  const line = new HandshakeLine({ perSecond: 100, lineMsMax: 500, clock })
  const gone: number[] = []
  const answers = Array.from({ length: 100 }, (_, at) => line.enter(() => gone.push(at)))
  assert.equal(gone.length, 10, 'a tenth of a second at once')
  assert.equal(answers.filter((answer) => answer === undefined).length, 100 - 10 - 50)
  clock.advance(100)
  assert.ok(gone.length >= 19 && gone.length <= 20, String(gone.length))
  clock.advance(500)
  assert.deepEqual(
    gone,
    Array.from({ length: 60 }, (_, at) => at),
  )
  assert.equal(clock.pending(), 0)
})

test('who leaves the line keeps nobody; what went by another way does', () => {
  const clock = fakeClock()
  const line = new HandshakeLine({ perSecond: 10, lineMsMax: 1_000, clock })
  const gone: string[] = []
  line.enter(() => gone.push('first'))
  const leave = line.enter(() => gone.push('left'))
  line.enter(() => gone.push('second'))
  leave?.()
  clock.advance(100)
  assert.deepEqual(gone, ['first', 'second'])
  for (let charged = 0; charged < 100; charged++) line.charge()
  line.enter(() => gone.push('third'))
  clock.advance(900)
  assert.equal(gone.length, 2)
  clock.advance(300)
  assert.deepEqual(gone.at(-1), 'third', 'no debt is larger than a line')
})

test('what a connection asks for, by whatever bytes', () => {
  assert.equal(helloKind(Buffer.alloc(0)), 'part')
  assert.equal(helloKind(Buffer.from('GET / HTTP/1.1')), 'other')
  assert.equal(helloKind(Buffer.of(22, 3, 1, 0, 0)), 'other')
  assert.equal(helloKind(Buffer.of(22, 3, 1, 255, 255)), 'other')
  assert.equal(helloKind(Buffer.of(22, 3, 1, 0, 2, 2, 0)), 'other')
  const body = (extensions: Buffer) => {
    const hello = Buffer.concat([
      Buffer.of(1, 0, 0, 0, 3, 3),
      Buffer.alloc(32),
      Buffer.of(0, 0, 2, 19, 1, 1, 0, 0, 9),
      extensions,
    ])
    return Buffer.concat([Buffer.of(22, 3, 1, 0, hello.length), hello])
  }
  const [other, ticket] = [Buffer.of(0, 43, 0, 1, 4), Buffer.of(0, 41, 0, 0)]
  assert.equal(helloKind(body(Buffer.concat([other, ticket]))), 'resuming')
  assert.equal(helloKind(body(other)), 'full')
  const whole = body(Buffer.concat([other, ticket]))
  for (let length = 0; length < whole.length; length++) assert.equal(helloKind(whole.subarray(0, length)), 'part')
  // Lengths that lie lead nowhere.
  for (let at = 5; at < whole.length; at++) {
    for (const byte of [0, 1, 127, 255]) {
      const lying = Buffer.from(whole)
      lying[at] = byte
      assert.match(helloKind(lying), /^(full|resuming|other)$/)
    }
  }
})
