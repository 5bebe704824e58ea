/**
 * What is said to a proxy until its connection leads to the API server, as pure dialogues: each yields what to say next,
 * or nothing while the answer is not whole, and is given all that was heard since it last spoke.
 */
import { isIP } from 'node:net'
import type { Destination } from './dial.ts'
import type { ForwardProxy } from './proxychoice.ts'
import { DialFault } from './reason.ts'

export type Greeting = Generator<Buffer | undefined, void, Buffer>

/** An answer to CONNECT longer than this is none: those of real proxies take some hundred bytes. */
const headBytesMax = 16 * 1024

export function greetingOf(proxy: ForwardProxy, to: Destination): Greeting {
  return proxy.kind === 'socks5' ? socks(proxy, to) : connecting(proxy, to)
}

/** HTTP's CONNECT (RFC 9110, 9.3.6), with the credential as Basic. */
function* connecting({ name, user, password }: ForwardProxy, { host, port }: Destination): Greeting {
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const basic = user === undefined ? '' : Buffer.from(`${user}:${password}`).toString('base64')
  const credential = user === undefined ? '' : `Proxy-Authorization: Basic ${basic}\r\n`
  let heard = yield Buffer.from(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credential}\r\n`)
  const fault = (why: string) => new DialFault(`the proxy ${name} ${why}`, true)
  let end = heard.indexOf('\r\n\r\n')
  while (end < 0 && heard.length <= headBytesMax) {
    if (!'HTTP/1.'.startsWith(heard.toString('latin1', 0, 7))) throw fault('does not speak HTTP')
    heard = yield
    end = heard.indexOf('\r\n\r\n')
  }
  if (end < 0 || end > headBytesMax) throw fault(`answers with more than ${headBytesMax / 1024} KiB of headers`)
  const status = /^HTTP\/1\.[01] (\d{3})[ \r]/.exec(heard.toString('latin1', 0, 14))?.[1]
  if (status === undefined) throw fault('does not speak HTTP')
  if (status.startsWith('2')) {
    // The API server waits to be spoken to: whatever is there already is not its own.
    if (heard.length > end + 4) throw fault('says more than it was asked')
    return
  }
  throw fault(`${refusal(status, target, user !== undefined)} (${status})`)
}

function refusal(status: string, target: string, hasCredential: boolean): string {
  if (status === '403') return `does not allow connections to ${target}`
  if (status === '407') return hasCredential ? 'refuses the credential in its URL' : 'wants a credential, in its URL'
  return /^50[234]$/.test(status) ? `cannot reach ${target}` : 'does not connect'
}

/** SOCKS 5 (RFC 1928), with a user name and password (RFC 1929). */
function* socks({ name, user, password }: ForwardProxy, { host, port }: Destination): Greeting {
  const fault = (why: string) => new DialFault(`the proxy ${name} ${why}`, true)
  const answered = function* (
    say: Buffer,
    bytes: (heard: Buffer) => number,
  ): Generator<Buffer | undefined, Buffer, Buffer> {
    let heard = yield say
    while (heard.length < bytes(heard)) heard = yield
    if (heard.length > bytes(heard)) throw fault('says more than it was asked')
    return heard
  }
  const methods = user === undefined ? [0] : [0, 2]
  const chosen = yield* answered(Buffer.from([5, methods.length, ...methods]), () => 2)
  if (chosen[0] !== 5) throw fault('does not speak SOCKS 5')
  if (chosen[1] === 2 && user !== undefined) {
    const said = yield* answered(Buffer.concat([Buffer.of(1), counted(user), counted(password ?? '')]), () => 2)
    if (said[1] !== 0) throw fault('refuses the credential in its URL')
  } else if (chosen[1] !== 0) {
    throw fault(user === undefined ? 'wants a credential, in its URL' : 'takes no user name and password')
  }
  const asked = Buffer.concat([Buffer.of(5, 1, 0), addressOf(host), Buffer.of(port >> 8, port & 0xff)])
  const said = yield* answered(asked, replyBytes)
  if (said[0] !== 5) throw fault('does not speak SOCKS 5')
  if (said[1] === 2) throw fault(`does not allow connections to ${host}:${port}`)
  if (said[1] !== 0) throw fault(`cannot reach ${host}:${port} (SOCKS ${said[1]})`)
}

/** The proxy looks names up, as Go has it. */
function addressOf(host: string): Buffer {
  const family = isIP(host)
  if (family === 4) return Buffer.of(1, ...host.split('.').map(Number))
  return family === 6 ? Buffer.of(4, ...bytesOfIpv6(host)) : Buffer.concat([Buffer.of(3), counted(host)])
}

/** Behind a yes follows where the proxy speaks from, of which nothing is used: its kind says how long it is. */
function replyBytes(heard: Buffer): number {
  if (heard.length < 5) return (heard[1] ?? 0) === 0 ? 5 : heard.length
  const address = { 1: 4, 3: 1 + (heard[4] ?? 0), 4: 16 }[heard[3] ?? 1] ?? 4
  return heard[1] === 0 ? 6 + address : heard.length
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([Buffer.of(bytes.length), bytes])
}

/** As URLs spell them: groups in hexadecimal, the longest run of zeros as `::`. */
function bytesOfIpv6(host: string): number[] {
  const [before = [], after = []] = host.split('::').map((half) => half.split(':').filter(Boolean))
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].flatMap((group) => [
    Number.parseInt(group, 16) >> 8,
    Number.parseInt(group, 16) & 0xff,
  ])
}
