/** A small API server over real TLS on loopback, behind a relay that can refuse, reset or swallow everything. */
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { type CertificateRequest, issueCertificate, type KeyPair } from '../pki/certificate.ts'

const dates = { notBefore: Date.UTC(2020, 0, 1), notAfter: Date.UTC(2090, 0, 1) }
const authority = issueCertificate({ ...dates, use: 'authority', subject: { commonName: 'fake-ca' } })

export const otherAuthority = issueCertificate({ ...dates, use: 'authority', subject: { commonName: 'other-ca' } })
export const authorityCert = authority.cert

export function issue(request: Partial<CertificateRequest> & { use: 'client' | 'server'; name: string }): KeyPair {
  const hosts = request.use === 'server' ? { hosts: ['127.0.0.1', 'localhost'] } : {}
  const asked = { ...dates, ...hosts, subject: { commonName: request.name }, ...request } as CertificateRequest
  return issueCertificate(asked, { name: { commonName: 'fake-ca' }, key: createPrivateKey(authority.key) })
}

const serving = issue({ use: 'server', name: 'fake' })

export type Handle = (request: Http2ServerRequest, response: Http2ServerResponse) => void

export type FakeParts = {
  /** Offered over TLS; without h2 the way is HTTP/1.1. */
  readonly http2?: boolean
  readonly handle?: Handle
  readonly upgrade?: (request: Http2ServerRequest, socket: Duplex, head: Buffer) => void
  readonly streamsMax?: number
  readonly serving?: KeyPair
}

export class FakeServer {
  readonly #relay: Server
  readonly #pairs = new Set<{ near: Socket; far: Socket }>()
  readonly #server
  readonly #sockets = new Set<Socket>()
  /** TLS connections that were made, and what came over them. */
  connections = 0
  readonly requests: { method: string; path: string; headers: Record<string, unknown>; raw: string[]; name: string }[] =
    []
  handle: Handle
  /** What probes get. */
  ready: Handle = (_request, response) => void response.end('ok')
  /** Sees a TLS connection first; answers true if it took it. */
  intercept: ((socket: TLSSocket) => boolean) | undefined
  #frozen = false

  private constructor(parts: FakeParts) {
    this.handle = parts.handle ?? ((_request, response) => void response.end('ok'))
    const { http2 = true, streamsMax } = parts
    this.#server = createSecureServer({
      ...(parts.serving ?? serving),
      ca: authority.cert,
      requestCert: true,
      rejectUnauthorized: false,
      allowHTTP1: true,
      maxHeaderListPairs: 2_048, // a real one sets no limit
      ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      ...(streamsMax !== undefined && { settings: { maxConcurrentStreams: streamsMax } }),
    })
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    const listeners = this.#server.listeners('secureConnection') as ((socket: TLSSocket) => void)[]
    this.#server.removeAllListeners('secureConnection')
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      this.connections++
      if (this.intercept?.(socket)) return
      for (const listener of listeners) listener.call(this.#server, socket)
    })
    this.#server.on('request', (request, response) => {
      const socket = (request.stream?.session?.socket ?? request.socket) as TLSSocket
      const name = String(socket.getPeerCertificate?.()?.subject?.CN ?? '')
      const { method, url: path, headers, rawHeaders } = request
      this.requests.push({ method, path, headers: { ...headers }, raw: [...rawHeaders], name })
      request.on('error', () => {})
      response.on('error', () => {})
      if (request.url === '/readyz') this.ready(request, response)
      else this.handle(request, response)
    })
    if (parts.upgrade) this.#server.on('upgrade', parts.upgrade as never)
    this.#server.on('sessionError', () => {})
    this.#server.on('session', (session) => void session.on('error', () => {}))
    this.#server.on('tlsClientError', () => {})
    this.#relay = createServer({ pauseOnConnect: true }, (near) => this.#pair(near))
  }

  static async start(parts: FakeParts = {}): Promise<FakeServer> {
    const fake = new FakeServer(parts)
    await new Promise<void>((resolve) => void fake.#server.listen(0, '127.0.0.1', resolve))
    await new Promise<void>((resolve) => void fake.#relay.listen(0, '127.0.0.1', resolve))
    return fake
  }

  get port(): number {
    return (this.#relay.address() as AddressInfo).port
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`
  }

  paths(): string[] {
    return this.requests.filter(({ path }) => path !== '/readyz').map(({ method, path }) => `${method} ${path}`)
  }

  /** Accepts connections, takes nothing and says nothing, on those there are as well. */
  freeze(): void {
    this.#frozen = true
    for (const { near, far } of this.#pairs) {
      near.unpipe(far)
      far.unpipe(near)
      near.pause()
      far.pause()
    }
  }

  /** New connections work again; what was frozen stays so. */
  thaw(): void {
    this.#frozen = false
  }

  reset(): void {
    // One that is ending already cannot be reset: Node would never close it, and the process never exit.
    for (const { near } of this.#pairs) {
      if (near.writableEnded) near.destroy()
      else near.resetAndDestroy()
    }
  }

  /** From now on connections are refused; those there are end. */
  async refuse(): Promise<number> {
    const { port } = this
    const closed = new Promise((resolve) => this.#relay.close(resolve))
    this.reset()
    await closed
    return port
  }

  async accept(port: number): Promise<void> {
    await new Promise<void>((resolve) => void this.#relay.listen(port, '127.0.0.1', resolve))
  }

  async end(): Promise<void> {
    if (this.#relay.listening) await this.refuse()
    this.reset()
    const closed = new Promise((resolve) => this.#server.close(resolve))
    // One that was intercepted, or has much to say that is not read, never notices that its other end is gone.
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #pair(near: Socket): void {
    const far = connect((this.#server.address() as AddressInfo).port, '127.0.0.1')
    const pair = { near, far }
    this.#pairs.add(pair)
    near.setNoDelay(true)
    far.setNoDelay(true)
    near.on('error', () => far.destroy()).on('close', () => far.destroy())
    far
      .on('error', () => near.destroy())
      .on('close', () => {
        this.#pairs.delete(pair)
        near.destroy()
      })
    if (this.#frozen) return
    near.pipe(far)
    far.pipe(near)
  }
}

/** A folder with a kubeconfig for this server; `remove` takes it away. */
export function writeKubeconfig(server: string, user: Record<string, string>, cluster: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'ake-upstream-'))
  const path = join(folder, 'kubeconfig')
  const write = (nextServer: string, nextUser: Record<string, string>, nextCluster = cluster) => {
    const ca = { 'certificate-authority-data': Buffer.from(authority.cert).toString('base64') }
    const content = {
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
      clusters: [{ name: 'k', cluster: { server: nextServer, ...ca, ...nextCluster } }],
      users: [{ name: 'u', user: nextUser }],
    }
    writeFileSync(path, JSON.stringify(content))
  }
  write(server, user)
  return { folder, path, write, remove: () => rmSync(folder, { recursive: true }) }
}

export function inline({ cert, key }: KeyPair): Record<string, string> {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  return { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) }
}

/** An answer that goes on, as a watch does. */
export function begin(response: Http2ServerResponse): void {
  response.writeHead(200, {})
  response.write('begun')
}
