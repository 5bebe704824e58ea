/** A client of one endpoint of the demo, as its administrator: requests, and watches that are read line by line. */
import { readFile } from 'node:fs/promises'
import { type ClientHttp2Session, connect } from 'node:http2'
import { join } from 'node:path'

export class DemoClient {
  readonly #session: ClientHttp2Session

  private constructor(session: ClientHttp2Session) {
    this.#session = session
    // What breaks with the connection is told by each stream of it.
    session.on('error', () => {})
  }

  static async open(url: string, data: string): Promise<DemoClient> {
    const read = (name: string) => readFile(join(data, 'pki', name), 'utf8')
    const [ca, cert, key] = await Promise.all([read('ca.crt'), read('admin.crt'), read('admin.key')])
    return new DemoClient(connect(url, { ca, cert, key }))
  }

  /** Resolves with the body of an answer that says yes. */
  send(method: string, path: string, body?: unknown): Promise<string> {
    return new Promise((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
      const stream = this.#session.request({ ':method': method, ':path': path, 'content-type': type })
      let status = 0
      let text = ''
      stream.on('response', (headers) => {
        status = Number(headers[':status'])
      })
      stream.setEncoding('utf8')
      stream.on('data', (chunk: string) => {
        text += chunk
      })
      stream.on('close', () =>
        status >= 200 && status < 300 ? resolve(text) : reject(new Error(`${method} ${path}: ${status} ${text}`)),
      )
      stream.on('error', reject)
      stream.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** Each line of a watch; then, once, that it is over. */
  watch(path: string, on: { line(text: string): void; over(): void }): void {
    const stream = this.#session.request({ ':path': path })
    let partial = ''
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => {
      const lines = (partial + chunk).split('\n')
      partial = lines.pop() ?? ''
      for (const line of lines) on.line(line)
    })
    stream.on('error', () => {})
    stream.on('close', () => on.over())
  }

  close(): void {
    this.#session.destroy()
  }
}
