/** `ake demo`: the main job, visible: serves a small site from a temporary folder and keeps it changing until Ctrl-C. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../base/log.ts'
import type { DemoConfig } from './config.ts'
import { sampleObjects, sensors } from './samples.ts'
import { serve } from './serve.ts'

/** A demo needs no long memory. */
const historyBytes = 32 * 1024 * 1024
const changeEveryMs = 500

export async function demo(config: DemoConfig, parts: { log: Log; signal: AbortSignal }): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'ake-demo-'))
  const stop = new AbortController()
  const signal = AbortSignal.any([parts.signal, stop.signal])
  try {
    const address = Promise.withResolvers<string>()
    const serving = serve(
      { ...config, data: folder, history: historyBytes },
      { log: parts.log, signal, ready: address.resolve },
    )
    const shown = address.promise.then((url) => show(url, folder, signal))
    // Whichever ends first ends the other: a server that cannot listen, or a client that cannot go on.
    await Promise.race([serving, shown]).finally(() => stop.abort())
    await serving
  } finally {
    await rm(folder, { recursive: true, force: true })
    process.stdout.write(`\nremoved ${folder}\n`)
  }
}

async function show(url: string, folder: string, signal: AbortSignal): Promise<void> {
  const client = await connectTo(url, folder)
  try {
    for (const [path, object] of sampleObjects) await send(client, 'POST', path, object)
    process.stdout.write(introduction(url, join(folder, 'admin.kubeconfig')))
    const seen = { events: 0, writes: 0 }
    watchSensors(client, seen)
    while (!signal.aborted) {
      await change(client, seen)
      if (process.stdout.isTTY) process.stdout.write(`\r\x1b[2K${await figures(client, seen)}`)
      await sleep(changeEveryMs, undefined, { signal }).catch(() => {})
    }
  } finally {
    client.close()
  }
}

function introduction(url: string, kubeconfig: string): string {
  return `A Kubernetes API server with a small site in it is at ${url}. Try, in another terminal:

  export KUBECONFIG=${kubeconfig}
  kubectl get sensors -n shop --watch
  kubectl get pods -n shop --field-selector spec.nodeName=edge-1 -o wide
  kubectl explain sensors.spec

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

async function figures(client: ClientHttp2Session, seen: { events: number; writes: number }): Promise<string> {
  const metrics = await send(client, 'GET', '/metrics')
  const total = (name: string) =>
    [...metrics.matchAll(new RegExp(`^${name}(?:{.*})? (\\d+)`, 'gm'))].reduce(
      (sum, found) => sum + Number(found[1]),
      0,
    )
  const memory = Math.round(total('process_resident_memory_bytes') / 1024 / 1024)
  return (
    `objects ${total('ake_objects')} · version ${total('ake_version')} · writes ${seen.writes} · ` +
    `watch events ${seen.events} · watches ${total('ake_watchers')} · memory ${memory} MB`
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
