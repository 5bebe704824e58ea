/**
 * An edge as a process, the line it hangs on and the API server at its other end: `ake serve` speaks enough of the API to be
 * an edge's cloud. All of it can be cut, ended and started again, and is gone when its test has ended. The cloud runs in the
 * test's own process, which saves a start; where it is to be killed it is a process, too.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Link, startLink } from '../conformance/link.ts'
import { freePorts } from '../conformance/ports.ts'
import { readConfig } from '../src/app/config.ts'
import { edge } from '../src/app/edge.ts'
import { serve } from '../src/app/serve.ts'
import { status } from '../src/app/status.ts'
import { systemClock } from '../src/base/clock.ts'
import { createLog, type Log } from '../src/base/log.ts'
import { until } from '../src/base/until.test-support.ts'
import { Client, type Credentials, type Ended, runAke, type Serving, withFolder } from './process.ts'

/** Cold and next to others on two cores a start has taken 3 s. */
const readyMsMax = 30_000

/** Runs a command of `ake` that serves, until it says that it is ready. */
export async function start(folder: string, args: readonly string[]): Promise<Serving> {
  const { child, ended } = runAke([...args, '--data', folder])
  const late = setTimeout(() => child.kill('SIGKILL'), readyMsMax)
  const ready = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      const url = /^ready (https:\S+)/.exec(line)?.[1]
      if (url !== undefined) resolve(url)
    })
    void ended.then(({ code, signal, stderr }) =>
      reject(new Error(`ake ${args[0]} ended with ${code ?? signal} before it was ready: ${stderr}`)),
    )
  })
  const url = await ready.finally(() => clearTimeout(late))
  const end = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  return servingAt(url, folder, { pid: child.pid as number, ended, end })
}

function servingAt(url: string, folder: string, life: Pick<Serving, 'pid' | 'ended' | 'end'>): Serving {
  return { url, port: Number(new URL(url).port), credentials: credentialsOf(join(folder, 'admin.kubeconfig')), ...life }
}

async function startHere(folder: string, run: (parts: Running) => Promise<void>): Promise<Serving> {
  const { url, ...life } = await runHere(run)
  return servingAt(url, folder, life)
}

/** What is started in this process: whatever the signal is, it ends in order. `log` is what it has told so far. */
export async function runHere(
  run: (parts: Running) => Promise<void>,
): Promise<Pick<Serving, 'url' | 'pid' | 'ended' | 'end'> & { log(): string }> {
  const ending = new AbortController()
  const { promise: ready, resolve, reject } = Promise.withResolvers<string>()
  let stderr = ''
  const write = (line: string) => {
    stderr += line
  }
  const log = createLog({ level: 'info', write })
  const ended = run({ log, signal: ending.signal, ready: resolve }).then(
    () => ({ code: 0, signal: null, stderr }),
    (error: Error) => {
      reject(error)
      return { code: 1, signal: null, stderr: stderr + String(error.stack) }
    },
  )
  const end = () => {
    ending.abort()
    return ended
  }
  return { url: await ready, pid: process.pid, ended, end, log: () => stderr }
}

type Running = { log: Log; signal: AbortSignal; ready(url: string): void }

/** `ake serve` in this process. */
export async function serveHere(
  folder: string,
  listen = '127.0.0.1:0',
  more: readonly string[] = [],
): Promise<Serving> {
  const args = ['--listen', listen, '--data', folder, ...more]
  const config = await readConfig('serve', { args, env: {} })
  return startHere(folder, (parts) => serve(config, parts))
}

/** A data folder and the servers started on it in this process, all gone when `body` has ended. */
export function withFolderHere(body: Parameters<typeof withFolder>[0]): Promise<void> {
  return withFolder(body, (folder, ...more) => serveHere(folder, undefined, more))
}

/** `ake edge` in this process. */
async function edgeHere(folder: string, args: readonly string[]): Promise<Serving> {
  const config = await readConfig('edge', { args: [...args, '--data', folder], env: {} })
  return startHere(folder, (parts) => edge(config, parts))
}

export function credentialsOf(kubeconfig: string): Credentials {
  const text = readFileSync(kubeconfig, 'utf8')
  const field = (name: string) => Buffer.from(new RegExp(`${name}: (\\S+)`).exec(text)?.[1] ?? '', 'base64').toString()
  return {
    ca: field('certificate-authority-data'),
    cert: field('client-certificate-data'),
    key: field('client-key-data'),
  }
}

export class Site {
  readonly folder: string
  readonly edgeFolder: string
  readonly cloudFolder: string
  /** A file of its own, so that it can be rewritten. */
  readonly kubeconfig: string
  link!: Link
  cloud!: Serving
  edge!: Serving
  /** Where it is to be killed rather than ended. */
  isCloudProcess = false
  isEdgeProcess = true
  /** What else the cloud is started with. */
  cloudOptions: readonly string[] = []
  #ports: number[] = []
  #options: readonly string[] = []
  readonly #clients: Client[] = []
  #administrator: { readonly of: Serving; readonly client: Client } | undefined

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'ake-edge-'))
    this.edgeFolder = join(this.folder, 'edge')
    this.cloudFolder = join(this.folder, 'cloud')
    this.kubeconfig = join(this.cloudFolder, 'admin.kubeconfig')
  }

  async startCloud(): Promise<Serving> {
    if (this.#ports.length === 0) this.#ports = await freePorts(2)
    const [port] = this.#ports as [number]
    this.cloud = this.isCloudProcess
      ? await start(this.cloudFolder, ['serve', '--listen', `127.0.0.1:${port}`, ...this.cloudOptions])
      : await serveHere(this.cloudFolder, `127.0.0.1:${port}`, this.cloudOptions)
    this.link ??= await startLink({ target: { host: '127.0.0.1', port: this.cloud.port } })
    return this.cloud
  }

  /** Started again it takes the options and the address that it had. */
  async startEdge(...options: string[]): Promise<Serving> {
    if (options.length > 0) this.#options = options
    const listen = ['--listen', `127.0.0.1:${this.#ports[1]}`, '--probe-every', '500ms']
    const args = [...this.upstream(), ...listen, ...this.#options]
    this.edge = this.isEdgeProcess
      ? await start(this.edgeFolder, ['edge', ...args])
      : await edgeHere(this.edgeFolder, args)
    return this.edge
  }

  protected upstream(): string[] {
    return ['--server', this.link.url, '--kubeconfig', this.kubeconfig]
  }

  client(serving: Serving = this.edge): Client {
    const client = new Client(serving)
    this.#clients.push(client)
    return client
  }

  /** A connection to the edge that is kept while both last: looking again and again does not shake hands again and again. */
  administrator(): Client {
    const { of, client } = this.#administrator ?? {}
    if (client !== undefined && of === this.edge && !client.session.closed && !client.session.destroyed) return client
    this.#administrator = { of: this.edge, client: this.client() }
    return this.#administrator.client
  }

  async readyz(): Promise<{ code: number; text: string }> {
    const { status, body } = await this.administrator().ask('GET', '/readyz?verbose')
    return { code: status, text: body.toString() }
  }

  /** How the edge sees its API server. */
  async untilCloudIs(state: 'reachable' | 'unreachable'): Promise<void> {
    const said = state === 'reachable' ? '[+]upstream ok: reachable' : `[!]upstream: ${state}`
    await until(async () => (await this.readyz()).text.includes(said), `cloud ${state}`)
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close()
    await Promise.all([this.edge, this.cloud].map((serving) => serving?.end('SIGKILL')))
    await this.link?.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Cloud, line and edge, all gone when `body` has ended. */
export async function withSite(
  options: readonly string[],
  body: (site: Site) => Promise<void>,
  { isCloudProcess = false, isEdgeProcess = true } = {},
): Promise<void> {
  const site = new Site()
  Object.assign(site, { isCloudProcess, isEdgeProcess })
  try {
    await site.startCloud()
    await site.startEdge(...options)
    await body(site)
  } finally {
    await site.end()
  }
}

/** The same with the edge in this process, for what neither kills it nor asks it to end by a signal twice. */
export function withSiteHere(options: readonly string[], body: (site: Site) => Promise<void>): Promise<void> {
  return withSite(options, body, { isEdgeProcess: false })
}

/** What `ake status` prints of the edge on a folder, asked for without a process each time. */
export async function statusOf(folder: string, ...more: string[]): Promise<string> {
  return status(await readConfig('status', { args: ['--data', folder, ...more], env: {} }), systemClock)
}

/** `ake` to its end, with what it printed. */
export async function outputOf(args: readonly string[]): Promise<Ended & { stdout: string }> {
  const { child, ended } = runAke(args)
  let stdout = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  return { ...(await ended), stdout }
}
