/** Requests whose bodies and answers are bytes, and watches as the frames they consist of, to one server. */
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'

export type Server = { readonly url: string; readonly ca: string; readonly cert: string; readonly key: string }

export type Answer = { readonly status: number; readonly type: string; readonly bytes: Buffer }

export const protobufType = 'application/vnd.kubernetes.protobuf'
const answerMsMax = 30_000
const lengthBytes = 4

export class Wire {
  readonly #server: Server
  readonly #agent: Agent

  constructor(server: Server) {
    this.#server = server
    const { ca, cert, key } = server
    this.#agent = new Agent({ keepAlive: true, ca, cert, key })
  }

  close(): void {
    this.#agent.destroy()
  }

  get(path: string, accept: string): Promise<Answer> {
    return this.send('GET', path, { accept })
  }

  async send(method: string, path: string, headers: Record<string, string>, body?: Buffer): Promise<Answer> {
    const answer = await this.#open(method, path, headers, body)
    const pieces: Buffer[] = []
    for await (const piece of answer) pieces.push(piece as Buffer)
    return { ...headOf(answer), bytes: Buffer.concat(pieces) }
  }

  /** The first frames of a watch, each with what stands around it taken off but the length of a message in protobuf. */
  async watch(path: string, accept: string, frames: number, meanwhile?: () => Promise<void>): Promise<Buffer[]> {
    const answer = await this.#open('GET', path, { accept })
    const isProtobuf = headOf(answer).type.startsWith(protobufType)
    if (answer.statusCode !== 200) throw new Error(`${path} as ${accept}: ${answer.statusCode}`)
    const changed = meanwhile?.()
    let bytes = Buffer.alloc(0)
    const late = setTimeout(() => answer.destroy(new Error(`${path}: too few events`)), answerMsMax)
    const found: Buffer[] = []
    for await (const piece of answer) {
      bytes = Buffer.concat([bytes, piece as Buffer])
      for (let end = endOf(bytes, isProtobuf); end <= bytes.length; end = endOf(bytes, isProtobuf)) {
        found.push(Buffer.from(bytes.subarray(isProtobuf ? lengthBytes : 0, end)))
        bytes = bytes.subarray(end)
      }
      if (found.length >= frames) break
    }
    clearTimeout(late)
    answer.destroy()
    await changed
    return found.slice(0, frames)
  }

  #open(method: string, path: string, headers: Record<string, string>, body?: Buffer): Promise<IncomingMessage> {
    const { hostname, port } = new URL(this.#server.url)
    const sent = body === undefined ? headers : { ...headers, 'content-length': String(body.length) }
    return new Promise((done, fail) => {
      const asking = request({ hostname, port, path, method, headers: sent, agent: this.#agent }, done)
      asking.on('error', fail)
      asking.setTimeout(answerMsMax, () => asking.destroy(new Error(`no answer to ${method} ${path}`)))
      asking.end(body)
    })
  }
}

function headOf({ statusCode, headers }: IncomingMessage): Pick<Answer, 'status' | 'type'> {
  return { status: statusCode ?? 0, type: headers['content-type'] ?? '' }
}

/** Behind the end of the bytes where the frame is not complete. */
function endOf(bytes: Buffer, isProtobuf: boolean): number {
  if (isProtobuf) return bytes.length < lengthBytes ? bytes.length + 1 : lengthBytes + bytes.readUInt32BE(0)
  const end = bytes.indexOf(0x0a)
  return end < 0 ? bytes.length + 1 : end + 1
}
