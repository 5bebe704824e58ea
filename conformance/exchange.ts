/** One case sent to one server: the request with its variables filled in, the answer or the frames of a watch. */
import { gunzipSync } from 'node:zlib'
import { decodeMessage, messageOf, readEnvelope } from '../src/kube/protobuf/protobuf.ts'
import type { Case } from './corpus.ts'
import type { Oracle } from './oracle.ts'
import { type Connections, connections, type Headers, type Incoming, type Protocol } from './protocols.ts'

/** What a watch that should have ended, or should have said more, is given. */
const answerMsMax = 20_000

export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

export type Variables = Map<string, string>

/** A watch that is open. */
type Watching = {
  /** How many frames it has told, where that is counted. */
  said?(): number
  finish(): Promise<Answer>
}

/** A server under comparison, with the connections to it. */
export class Side {
  readonly #known: Record<Protocol, Connections>
  readonly #strangers: Record<Protocol, Connections>

  constructor({ url, ca, cert, key }: Pick<Oracle, 'url' | 'ca' | 'cert' | 'key'>) {
    const both = (server: Parameters<typeof connections>[1]) => ({
      'HTTP/1.1': connections('HTTP/1.1', server),
      'HTTP/2': connections('HTTP/2', server),
    })
    this.#known = both({ url, ca, cert, key })
    this.#strangers = both({ url, ca })
  }

  close(): void {
    for (const each of [this.#known, this.#strangers]) for (const one of Object.values(each)) one.close()
  }

  async exchange(one: Case, variables: Variables, protocol: Protocol = 'HTTP/1.1'): Promise<Answer> {
    try {
      const incoming = await this.#open(one, variables, protocol)
      return { ...top(incoming), body: await bodyOf(incoming) }
    } catch (error) {
      return noAnswer(error)
    }
  }

  /** The stream is open, with its headers, when the returned promise is there. */
  async watch(one: Case, variables: Variables, protocol: Protocol = 'HTTP/1.1'): Promise<Watching> {
    const incoming = await this.#open(one, variables, protocol).catch(noAnswer)
    if ('body' in incoming) return { finish: () => Promise.resolve(incoming) }
    const most = one.watch?.frames ?? Number.POSITIVE_INFINITY
    let text = ''
    const done = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, answerMsMax)
      const finish = () => {
        clearTimeout(timer)
        resolve()
      }
      const { stream } = incoming
      stream.setEncoding('utf8')
      stream.on('data', (chunk: string) => {
        text += chunk
        if (text.split('\n').filter(isSaid).length > most) finish()
      })
      stream.on('end', finish)
      stream.on('error', finish)
    })
    return {
      said: () => text.split('\n').filter(isSaid).length - 1,
      finish: async () => {
        await done
        incoming.leave()
        const lines = text.split('\n').filter(isSaid)
        return { ...top(incoming), body: lines.length > most ? `${lines.slice(0, most).join('\n')}\n` : text }
      },
    }
  }

  async #open(one: Case, variables: Variables, protocol: Protocol): Promise<Incoming> {
    const filled = (text: string) => text.replaceAll(/<(\w+)>/g, (whole, name) => variables.get(name) ?? whole)
    const body = bytesOf(one.body, filled)
    // Told in any case: Node would send a DELETE's body without its length.
    const length: Record<string, string> = body === undefined ? {} : { 'content-length': String(body.length) }
    const given = Object.entries(one.headers).map(([name, value]) => [name, filled(value)] as const)
    const headers = { ...length, ...Object.fromEntries(given) }
    const side = one.anonymous === true ? this.#strangers : this.#known
    return side[protocol].open({ method: one.method, path: filled(one.path), headers, body })
  }
}

function bytesOf(body: unknown, filled: (text: string) => string): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body
  return Buffer.from(filled(typeof body === 'string' ? body : JSON.stringify(body)))
}

/** Plain bookmarks come when each server's own clock says so: they do not count as frames. */
export function isSaid(line: string): boolean {
  return !line.startsWith('{"type":"BOOKMARK"') || line.includes('k8s.io/initial-events-end')
}

/** No answer is an answer too: the other side may have one. */
function noAnswer(error: unknown): Answer {
  return { status: 0, headers: {}, body: (error as Error).message }
}

function top({ status, headers }: Incoming): Pick<Answer, 'status' | 'headers'> {
  return { status, headers }
}

async function bodyOf({ stream, headers }: Incoming): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const whole = headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
  const type = String(headers['content-type'] ?? '')
  // Documents have a form of their own, and prose in it: of those the headers are compared.
  if (type.includes('proto-openapi')) return `<${type}>`
  return type.startsWith('application/vnd.kubernetes.protobuf') ? fromProtobuf(whole) : whole.toString()
}

/** As JSON, so that names and times can be mapped; that both are the same bytes has a step of its own. */
function fromProtobuf(bytes: Buffer): string {
  if (bytes.length === 0) return ''
  const { raw, ...type } = readEnvelope(bytes)
  // The oldest documents name no version, and metadata is the same in both of its own.
  const version = type.apiVersion === '' ? 'v1' : type.apiVersion.replace('v1beta1', 'v1')
  const message = messageOf(version, type.kind)
  return message === undefined ? bytes.toString('latin1') : decodeMessage(message, raw, type).toString()
}

/** What a case wants remembered of its answer, for the cases after it. */
export function take(one: Case, answer: Answer, variables: Variables): void {
  for (const [variable, path] of Object.entries(one.take ?? {})) {
    const value = path.startsWith('header.')
      ? answer.headers[path.slice('header.'.length)]
      : path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], parseOr(answer.body))
    variables.set(variable, String(value))
  }
}

function parseOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
