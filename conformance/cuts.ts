/**
 * A watcher that is cut after every single event and resumes from that event's version sees exactly what an uncut one
 * sees, byte for byte: from memory, after a restart from disk, with selectors, over HTTP/2 and HTTP/1.1.
 */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { request } from 'node:https'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { Ake } from './ake.ts'
import type { Step } from './step.ts'

const sessionMemoryMb = 4_000_000
const eventsMade = 2_000
const keys = 60
const collection = '/api/v1/namespaces/default/configmaps'
/** The last write goes to this object and carries this label, so that every selector sees it. */
const lastName = 'map-7'
const selectors = {
  everything: '',
  'by label': '&labelSelector=on%3Dyes',
  'by name': `&fieldSelector=metadata.name%3D${lastName}`,
}

export const step: Step = {
  name: 'cuts',
  tier: 'default',
  minutes: 2,
  async run({ dir, ake, progress }) {
    const folder = join(dir, 'store')
    let server = await ake({ dir: folder })
    const first = await makeHistory(server)
    const faults: string[] = []
    let cutsMade = 0
    let passed = 0
    for (const life of ['as made', 'after an orderly restart', 'after kill -9']) {
      if (life === 'after kill -9') await server.kill()
      else if (life !== 'as made') await server.stop()
      if (life !== 'as made') server = await ake({ dir: folder })
      for (const [name, selector] of Object.entries(selectors)) {
        const begunMs = performance.now()
        const { cuts, fault } = await compare(server, selector, first)
        progress(`${name}, ${life}: ${cuts} cuts in ${Math.round(performance.now() - begunMs)} ms`)
        cutsMade += cuts
        if (fault === undefined) passed++
        else faults.push(`${name}, ${life}: ${fault}`)
      }
    }
    const figures = `${cutsMade} resumed watches over a history of ${eventsMade} events`
    return { passed, failed: faults.length, notes: [figures, ...faults] }
  },
}

/** Returns the version before the first event, and that of the last. */
async function makeHistory(server: Ake): Promise<{ from: number; to: number }> {
  const session = open(server)
  const listed = await ask(session, 'GET', collection)
  const from = Number(listed.metadata.resourceVersion)
  const existing = new Set<string>()
  let to = from
  for (let count = 1; count <= eventsMade; count++) {
    const last = count === eventsMade
    const name = last ? lastName : `map-${(count * 7919) % keys}`
    const made = {
      metadata: { name, labels: { on: last || count % 3 > 0 ? 'yes' : 'no' } },
      data: { count: `${count}` },
    }
    if (!existing.has(name)) {
      to = Number((await ask(session, 'POST', collection, made)).metadata.resourceVersion)
      existing.add(name)
    } else if (count % 5 === 0 && !last) {
      await ask(session, 'DELETE', `${collection}/${name}`)
      existing.delete(name)
    } else {
      to = Number((await ask(session, 'PUT', `${collection}/${name}`, made)).metadata.resourceVersion)
    }
  }
  session.close()
  return { from, to }
}

type Compared = { readonly cuts: number; readonly fault?: string }

async function compare(server: Ake, selector: string, { from, to }: { from: number; to: number }): Promise<Compared> {
  const session = open(server)
  let cuts = 0
  try {
    const path = (version: number) => `${collection}?watch=true&resourceVersion=${version}${selector}`
    const whole: string[] = []
    for await (const line of lines(http2Get(session, path(from)))) {
      whole.push(line)
      if (versionOf(line) >= to) break
    }
    const ways = [{ name: 'HTTP/2', get: (version: number) => http2Get(session, path(version)) }]
    // A connection for each event: enough for the shortest of the histories.
    if (whole.length < 100) ways.push({ name: 'HTTP/1.1', get: (version) => http1Get(server, path(version)) })
    for (const { name, get } of ways) {
      let version = from
      for (const [at, line] of whole.entries()) {
        const got = await firstLine(get(version))
        cuts++
        if (got !== line) {
          const fault = `event ${at + 1} of ${whole.length} over ${name} from ${version} is ${got}, not ${line}`
          return { cuts, fault }
        }
        version = versionOf(line)
      }
    }
    return { cuts }
  } finally {
    session.destroy()
  }
}

function versionOf(line: string): number {
  const { type, object } = JSON.parse(line)
  if (type === 'ERROR') throw new Error(`the watch ended: ${line}`)
  return Number(object.metadata.resourceVersion)
}

function open({ url, ca, cert, key }: Ake): ClientHttp2Session {
  // Node's count of a session's memory does not forget what a cancelled stream had still to get.
  return connect(url, { ca, cert, key, maxSessionMemory: sessionMemoryMb })
}

function http2Get(session: ClientHttp2Session, path: string): Promise<Readable> {
  return Promise.resolve(session.request({ ':path': path }))
}

async function http1Get({ url, ca, cert, key }: Ake, path: string): Promise<Readable> {
  const sent = request(new URL(path, url), { ca, cert, key, agent: false }).end()
  const [answer] = (await once(sent, 'response')) as [Readable]
  return answer
}

/** Takes one line and cuts the stream. */
async function firstLine(stream: Promise<Readable>): Promise<string> {
  for await (const line of lines(stream)) return line
  return 'the end of the stream'
}

async function* lines(opened: Promise<Readable>): AsyncIterable<string> {
  const stream = await opened
  let rest = ''
  try {
    for await (const chunk of stream.setEncoding('utf8')) {
      const parts = (rest + chunk).split('\n')
      rest = parts.pop() as string
      yield* parts
    }
  } finally {
    stream.destroy()
  }
}

type Answered = { readonly metadata: { readonly resourceVersion: string } }

async function ask(session: ClientHttp2Session, method: string, path: string, body?: object): Promise<Answered> {
  const stream = session.request({ ':method': method, ':path': path, 'content-type': 'application/json' })
  stream.end(body === undefined ? undefined : JSON.stringify(body))
  const answered = once(stream, 'response') as Promise<[{ ':status': number }]>
  let text = ''
  for await (const chunk of stream.setEncoding('utf8')) text += chunk
  const [headers] = await answered
  if (headers[':status'] >= 300) throw new Error(`${method} ${path}: ${text}`)
  return JSON.parse(text)
}
