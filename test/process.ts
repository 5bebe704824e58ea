/**
 * Processes for the scenarios: `ake serve` as a user starts it, and a client of it that speaks HTTP/2 or HTTP/1.1 with
 * the certificate of its kubeconfig. Nothing started here outlives the test that started it.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { credentialsIn } from './credentials.ts'

const program = join(import.meta.dirname, '..', 'bin', 'ake')
/** Cold and next to others on two cores a start has taken 3 s. */
const readyMsMax = 30_000

const connectionWindowBytes = 1 << 30
/** What a client queues is its own business here: its guard must not end what the server is tested with. */
const sessionMemoryMb = 2_000

export type Credentials = { readonly ca: string; readonly cert: string; readonly key: string }

export type Ended = { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly stderr: string }

export type Serving = {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly credentials: Credentials
  readonly ended: Promise<Ended>
  end(signal?: NodeJS.Signals): Promise<Ended>
}

const alive = new Map<ChildProcess, Promise<Ended>>()
process.on('exit', () => {
  for (const child of alive.keys()) child.kill('SIGKILL')
})

/** Whatever runs on this folder: a test that fails leaves nothing behind that would keep its room from ending. */
async function endAllOn(folder: string): Promise<void> {
  for (const [child, ended] of alive) {
    if (!child.spawnargs.includes(folder)) continue
    child.kill('SIGKILL')
    await ended
  }
}

/** Runs `ake` with these arguments to its end. */
export function runAke(args: readonly string[]): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close').then(([code, signal]) => {
    alive.delete(child)
    assert.deepEqual(credentialsIn(stderr), [], `ake ${args[0]} told a credential in its log`)
    return { code: code as number | null, signal: signal as NodeJS.Signals | null, stderr }
  })
  alive.set(child, ended)
  return { child, ended }
}

async function startServe(folder: string, ...more: string[]): Promise<Serving> {
  const { child, ended } = runAke(['serve', '--listen', '127.0.0.1:0', '--data', folder, ...more])
  const late = setTimeout(() => child.kill('SIGKILL'), readyMsMax)
  const ready = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      const url = /^ready (https:\S+)/.exec(line)?.[1]
      if (url !== undefined) resolve(url)
    })
    void ended.then(({ code, signal, stderr }) =>
      reject(new Error(`ake serve ended with ${code ?? signal} before it was ready: ${stderr}`)),
    )
  })
  const url = await ready.finally(() => clearTimeout(late))
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid as number,
    credentials: credentialsOf(join(folder, 'admin.kubeconfig')),
    ended,
    end: (signal = 'SIGTERM') => {
      child.kill(signal)
      return ended
    },
  }
}

/** A data folder and the servers started on it, all gone when `body` has ended. */
export async function withFolder(
  body: (folder: string, serve: (...more: string[]) => Promise<Serving>) => Promise<void>,
  start: typeof startServe = startServe,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'ake-test-'))
  const started: Serving[] = []
  try {
    await body(folder, async (...more) => {
      const serving = await start(folder, ...more)
      started.push(serving)
      return serving
    })
  } finally {
    await Promise.all([endAllOn(folder), ...started.map((serving) => serving.end('SIGKILL'))])
    rmSync(folder, { recursive: true, force: true })
  }
}

function credentialsOf(kubeconfig: string): Credentials {
  const text = readFileSync(kubeconfig, 'utf8')
  const field = (name: string) => {
    const found = new RegExp(`${name}["']?:\\s*["']?([A-Za-z0-9+/=]+)`).exec(text)?.[1]
    if (found === undefined) throw new Error(`${kubeconfig} has no ${name}`)
    return Buffer.from(found, 'base64').toString()
  }
  return {
    ca: field('certificate-authority-data'),
    cert: field('client-certificate-data'),
    key: field('client-key-data'),
  }
}

/** Resident memory of a process in MB. */
export function memoryMb(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
  return Number(line) / 1024
}

export type Answer = { readonly status: number; readonly headers: Record<string, unknown>; readonly body: Buffer }

/** One HTTP/2 connection. */
export class Client {
  readonly session: ClientHttp2Session

  constructor(serving: { url: string; credentials: Credentials }, settings: { initialWindowSize?: number } = {}) {
    const { ca, cert, key } = serving.credentials
    this.session = connect(serving.url, { ca, cert, key, settings, maxSessionMemory: sessionMemoryMb })
    // As Go's client: one stream that nobody reads does not hold up the others of its connection.
    this.session.once('connect', () => this.session.setLocalWindowSize(connectionWindowBytes))
    // What breaks with the connection is told by each stream of it.
    this.session.on('error', () => {})
  }

  open(method: string, path: string, headers: Record<string, string> = {}): ClientHttp2Stream {
    const body = method === 'POST' || method === 'PUT' || method === 'PATCH'
    const type = body ? { 'content-type': 'application/json' } : {}
    return this.session.request({ ':method': method, ':path': path, ...type, ...headers }, { endStream: !body })
  }

  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const stream = this.open(method, path, headers)
    if (body !== undefined) stream.end(Buffer.isBuffer(body) ? body : JSON.stringify(body))
    else stream.end()
    return answerOf(stream)
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { status, body: text } = await this.ask(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
    return JSON.parse(text.toString()) as T
  }

  [Symbol.dispose](): void {
    this.close()
  }

  close(): void {
    this.session.destroy()
  }
}

export function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let headers: Record<string, unknown> = {}
    stream.on('response', (got) => {
      headers = got
    })
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('error', reject)
    stream.on('close', () => {
      const status = Number(headers[':status'])
      if (Number.isNaN(status)) reject(new Error('the stream closed without an answer'))
      else resolve({ status, headers, body: Buffer.concat(chunks) })
    })
  })
}

export type Frame = {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: {
    readonly code?: number
    readonly metadata: {
      readonly name: string
      readonly resourceVersion: string
      readonly annotations?: Record<string, string>
    }
    readonly data?: Record<string, string>
  }
}

/** A watch, frame by frame; `ended` tells how the stream ended. */
export class Watch {
  readonly frames: Frame[] = []
  readonly stream: ClientHttp2Stream
  /** The code of the stream's reset: 0 for a clean end. */
  readonly ended: Promise<{ rstCode: number; clean: boolean }>
  #partial: string[] = []
  #clean = false
  #wake: (() => void)[] = []

  constructor(client: Client, path: string, seen: (frame: Frame) => void = () => {}) {
    this.stream = client.open('GET', path)
    this.stream.setEncoding('utf8')
    this.stream.on('error', () => {})
    this.stream.on('data', (text: string) => {
      const [rest, ...lines] = text.split('\n')
      this.#partial.push(rest as string)
      for (const next of lines) {
        const frame = JSON.parse(this.#partial.join('')) as Frame
        this.#partial = [next]
        this.frames.push(frame)
        seen(frame)
      }
      for (const wake of this.#wake.splice(0)) wake()
    })
    this.stream.on('end', () => {
      this.#clean = this.#partial.join('') === ''
    })
    this.ended = new Promise((resolve) => {
      this.stream.on('close', () => {
        for (const wake of this.#wake.splice(0)) wake()
        resolve({ rstCode: this.stream.rstCode ?? -1, clean: this.#clean && !this.stream.aborted })
      })
    })
  }

  /** Resolves when the frames so far satisfy the condition. */
  async until(condition: (frames: readonly Frame[]) => boolean, withinMs = 10_000): Promise<readonly Frame[]> {
    const deadline = Date.now() + withinMs
    while (!condition(this.frames)) {
      if (this.stream.closed) throw new Error(`the watch ended after ${this.frames.length} frames`)
      if (Date.now() > deadline) throw new Error(`waited in vain; ${this.frames.length} frames so far`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 1_000)
        this.#wake.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
    return this.frames
  }

  /** Resolves once the server has accepted it. */
  async opened(): Promise<void> {
    await once(this.stream, 'response')
  }
}

export function configMap(name: string, data: Record<string, string>, version?: string) {
  const metadata = version === undefined ? { name } : { name, resourceVersion: version }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }
}

export const configMaps = '/api/v1/namespaces/default/configmaps'

/** AKE_SEED repeats a run that failed. */
export const seedOfRun = Number(process.env.AKE_SEED ?? Math.floor(Math.random() * 0x7fffffff))
