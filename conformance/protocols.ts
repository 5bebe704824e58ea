/** One server spoken to over HTTP/1.1 or HTTP/2: the same request goes out, and the answer is read the same way. */
import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { Agent, request } from 'node:https'
import type { Readable } from 'node:stream'

export type Protocol = 'HTTP/1.1' | 'HTTP/2'

export type Headers = Readonly<Record<string, string | readonly string[]>>

export type Sent = {
  readonly method: string
  /** It goes as it is: parsing it as a URL would mend what a case means to break. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

/** An answer whose head is there; a caller that does not read it to its end leaves it. */
export type Incoming = {
  readonly status: number
  readonly headers: Headers
  readonly stream: Readable
  leave(): void
}

/** The connections to a server, with or without a certificate. */
export type Connections = {
  open(sent: Sent): Promise<Incoming>
  close(): void
}

type Server = { readonly url: string; readonly ca: string; readonly cert?: string; readonly key?: string }

/** What any answer may take: twice what a watch is given. */
const headMsMax = 40_000
/** Go's client takes as many header fields as fit into a MiB. */
const headerPairsMax = 4_096

export function connections(protocol: Protocol, server: Server): Connections {
  return protocol === 'HTTP/2' ? new Http2(server) : new Http1(server)
}

class Http1 implements Connections {
  readonly #server: Server
  readonly #agent: Agent

  constructor(server: Server) {
    const { url: _, ...credentials } = server
    this.#server = server
    this.#agent = new Agent({ keepAlive: true, ...credentials })
  }

  open({ method, path, headers, body }: Sent): Promise<Incoming> {
    const { hostname, port } = new URL(this.#server.url)
    return new Promise((done, fail) => {
      const sent = request({ hostname, port, path, method, headers, agent: this.#agent }, (incoming) =>
        done({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers as Headers,
          stream: incoming,
          leave: () => incoming.destroy(),
        }),
      )
      sent.on('error', fail)
      sent.setTimeout(headMsMax, () => sent.destroy(new Error(`no answer to ${method} ${path}`)))
      sent.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

class Http2 implements Connections {
  readonly #server: Server
  #session: ClientHttp2Session | undefined

  constructor(server: Server) {
    this.#server = server
  }

  open({ method, path, headers, body }: Sent): Promise<Incoming> {
    const stream = this.#connected().request(
      { ...headers, ':method': method, ':path': path },
      { endStream: body === undefined },
    )
    return new Promise((done, fail) => {
      stream.on('error', fail)
      stream.on('close', () => fail(new Error(`no answer to ${method} ${path}: reset with ${stream.rstCode}`)))
      stream.setTimeout(headMsMax, () => stream.destroy(new Error(`no answer to ${method} ${path}`)))
      stream.on('response', ({ ':status': status = 0, ...rest }) =>
        done({
          status,
          headers: rest as Headers,
          stream,
          leave: () => stream.close(constants.NGHTTP2_CANCEL),
        }),
      )
      if (body !== undefined) stream.end(body)
    })
  }

  close(): void {
    this.#session?.destroy()
  }

  /** A session that has ended, or is about to, is replaced with the next request. */
  #connected(): ClientHttp2Session {
    if (this.#session !== undefined) return this.#session
    const { url, ...credentials } = this.#server
    const session = connect(url, { ...credentials, maxHeaderListPairs: headerPairsMax })
    const forget = () => {
      if (this.#session === session) this.#session = undefined
    }
    // What breaks with the session is told by each stream of it.
    session.on('error', forget)
    session.on('close', forget)
    session.on('goaway', forget)
    this.#session = session
    return session
  }
}
