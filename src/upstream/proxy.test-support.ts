/** A proxy on loopback that leads every tunnel to a port that the test names, or behaves as a test wants. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer as createTls } from 'node:tls'
import { issue } from './fakeserver.test-support.ts'

export type ProxyKind = 'http' | 'https' | 'socks5'

export class TestProxy {
  readonly kind: ProxyKind
  readonly #server: Server
  readonly #sockets = new Set<Duplex>()
  readonly #port: (asked: string) => number
  /** What it was asked for: `HOST:PORT`, and the credential as `USER:PASSWORD` before it. */
  readonly asked: string[] = []
  /** Connections to it that were accepted. */
  connections = 0
  /** Has a connection instead of the proxy, from the moment that its greeting is whole. */
  instead: ((socket: Duplex) => void) | undefined

  private constructor(kind: ProxyKind, port: (asked: string) => number) {
    this.kind = kind
    this.#port = port
    const serve = (socket: Duplex) => {
      this.connections++
      this.#sockets.add(socket)
      socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket))
      if (kind === 'socks5') void this.#socks(socket)
      else void this.#connect(socket)
    }
    this.#server = kind === 'https' ? createTls(issue({ use: 'server', name: 'proxy' }), serve) : createServer(serve)
  }

  static async start(kind: ProxyKind, port: (asked: string) => number): Promise<TestProxy> {
    const proxy = new TestProxy(kind, port)
    await new Promise<void>((resolve) => void proxy.#server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  url(credential = ''): string {
    return `${this.kind}://${credential}127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends every tunnel. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async end(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.cut()
    await closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end()
  }

  async #connect(socket: Duplex): Promise<void> {
    const head = await heard(socket, (text) => text.includes('\r\n\r\n'))
    const [, target = ''] = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head) ?? []
    const [, basic = ''] = /^proxy-authorization: basic (\S+)\r$/im.exec(head) ?? []
    this.asked.push(`${Buffer.from(basic, 'base64')} ${target}`.trim())
    if (this.instead !== undefined) return this.instead(socket)
    this.#join(socket, 'HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n')
  }

  async #socks(socket: Duplex): Promise<void> {
    const hello = Buffer.from(await heard(socket, (text) => text.length >= 2 + text.charCodeAt(1)), 'latin1')
    if (this.instead !== undefined) return this.instead(socket)
    const wantsCredential = hello.subarray(2).includes(2)
    socket.write(Buffer.of(5, wantsCredential ? 2 : 0))
    let credential = ''
    if (wantsCredential) {
      const whole = (text: string) => text.length >= 3 + text.charCodeAt(1) + text.charCodeAt(2 + text.charCodeAt(1))
      const said = await heard(socket, whole)
      const user = said.slice(2, 2 + said.charCodeAt(1))
      credential = `${user}:${said.slice(3 + user.length)}`
      socket.write(Buffer.of(1, 0))
    }
    const asked = Buffer.from(await heard(socket, (text) => text.length >= 10), 'latin1')
    const port = asked.readUInt16BE(asked.length - 2)
    const host = asked[3] === 3 ? asked.toString('latin1', 5, asked.length - 2) : [...asked.subarray(4, -2)].join('.')
    this.asked.push(`${credential} ${host}:${port}`.trim())
    this.#join(socket, Buffer.of(5, 0, 0, 3, 1, 65, 0, 1))
  }

  #join(near: Duplex, yes: string | Buffer): void {
    const far: Socket = connect(this.#port(this.asked.at(-1) ?? ''), '127.0.0.1')
    this.#sockets.add(far)
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.on('close', () => far.destroy())
    far.once('connect', () => {
      near.write(yes)
      near.pipe(far).pipe(near)
    })
    far.once('close', () => this.#sockets.delete(far))
  }
}

async function heard(socket: Duplex, isWhole: (text: string) => boolean): Promise<string> {
  let text = ''
  while (!isWhole(text)) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) text += chunk.toString('latin1')
    else await new Promise((resolve) => socket.once('readable', resolve))
  }
  return text
}
