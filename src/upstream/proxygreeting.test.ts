/** Dialogues with proxies, byte by byte and with proxies that say anything; AKE_SEED repeats a run that failed. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lives } from '../base/lives.test-support.ts'
import { seeded } from '../base/seeded.test-support.ts'
import { type ForwardProxy, proxyFor } from './proxychoice.ts'
import { greetingOf } from './proxygreeting.ts'
import { DialFault } from './reason.ts'

const api = { host: 'api', port: 6443 }
const at = (proxyUrl: string) => proxyFor(new URL('https://api'), { proxyUrl }) as ForwardProxy

/** What is said to a proxy that gives these answers in turn, each in pieces of `bytes`. */
function talk(proxy: ForwardProxy, to: typeof api, answers: readonly Buffer[], bytes = 1): Buffer[] {
  const greeting = greetingOf(proxy, to)
  const said: Buffer[] = []
  let next = greeting.next()
  for (const answer of answers) {
    assert.ok(next.value !== undefined, 'it speaks before the proxy does')
    said.push(next.value)
    for (let end = bytes; ; end += bytes) {
      next = greeting.next(answer.subarray(0, end))
      if (end >= answer.length) break
      assert.deepEqual([next.value, next.done], [undefined, false], `after ${end} bytes`)
    }
  }
  assert.equal(next.done, true)
  return said
}

const yes = Buffer.from('HTTP/1.1 200 Connection established\r\nvia: 1.1 squid\r\n\r\n')

test('CONNECT names the server twice, with a credential as Basic', () => {
  const [said] = talk(at('http://us%40er:pass@p'), api, [yes])
  const basic = Buffer.from('us@er:pass').toString('base64')
  const head = ['CONNECT api:6443 HTTP/1.1', 'Host: api:6443', `Proxy-Authorization: Basic ${basic}`]
  assert.equal(said?.toString(), `${head.join('\r\n')}\r\n\r\n`)
  const [plain] = talk(at('https://p'), { host: 'fd00::1', port: 1 }, [yes], 5)
  assert.equal(plain?.toString(), 'CONNECT [fd00::1]:1 HTTP/1.1\r\nHost: [fd00::1]:1\r\n\r\n')
})

test('SOCKS 5 is told names as names, addresses as addresses, and a credential where it asks for one', () => {
  const here = Buffer.of(5, 0, 0, 1, 127, 0, 0, 1, 0, 1)
  const none = talk(at('socks5://p'), { host: '10.1.2.3', port: 258 }, [Buffer.of(5, 0), here])
  assert.deepEqual(none, [Buffer.of(5, 1, 0), Buffer.of(5, 1, 0, 1, 10, 1, 2, 3, 1, 2)])
  const there = Buffer.of(5, 0, 0, 4, ...Array.from({ length: 18 }, () => 0))
  const known = talk(at('socks5://ab:c@p'), api, [Buffer.of(5, 2), Buffer.of(1, 0), there])
  assert.deepEqual(known, [
    Buffer.of(5, 2, 0, 2),
    Buffer.from('\x01\x02ab\x01c'),
    Buffer.concat([Buffer.of(5, 1, 0, 3, 3), Buffer.from('api'), Buffer.of(0x19, 0x2b)]),
  ])
  const named = Buffer.concat([Buffer.of(5, 0, 0, 3, 2), Buffer.from('px'), Buffer.of(0, 1)])
  const [, sixth] = talk(at('socks5://p'), { host: 'fd00::1:2', port: 1 }, [Buffer.of(5, 0), named])
  assert.equal(sixth?.toString('hex'), '05010004fd0000000000000000000000000100020001')
})

test('a refusal says what the operator can do about it', () => {
  const refusals: [url: string, answers: Buffer[], why: RegExp][] = [
    [
      'http://p',
      [Buffer.from('HTTP/1.1 407 x\r\n\r\n')],
      /the proxy http:\/\/p:80 wants a credential, in its URL \(407\)/,
    ],
    ['http://p', [Buffer.from('HTTP/1.1 418 x\r\n\r\n')], /does not connect \(418\)/],
    ['http://p', [Buffer.from('HTTP/1.1 101 x\r\n\r\n')], /does not connect \(101\)/],
    ['socks5://p', [Buffer.of(5, 255)], /wants a credential, in its URL/],
    ['socks5://a:b@p', [Buffer.of(5, 255)], /takes no user name and password/],
    ['socks5://a:b@p', [Buffer.of(5, 2), Buffer.of(1, 1)], /refuses the credential/],
    ['socks5://p', [Buffer.of(72, 84)], /does not speak SOCKS 5/],
    ['socks5://p', [Buffer.of(5, 0), Buffer.of(5, 2, 0, 1)], /does not allow connections to api:6443/],
    ['socks5://p', [Buffer.of(5, 0), Buffer.of(5, 5, 0, 1)], /cannot reach api:6443 \(SOCKS 5\)/],
    ['socks5://p', [Buffer.of(5, 0, 1)], /says more than it was asked/],
  ]
  for (const [url, answers, why] of refusals) {
    assert.throws(
      () => talk(at(url), api, answers, 100),
      (error) => error instanceof DialFault && error.certain && why.test(error.message),
      String(why),
    )
  }
})

test('[L4] a proxy that says anything is refused or waited for within its limit, and never let through by chance', () => {
  const firstSeed = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 1e9))
  for (let seed = firstSeed; seed < firstSeed + lives(3_000); seed++) {
    const random = seeded(seed)
    const proxy = at(['http://p', 'socks5://p', 'socks5://a:b@p'][random(3)] as string)
    const greeting = greetingOf(proxy, api)
    let heard = Buffer.alloc(0)
    let bytes = 0
    try {
      let next = greeting.next()
      while (next.done !== true) {
        if (next.value !== undefined) heard = Buffer.alloc(0)
        const piece = random(2) === 0 ? Buffer.from('HTTP/1.1 5') : Buffer.alloc(1 + random(2_000), random(256))
        heard = Buffer.concat([heard, piece])
        bytes += piece.length
        assert.ok(bytes < 20 * 1024, `AKE_SEED=${seed}: ${bytes} bytes were heard`)
        next = greeting.next(heard)
      }
      assert.fail(`AKE_SEED=${seed}: it is through`)
    } catch (error) {
      if (!(error instanceof DialFault)) throw error
    }
  }
})
