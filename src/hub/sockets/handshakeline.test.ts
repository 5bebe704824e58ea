import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeClock } from '../../base/fakeclock.test-support.ts'
import { helloKind } from './clienthello.ts'
import { HandshakeLine } from './handshakeline.ts'
import { sourceOf } from './sourceshares.ts'

test('so many in a second, in their turn; a line that is full is said at once', () => {
  const clock = fakeClock()
  const line = new HandshakeLine({ perSecond: 100, lineMsMax: 500, clock })
  const [gone, away]: [number[], number[]] = [[], []]
  for (let at = 0; at < 100; at++)
    line.enter({ source: 'a', go: () => void gone.push(at), away: () => void away.push(at) })
  assert.equal(gone.length, 10, 'a tenth of a second at once')
  assert.equal(away.length, 100 - 10 - 50)
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
  const enter = (name: string) =>
    line.enter({ source: 'a', go: () => void gone.push(name), away: () => assert.fail(name) })
  enter('first')
  const leave = enter('left')
  enter('second')
  leave()
  clock.advance(100)
  assert.deepEqual(gone, ['first', 'second'])
  for (let charged = 0; charged < 100; charged++) line.charge()
  enter('third')
  clock.advance(900)
  assert.equal(gone.length, 2)
  clock.advance(300)
  assert.deepEqual(gone.at(-1), 'third', 'no debt is larger than a line')
})

test('[L22] in a full line a source gives way to others until they have as many; alone it may have all of it', () => {
  const clock = fakeClock()
  const line = new HandshakeLine({ perSecond: 10, lineMsMax: 1_000, clock })
  const [gone, away]: [string[], string[]] = [[], []]
  const enter = (source: string, count: number) => {
    for (let at = 0; at < count; at++)
      line.enter({ source, go: () => void gone.push(source), away: () => void away.push(source) })
  }
  const of = (source: string, all: readonly string[]) => all.filter((one) => one === source).length
  enter('flood', 100)
  assert.deepEqual([gone.length, line.waiting, away.length], [1, 10, 89])
  enter('edge', 1)
  enter('site', 20)
  assert.equal(line.waiting, 10)
  // Four of the flood, five of the site, and the edge, who has one.
  assert.deepEqual([of('flood', away), of('site', away), of('edge', away)], [89 + 5, 20 - 4, 0])
  enter('flood', 100)
  clock.advance(1_100)
  assert.deepEqual([of('flood', gone), of('site', gone), of('edge', gone)], [1 + 5, 4, 1])
})

test('[L22] a source is an address, or the network of a machine', () => {
  const sources: readonly (readonly [string | undefined, string])[] = [
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['1::', '1:0:0:0::/64'],
    [undefined, ''],
  ]
  for (const [address, source] of sources) assert.equal(sourceOf(address), source)
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
