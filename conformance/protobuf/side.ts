/**
 * A server under comparison, spoken to in protobuf wherever a case would in JSON: bodies of kinds that have a message go as
 * one, answers are asked for in it, and read back into the JSON that cases are compared by.
 */
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { decodeMessage, encodeMessage, messageOf, readEnvelope, wrap } from '../../src/kube/protobuf/protobuf.ts'
import { parseRequest } from '../../src/kube/request.ts'
import type { Case } from '../corpus.ts'
import { type Answer, isSaid, type Variables } from '../exchange.ts'
import { protobufType, type Server } from './ask.ts'

const answerMsMax = 20_000
const lengthBytes = 4
/** As Go clients ask: what has no message comes as JSON. */
const accepted = `${protobufType},application/json`

export type TypeMeta = { readonly apiVersion: string; readonly kind: string }
/** What a path takes, by group, version, resource and subresource, where it is not the object itself. */
export type Expected = (path: string) => TypeMeta | undefined

export class ProtobufSide {
  /** Bodies that went as a message, and answers that came as one. */
  readonly figures = { sent: 0, received: 0 }
  readonly #server: Server
  readonly #expected: Expected
  readonly #agent: Agent
  readonly #stranger: Agent

  constructor(server: Server, expected: Expected) {
    const { ca, cert, key } = server
    this.#server = server
    this.#expected = expected
    this.#agent = new Agent({ keepAlive: true, ca, cert, key })
    this.#stranger = new Agent({ keepAlive: true, ca })
  }

  close(): void {
    this.#agent.destroy()
    this.#stranger.destroy()
  }

  async exchange(one: Case, variables: Variables): Promise<Answer> {
    try {
      const incoming = await this.#open(one, variables)
      const pieces: Buffer[] = []
      for await (const piece of incoming) pieces.push(piece as Buffer)
      return { ...headOf(incoming), body: this.#textOf(incoming, Buffer.concat(pieces)) }
    } catch (error) {
      return { status: 0, headers: {}, body: (error as Error).message }
    }
  }

  async watch(one: Case, variables: Variables): Promise<{ finish(): Promise<Answer> }> {
    const incoming = await this.#open(one, variables)
    const most = one.watch?.frames ?? Number.POSITIVE_INFINITY
    let bytes = Buffer.alloc(0)
    const isMessages = isProtobuf(incoming) && incoming.statusCode === 200
    const lines = () => (isMessages ? eventsOf(bytes) : bytes.toString().split('\n')).filter(isSaid)
    const done = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, answerMsMax)
      const finish = () => {
        clearTimeout(timer)
        resolve()
      }
      incoming.on('data', (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk])
        // Of lines the last is always the beginning of the next.
        if (lines().length > (isMessages ? most - 1 : most)) finish()
      })
      incoming.on('end', finish)
      incoming.on('error', finish)
    })
    return {
      finish: async () => {
        await done
        incoming.destroy()
        if (incoming.statusCode !== 200) return { ...headOf(incoming), body: this.#textOf(incoming, bytes) }
        if (isMessages) this.figures.received++
        return { ...headOf(incoming), body: lines().slice(0, most).join('\n') }
      },
    }
  }

  #open(one: Case, variables: Variables): Promise<IncomingMessage> {
    const filled = (text: string) => text.replaceAll(/<(\w+)>/g, (whole, name) => variables.get(name) ?? whole)
    const path = filled(one.path)
    const given = Object.fromEntries(Object.entries(one.headers).map(([name, value]) => [name, filled(value)]))
    const headers: Record<string, string> = { ...given, ...(given.accept === undefined ? { accept: accepted } : {}) }
    let body = bytesOf(one.body, filled)
    const message = this.#messageFor(one, path, body)
    if (message !== undefined) {
      this.figures.sent++
      body = message
      headers['content-type'] = protobufType
    }
    if (body !== undefined) headers['content-length'] = String(body.length)
    const { hostname, port } = new URL(this.#server.url)
    const agent = one.anonymous === true ? this.#stranger : this.#agent
    return new Promise((done, fail) => {
      const sent = request({ hostname, port, path, method: one.method, headers, agent }, done)
      sent.on('error', fail)
      sent.setTimeout(answerMsMax * 2, () => sent.destroy(new Error(`no answer to ${one.method} ${path}`)))
      sent.end(body)
    })
  }

  /** Undefined: it goes as the case has it. */
  #messageFor({ method, headers, body }: Case, path: string, bytes: Buffer | undefined): Buffer | undefined {
    const type = headers['content-type'] ?? 'application/json'
    if (bytes === undefined || type !== 'application/json' || typeof body !== 'object' || Buffer.isBuffer(body)) return
    if (method !== 'POST' && method !== 'PUT' && method !== 'DELETE') return
    try {
      const { apiVersion = '', kind = '' } = JSON.parse(bytes.toString()) as Partial<TypeMeta>
      const expected = method === 'DELETE' ? { apiVersion: 'v1', kind: 'DeleteOptions' } : this.#expected(path)
      const message = messageOf(apiVersion, kind) ?? (expected && messageOf(expected.apiVersion, expected.kind))
      return message && wrap({ apiVersion, kind }, encodeMessage(message, bytes))
    } catch {
      // No message can say what the case says: a string where a number belongs.
      return undefined
    }
  }

  #textOf(incoming: IncomingMessage, bytes: Buffer): string {
    if (!isProtobuf(incoming)) return bytes.toString()
    this.figures.received++
    return `${jsonOf(bytes)}\n`
  }
}

/** What paths take, as the server itself says it. */
export async function expectedAt(documents: (path: string) => Promise<string>): Promise<Expected> {
  type Resources = { resources: { name: string; kind: string; group?: string; version?: string }[] }
  const known = new Map<string, TypeMeta>()
  const { groups } = JSON.parse(await documents('/apis')) as { groups: { versions: { groupVersion: string }[] }[] }
  for (const version of ['v1', ...groups.flatMap(({ versions }) => versions.map((one) => one.groupVersion))]) {
    const root = version === 'v1' ? '/api/v1' : `/apis/${version}`
    const { resources } = JSON.parse(await documents(root)) as Resources
    for (const { name, kind, group, version: own } of resources) {
      const apiVersion = own === undefined ? version : group === undefined || group === '' ? own : `${group}/${own}`
      known.set(`${version} ${name}`, { apiVersion, kind })
    }
  }
  return (path) => {
    const { group, version, resource, subresource } = parseRequest('POST', path)
    const name = subresource === '' ? resource : `${resource}/${subresource}`
    return known.get(`${group === '' ? version : `${group}/${version}`} ${name}`)
  }
}

function jsonOf(bytes: Buffer): string {
  const { raw, apiVersion, kind } = readEnvelope(bytes)
  const message = messageOf(apiVersion, kind)
  if (message === undefined) throw new Error(`a message of the unknown kind ${apiVersion} ${kind}`)
  return decodeMessage(message, raw, { apiVersion, kind }).toString()
}

function eventsOf(bytes: Buffer): string[] {
  const events: string[] = []
  for (let at = 0; at + lengthBytes <= bytes.length; ) {
    const end = at + lengthBytes + bytes.readUInt32BE(at)
    if (end > bytes.length) break
    const event = bytes.subarray(at + lengthBytes, end)
    const type = event.toString('latin1', 2, 2 + (event[1] as number))
    events.push(`{"type":"${type}","object":${jsonOf(event.subarray(event.indexOf('k8s\0')))}}`)
    at = end
  }
  return events
}

function isProtobuf({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.startsWith(protobufType) === true
}

function headOf({ statusCode, headers }: IncomingMessage): Pick<Answer, 'status' | 'headers'> {
  return { status: statusCode ?? 0, headers: headers as Answer['headers'] }
}

function bytesOf(body: unknown, filled: (text: string) => string): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body
  return Buffer.from(filled(typeof body === 'string' ? body : JSON.stringify(body)))
}
