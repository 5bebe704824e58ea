/**
 * `ake demo`: the main job, visible. A small site in a cloud of its own (`ake serve`), an edge in front of it, and a cloud
 * that goes away again and again: clients of the edge do not notice. Until Ctrl-C, in a temporary folder.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'
import { mirrorLimits } from '../mirror/mirror.ts'
import type { DemoConfig } from './config.ts'
import { edge } from './edge.ts'
import { sampleObjects, sampleStatuses, sensors } from './samples.ts'
import { serve } from './serve.ts'

/** A demo needs no long memory. */
const historyBytes = 32 * 1024 * 1024
const historyAge = 3_600_000
const changeEveryMs = 500
const thereMs = 20_000
const awayMs = 15_000

type Seen = { events: number; writes: number; reads: number; refused: number }

export async function demo(config: DemoConfig, parts: { log: Log; signal: AbortSignal }): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'ake-demo-'))
  const stop = new AbortController()
  const signal = AbortSignal.any([parts.signal, stop.signal])
  // That the cloud goes away is the point, and no news.
  const quiet: Log = { ...parts.log, warn: parts.log.debug, with: () => quiet }
  const cloud = new Cloud(join(folder, 'cloud'), quiet)
  try {
    await cloud.appear()
    const address = Promise.withResolvers<string>()
    const data = join(folder, 'edge')
    const running = edge(
      {
        ...{ listen: config.listen, logLevel: config.logLevel, data, history: historyBytes, historyAge },
        ...{
          kubeconfig: join(cloud.folder, 'admin.kubeconfig'),
          server: [],
          hub: [],
          credential: undefined,
          mirror: [],
          clientCredential: [],
        },
        ...{
          compress: 'remote',
          encryptionKey: undefined,
          node: undefined,
          inCluster: 'off',
          inClusterFor: [],
          clientCa: undefined,
          tokenOfflineAge: historyAge,
          apiAudience: [],
          probeEvery: 1_000,
          otherClusterAfter: 60_000,
          firstListMax: 50_000,
          firstListBytes: 256 * 1024 * 1024,
          mirrorBytes: mirrorLimits.bytesMax,
        },
      },
      { log: quiet, signal, ready: address.resolve },
    )
    const shown = address.promise.then((url) => show(url, { data, cloud, signal }))
    // Whichever ends first ends the other: a server that cannot listen, or a client that cannot go on.
    await Promise.race([running, shown]).finally(() => stop.abort())
    await running
  } finally {
    await cloud.vanish()
    await rm(folder, { recursive: true, force: true })
    process.stdout.write(`\nremoved ${folder}\n`)
  }
}

/** A real API server would be somewhere else; this one is in the same process, and leaves when it is told to. */
class Cloud {
  readonly folder: string
  readonly #log: Log
  #port = 0
  #stop: AbortController | undefined
  #serving: Promise<void> = Promise.resolve()
  client: ClientHttp2Session | undefined

  constructor(folder: string, log: Log) {
    this.folder = folder
    this.#log = log
  }

  async appear(): Promise<void> {
    this.#stop = new AbortController()
    const address = Promise.withResolvers<string>()
    const listen = [{ host: '127.0.0.1', port: this.#port }]
    this.#serving = serve(
      {
        ...{ listen, data: this.folder, history: historyBytes, historyAge, compress: 'remote' },
        ...{ authorization: 'open', logLevel: 'error' },
        encryptionKey: undefined,
      },
      { log: this.#log, signal: this.#stop.signal, ready: address.resolve },
    )
    const url = await Promise.race([address.promise, this.#serving.then(() => '')])
    this.#port = Number(new URL(url).port)
    this.client = await connectTo(url, this.folder)
  }

  async vanish(): Promise<void> {
    this.client?.destroy()
    this.client = undefined
    this.#stop?.abort()
    await this.#serving
  }
}

async function show(url: string, parts: { data: string; cloud: Cloud; signal: AbortSignal }): Promise<void> {
  const { data, cloud, signal } = parts
  for (const [path, object] of sampleObjects) await send(cloud.client as ClientHttp2Session, 'POST', path, object)
  for (const [path, status] of sampleStatuses(new Date().toISOString())) {
    await send(cloud.client as ClientHttp2Session, 'PATCH', path, { status })
  }
  const client = await connectTo(url, data)
  const seen: Seen = { events: 0, writes: 0, reads: 0, refused: 0 }
  try {
    process.stdout.write(introduction(url, join(data, 'admin.kubeconfig')))
    watchSensors(client, seen)
    let turnsAt = Date.now() + thereMs
    while (!signal.aborted) {
      if (Date.now() > turnsAt) {
        const away = cloud.client !== undefined
        if (away) await cloud.vanish()
        else await cloud.appear()
        say(
          away
            ? 'the cloud is gone; the edge goes on'
            : 'the cloud is back; what it changed arrives as ordinary events',
        )
        turnsAt = Date.now() + (away ? awayMs : thereMs)
      }
      if (cloud.client !== undefined) await change(cloud.client, seen)
      await look(client, seen)
      if (process.stdout.isTTY) process.stdout.write(`\r\x1b[2K${await figures(client, cloud, seen)}`)
      await sleep(changeEveryMs, undefined, { signal }).catch(() => {})
    }
  } finally {
    client.close()
    say(`${seen.reads} reads at the edge, ${seen.refused} refused; ${seen.writes} changes, ${seen.events} watch events`)
  }
}

function say(sentence: string): void {
  process.stdout.write(`${process.stdout.isTTY ? '\r\x1b[2K' : ''}${sentence}\n`)
}

/** What every client on an edge node does all day. */
async function look(client: ClientHttp2Session, seen: Seen): Promise<void> {
  seen.reads++
  await send(client, 'GET', '/apis/edge.example.com/v1/sensors?resourceVersion=0').catch(() => seen.refused++)
}

function introduction(url: string, kubeconfig: string): string {
  return `A cloud with a small site in it, and an edge that mirrors it, at ${url}. The cloud goes away every
${thereMs / 1000} seconds for ${awayMs / 1000}. Try, in another terminal, at any moment:

  export KUBECONFIG=${kubeconfig}
  kubectl get sensors -n shop --watch
  kubectl get pods -n shop --field-selector spec.nodeName=edge-1 -o wide
  bin/ake status --data ${join(kubeconfig, '..')}

Ctrl-C ends it and removes everything.
`
}

async function connectTo(url: string, folder: string): Promise<ClientHttp2Session> {
  const read = (name: string) => readFile(join(folder, 'pki', name), 'utf8')
  const [ca, cert, key] = await Promise.all([read('ca.crt'), read('admin.crt'), read('admin.key')])
  const session = connect(url, { ca, cert, key })
  session.on('error', () => {})
  return session
}

/** One sensor gets a new reading: a patch of its status, as its driver would send it. */
async function change(client: ClientHttp2Session, seen: { writes: number }): Promise<void> {
  const sensor = sensors[seen.writes % sensors.length] as (typeof sensors)[number]
  const celsius = Math.round((4 + 3 * Math.sin(seen.writes / 7)) * 10) / 10
  const path = `/apis/edge.example.com/v1/namespaces/shop/sensors/${sensor.metadata.name}/status`
  await send(client, 'PATCH', path, { status: { celsius, readings: Math.floor(seen.writes / sensors.length) + 1 } })
  seen.writes++
}

function watchSensors(client: ClientHttp2Session, seen: { events: number }): void {
  const stream = client.request({ ':path': '/apis/edge.example.com/v1/sensors?watch=1&allowWatchBookmarks=1' })
  stream.on('data', (chunk: Buffer) => {
    for (const byte of chunk) if (byte === 0x0a) seen.events++
  })
  stream.on('error', () => {})
}

async function figures(client: ClientHttp2Session, cloud: Cloud, seen: Seen): Promise<string> {
  const metrics = await send(client, 'GET', '/metrics')
  const total = (name: string) =>
    [...metrics.matchAll(new RegExp(`^${name}(?:{.*})? (\\d+)`, 'gm'))].reduce(
      (sum, found) => sum + Number(found[1]),
      0,
    )
  return (
    `cloud ${cloud.client === undefined ? 'away' : 'there'} · objects ${total('ake_objects')} · ` +
    `changes ${seen.writes} · watch events ${seen.events} · reads ${seen.reads}, refused ${seen.refused}`
  )
}

function send(client: ClientHttp2Session, method: string, path: string, body?: unknown): Promise<string> {
  return new Promise((resolve, reject) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const stream = client.request({ ':method': method, ':path': path, 'content-type': type })
    let status = 0
    let text = ''
    stream.on('response', (headers) => {
      status = Number(headers[':status'])
    })
    stream.setEncoding('utf8')
    stream.on('data', (chunk: string) => {
      text += chunk
    })
    stream.on('end', () => (status < 300 ? resolve(text) : reject(new Error(`${method} ${path}: ${status} ${text}`))))
    stream.on('error', reject)
    stream.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
