/** Requests in somebody's name to one server or another, so that what both say to the same caller can be compared. */
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { credentialsIn } from '../test/credentials.ts'

/** How long any answer may take: an edge never waits longer for its cloud, and a stuck one must not hang the proof. */
const answerMsMax = 20_000
/** As often as client-go asks within one call. */
const triesMax = 10

/** Known by a certificate, by a token, or not at all. */
export type Person = { readonly cert?: string; readonly key?: string; readonly token?: string }

export type Server = { readonly url: string; readonly ca: string }

export type Asked = {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Anything but bytes goes as JSON. */
  readonly body?: unknown
}

export type Told = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A server as one person sees it; one connection at a time, kept. */
export class Seat {
  readonly #server: Server
  readonly #person: Person
  readonly #agent: Agent

  constructor(server: Server, person: Person) {
    this.#server = server
    this.#person = person
    const { cert, key } = person
    this.#agent = new Agent({ keepAlive: true, ca: server.ca, ...(cert === undefined ? {} : { cert, key }) })
  }

  close(): void {
    this.#agent.destroy()
  }

  async ask(path: string, asked: Asked = {}): Promise<Told> {
    const answer = await this.open(path, asked)
    let body = ''
    answer.setEncoding('utf8')
    // Who gets a stream where an answer was due must not wait for its end.
    const timer = setTimeout(() => answer.destroy(new Error(`no end of the answer to ${path}`)), answerMsMax)
    for await (const chunk of answer) body += chunk
    clearTimeout(timer)
    const status = answer.statusCode ?? 0
    const told = status >= 400 ? credentialsIn(body) : []
    if (told.length > 0) throw new Error(`the refusal of ${path} tells ${told.join(', ')}`)
    return { status, headers: answer.headers, body }
  }

  /** Resolves with the head; a caller that does not read the rest destroys it. One that is told to come again does, as clients do. */
  async open(path: string, asked: Asked = {}): Promise<IncomingMessage> {
    for (let tries = triesMax; ; tries--) {
      const answer = await this.#send(path, asked)
      const again = answer.statusCode === 429 ? answer.headers['retry-after'] : undefined
      if (again === undefined || tries <= 1) return answer
      answer.resume()
      await pause(Number(again) * 1_000)
    }
  }

  #send(path: string, { method = 'GET', headers = {}, body }: Asked): Promise<IncomingMessage> {
    const bytes = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
    const { token } = this.#person
    const sent = {
      ...(bytes === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(bytes.length) }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    }
    const { hostname, port } = new URL(this.#server.url)
    return new Promise((done, fail) => {
      // The path goes as it is: parsing it as a URL would mend what a case means to break.
      const asking = request({ hostname, port, path, method, headers: sent, agent: this.#agent }, (answer) => {
        // A stream may be silent for as long as it likes.
        asking.setTimeout(0)
        done(answer)
      })
      asking.on('error', fail)
      asking.setTimeout(answerMsMax, () => asking.destroy(new Error(`no answer to ${method} ${path}`)))
      asking.end(bytes)
    })
  }

  /**
   * A watch for a moment: what it is answered with and, if that is 200, the frames of the first `ms`. A stream that the
   * server ends within that time says so by `ended`.
   */
  async watch(path: string, ms: number, headers: Asked['headers'] = {}): Promise<Told & { readonly ended: boolean }> {
    const answer = await this.open(path, { headers })
    let body = ''
    let ended = false
    answer.setEncoding('utf8')
    answer.on('data', (chunk: string) => {
      body += chunk
    })
    answer.on('error', () => {})
    const over = new Promise<void>((done) => {
      answer.on('end', () => {
        ended = true
        done()
      })
    })
    let timer: NodeJS.Timeout | undefined
    await Promise.race([over, new Promise((done) => (timer = setTimeout(done, ms)))])
    clearTimeout(timer)
    answer.destroy()
    return { status: answer.statusCode ?? 0, headers: answer.headers, body, ended }
  }
}
