/** What the demo is made of: a cloud, a hub, two edges, and the line between these and the hub. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Unavailable } from '../../base/fault.ts'
import { statusPath } from '../../endpoint/ownpaths.ts'
import { hubIssue } from '../hub/issue.ts'
import type { HostPort } from '../optionkinds.ts'
import type { StatusDocument } from '../statusdocument.ts'
import { DemoClient } from './democlient.ts'
import { DemoProcess } from './demoprocess.ts'
import { DemoLine } from './line.ts'
import { mirrored, sampleObjects, sampleStatuses } from './samples.ts'

type Parts = {
  readonly folder: string
  /** Where edge 1 listens; the others take what is free. */
  readonly listen: readonly HostPort[]
  readonly logLevel: string
}

/** A server of the Kubernetes API, as a client sees it. */
export type DemoEndpoint = { readonly url: string; readonly kubeconfig: string; readonly client: DemoClient }

export type DemoServers = {
  readonly cloud: DemoEndpoint
  readonly edges: readonly DemoEndpoint[]
  /** Where a hub tells how it fares. */
  readonly health: string
  readonly line: DemoLine
}

export const edgeNames = ['edge-1', 'edge-2'] as const
const anyPort = ['--listen', '127.0.0.1:0']
const lookEveryMs = 50
/** Next to others on a slow machine; it takes a fraction of a second. */
const syncedMsMax = 60_000
/** A demo needs no long memory. */
const history = ['--history', '32Mi']

export class DemoSite {
  readonly #parts: Parts
  readonly #processes: DemoProcess[] = []
  readonly #clients: DemoClient[] = []
  #line: DemoLine | undefined
  readonly #failed = Promise.withResolvers<never>()
  #isEnding = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#failed.promise.catch(() => {})
  }

  /** Rejects when one of the servers ends without being told to. */
  get failed(): Promise<never> {
    return this.#failed.promise
  }

  async start(): Promise<DemoServers> {
    const { folder, listen, logLevel } = this.#parts
    const level = ['--log-level', logLevel]
    const state = join(folder, 'hub')
    const [cloud] = await Promise.all([
      // As a cloud that is far away would answer.
      this.#endpoint('cloud', ['serve', ...anyPort, ...history, ...level, '--compress', 'all']),
      this.#credentials(state),
    ])
    for (const [path, object] of sampleObjects) await cloud.client.send('POST', path, object)
    for (const [path, status] of sampleStatuses(new Date().toISOString())) {
      await cloud.client.send('PATCH', path, { status })
    }

    const hub = this.#process('hub', [
      ...['hub', ...anyPort, '--health-listen', '127.0.0.1:0', '--state', state, '--trust-edges'],
      // Where it tells how it fares is in its log, at info.
      ...['--kubeconfig', cloud.kubeconfig, '--drain', '1s', '--log-level', logLevel === 'debug' ? 'debug' : 'info'],
    ])
    const line = await DemoLine.open(Number(new URL(await hub.ready()).port))
    this.#line = line
    const [, health = ''] = /hub\.health.*?(127\.0\.0\.1:\d+)/.exec(hub.log) ?? []

    const wanted = mirrored.flatMap(({ name }) => ['--mirror', name])
    const edges = edgeNames.map(async (name, at) => {
      const at1 = listen.flatMap(({ host, port }) => ['--listen', `${host.includes(':') ? `[${host}]` : host}:${port}`])
      const through = ['--hub', `wss://127.0.0.1:${line.port}`, '--credential', join(folder, `${name}.pem`)]
      const edge = await this.#endpoint(name, [
        'edge',
        ...(at === 0 ? at1 : anyPort),
        ...through,
        ...wanted,
        ...history,
        ...level,
      ])
      await synced(edge.client, name)
      return edge
    })
    return { cloud, edges: await Promise.all(edges), health: `http://${health}`, line }
  }

  async end(): Promise<void> {
    this.#isEnding = true
    for (const client of this.#clients) client.close()
    await Promise.all(this.#processes.map((one) => one.end()))
    await this.#line?.close()
  }

  /** Where there is no time for anything else. */
  kill(): void {
    for (const one of this.#processes) one.kill()
  }

  #process(name: string, args: readonly string[]): DemoProcess {
    if (this.#isEnding) throw new Unavailable('the demo ends')
    const started = new DemoProcess({ name, args, folder: this.#parts.folder })
    this.#processes.push(started)
    void started.over.then(() => {
      if (!this.#isEnding) this.#failed.reject(started.fault('ended'))
    })
    return started
  }

  async #endpoint(name: string, args: readonly string[]): Promise<DemoEndpoint> {
    const data = join(this.#parts.folder, name)
    const url = await this.#process(name, [...args, '--data', data]).ready()
    const client = await DemoClient.open(url, data)
    this.#clients.push(client)
    return { url, kubeconfig: join(data, 'admin.kubeconfig'), client }
  }

  async #credentials(folder: string): Promise<void> {
    for (const name of edgeNames) {
      const out = join(this.#parts.folder, `${name}.pem`)
      await hubIssue(name, { kubeconfig: undefined, state: { folder }, out, force: false })
    }
  }
}

/** What it is asked before would be passed through, and its watches with it: they would end where the line is cut. */
async function synced(client: DemoClient, name: string): Promise<void> {
  const until = Date.now() + syncedMsMax
  for (;;) {
    const { interests } = JSON.parse(await client.send('GET', statusPath)) as StatusDocument
    const isSynced = (resource: string) =>
      interests.some(
        (one) => one.state === 'synced' && resource === [one.resource, one.group].filter(Boolean).join('.'),
      )
    if (mirrored.every((one) => isSynced(one.name))) return
    if (Date.now() > until) throw new Unavailable(`${name} of the demo has not heard of its hub`)
    await sleep(lookEveryMs)
  }
}
