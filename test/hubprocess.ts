/** `ake hub` as a process or in this one, and a site whose edge goes to its cloud directly or through one, on the same folder. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { readConfig } from '../src/app/config.ts'
import { hubActionOf } from '../src/app/hub/actions.ts'
import { hub } from '../src/app/hub/hub.ts'
import { runHere, Site } from './edgeprocess.ts'
import { runAke } from './process.ts'

/** Cold and next to others on two cores a start has taken 3 s. */
const readyMsMax = 30_000

export type HubProcess = ReturnType<typeof runAke> & { readonly url: string; readonly health: string }

const listen = ['--listen', '127.0.0.1:0', '--health-listen', '127.0.0.1:0']
const healthIn = /hub\.health.*?(127\.0\.0\.1:\d+)/

/** Where it listens is told by its output and its log. */
export async function startHub(args: readonly string[]): Promise<HubProcess> {
  const started = runAke(['hub', ...listen, ...args])
  const { child, ended } = started
  const late = setTimeout(() => child.kill('SIGKILL'), readyMsMax)
  let health = ''
  createInterface(child.stderr as NodeJS.ReadableStream).on('line', (line) => {
    health = healthIn.exec(line)?.[1] ?? health
  })
  const url = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout as NodeJS.ReadableStream).on('line', (line) => {
      const found = /^ready (wss:\S+)/.exec(line)?.[1]
      if (found !== undefined) resolve(found)
    })
    void ended.then(({ code, stderr }) => reject(new Error(`ake hub ended with ${code}: ${stderr}`)))
  }).finally(() => clearTimeout(late))
  return { ...started, url, health: `http://${health}` }
}

/** What an operator does beside a hub with `ake hub …`, without a process each time; answers what it prints. */
export async function operate(...words: string[]): Promise<string> {
  const act = hubActionOf(words)
  assert.ok(act !== undefined, `ake hub ${words.join(' ')} would run a hub`)
  return await act()
}

/** The credential of an edge, as its operator makes it; answers its path. */
export async function issue(name: string, folder: string, state: readonly string[]): Promise<string> {
  const out = join(folder, `${name}.pem`)
  await operate('issue', name, ...state, '--out', out)
  return out
}

type HubOfSite = { readonly pid: number; readonly url: string; readonly health: string; end(): Promise<unknown> }

async function startHubHere(args: readonly string[]): Promise<HubOfSite> {
  const config = await readConfig('hub', { args: [...listen, ...args], env: {} })
  const started = await runHere((parts) => hub(config, parts))
  return { ...started, health: `http://${healthIn.exec(started.log())?.[1]}` }
}

async function startHubProcess(args: readonly string[]): Promise<HubOfSite> {
  const { child, ended, ...where } = await startHub(args)
  const end = () => {
    child.kill('SIGKILL')
    return ended
  }
  return { ...where, pid: child.pid as number, end }
}

export class HubbedSite extends Site {
  hub!: HubOfSite
  /** Where it is to be stopped by a signal. */
  isHubProcess = false
  override isEdgeProcess = false
  way: 'direct' | 'hub' = 'hub'
  /** Where the state of the hub is; without it in a folder. */
  state: string | undefined
  #credential = ''

  async startHub(...options: string[]): Promise<void> {
    const state = ['--state', this.state ?? join(this.folder, 'state')]
    const start = this.isHubProcess ? startHubProcess : startHubHere
    const reached = ['--kubeconfig', this.kubeconfig]
    this.hub = await start([...state, ...reached, ...options])
    // One that starts again takes the credential that there is.
    if (this.#credential !== '') return
    this.#credential = await issue('n1', this.folder, this.state === undefined ? state : [...state, ...reached])
  }

  /** Starts the edge on its folder, this way from here on, with the options that it had. */
  async go(way: 'direct' | 'hub', ...options: string[]): Promise<void> {
    this.way = way
    this.link.lead({ host: '127.0.0.1', port: way === 'hub' ? Number(new URL(this.hub.url).port) : this.cloud.port })
    await this.startEdge(...options)
    await this.untilCloudIs('reachable')
  }

  protected override upstream(): string[] {
    if (this.way === 'direct') return super.upstream()
    return ['--hub', `wss://127.0.0.1:${this.link.port}`, '--credential', this.#credential]
  }

  /** Bytes of frames since it was started. */
  async hubTraffic(): Promise<{ readonly sent: number }> {
    const text = await (await fetch(`${this.hub.health}/metrics`)).text()
    return { sent: Number(/^ake_hub_sent_bytes_total (\d+)$/m.exec(text)?.[1]) }
  }

  /** How often the cloud was asked for all of a resource, however it was asked. */
  async lists(resource: string): Promise<number> {
    const text = (await this.client(this.cloud).ask('GET', '/metrics')).body.toString()
    const lines = text.split('\n').filter((line) => line.startsWith('ake_requests_total{verb="list"'))
    return lines
      .filter((line) => line.includes(`resource="${resource}"`))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }

  override async end(): Promise<void> {
    // In this process a hub ends in order, which takes longer while it has an edge.
    await this.edge?.end('SIGKILL')
    await this.hub?.end()
    await super.end()
  }
}

export async function withHubbedSite(
  body: (site: HubbedSite) => Promise<void>,
  { areProcesses = false } = {},
): Promise<void> {
  const site = new HubbedSite()
  site.isHubProcess = site.isEdgeProcess = areProcesses
  try {
    await site.startCloud()
    await body(site)
  } finally {
    await site.end()
  }
}
