/** `ake hub` processes over one state, as several replicas are, each ended and started again under its edges. */
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type AkeProgram, startProgram } from './ake.ts'
import type { EdgeWay } from './edge/edge.ts'
import { type Link, startLink } from './link.ts'
import { freePorts } from './ports.ts'

const run = promisify(execFile)
const programHere = join(import.meta.dirname, '..', 'bin', 'ake')

type HubOptions = {
  /** Its log goes there, and its state unless that is elsewhere. */
  readonly dir: string
  /** `secret:NAMESPACE/NAME`, for several that are one to their edges as hubs of one folder are. */
  readonly state?: string
  /** With which it reads, and stands for nodes; without it the hub has what its pod has. */
  readonly kubeconfig?: string | undefined
  readonly args?: readonly string[]
  /** The launcher of another checkout, or one that runs `ake` in a pod. */
  readonly program?: string | undefined
  readonly signal: AbortSignal
}

export class Hub {
  readonly port: number
  /** Where its health is, and its status. */
  readonly health: string
  readonly #start: (program?: string) => Promise<AkeProgram>
  #program: AkeProgram

  private constructor(parts: {
    port: number
    health: string
    program: AkeProgram
    start: (program?: string) => Promise<AkeProgram>
  }) {
    this.port = parts.port
    this.health = parts.health
    this.#program = parts.program
    this.#start = parts.start
  }

  static async start(
    { dir, state = stateOf(dir), kubeconfig, args = [], program, signal }: HubOptions,
    name: string,
  ): Promise<Hub> {
    mkdirSync(dir, { recursive: true })
    const [port, healthPort] = (await freePorts(2)) as [number, number]
    const way = kubeconfig === undefined ? [] : ['--kubeconfig', kubeconfig]
    const words = [
      ...['hub', ...way, '--state', state, '--listen', `127.0.0.1:${port}`],
      ...['--health-listen', `127.0.0.1:${healthPort}`, ...args],
    ]
    const start = (by = program) => startProgram(words, { log: join(dir, `${name}.log`), program: by, signal })
    return new Hub({ port, health: `http://127.0.0.1:${healthPort}`, program: await start(), start })
  }

  get pid(): number {
    return this.#program.pid
  }

  /** By the same launcher unless another is named. */
  async restart(how: 'kill' | 'orderly', program?: string): Promise<void> {
    await this.end(how)
    this.#program = await this.#start(program)
  }

  async end(how: 'kill' | 'orderly'): Promise<void> {
    if (how === 'kill') return await this.#program.kill()
    const code = await this.#program.stop()
    if (code !== 0) throw new Error(`an orderly end of ake hub had the exit code ${code}`)
  }

  async status<T>(): Promise<T> {
    const answer = await fetch(`${this.health}/ake/status`)
    if (!answer.ok) throw new Error(`the status of the hub: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }

  async metrics(): Promise<string> {
    return await (await fetch(`${this.health}/metrics`)).text()
  }
}

/** A state that lies in the cluster is read and written as this administrator. */
export type SharedState = { readonly state: string; readonly kubeconfig: string }

/** The credential of an edge, as its operator makes it; answers its path. */
export async function issueEdge(dir: string, node: string, shared?: SharedState): Promise<string> {
  const out = join(dir, `${node}.pem`)
  const where = shared === undefined ? [] : ['--kubeconfig', shared.kubeconfig]
  await run(programHere, [
    'hub',
    'issue',
    node,
    '--state',
    shared?.state ?? stateOf(dir),
    ...where,
    '--out',
    out,
    '--force',
  ])
  return out
}

type Between = {
  readonly dir: string
  readonly oracle: { readonly kubeconfig: string }
  /** Leads to the hub from here on. */
  readonly link: Pick<Link, 'lead' | 'port'>
  /** Of a hub that does not trust its edge; without them it does, and may everything: its clients are administrators. */
  readonly rights?: { readonly kubeconfig: string }
  /** Of the edge. */
  readonly node?: string
  readonly signal: AbortSignal
}

/** A hub of its own between an edge and its API server. */
export async function putBetween({
  dir,
  oracle,
  link,
  rights,
  node = 'edge-1',
  signal,
}: Between): Promise<{ way: EdgeWay; hub: Hub }> {
  const at = join(dir, 'hub')
  const rates = ['--edge-requests-per-second', '1000', '--caller-requests-per-second', '1000']
  const args = rights === undefined ? ['--trust-edges', ...rates] : []
  const { kubeconfig } = rights ?? oracle
  const hub = await Hub.start({ dir: at, kubeconfig, args, signal }, 'hub-1')
  link.lead({ host: '127.0.0.1', port: hub.port })
  return { way: { hub: [`wss://127.0.0.1:${link.port}`], credential: await issueEdge(at, node) }, hub }
}

/** The same behind a line of its own, for a proof that cuts none. */
export async function standBetween(
  parts: Omit<Between, 'link' | 'oracle'> & { readonly oracle: { readonly kubeconfig: string; readonly port: number } },
): Promise<{ way: EdgeWay; stop(): Promise<void> }> {
  const link = await startLink({ target: { host: '127.0.0.1', port: parts.oracle.port } })
  const { way, hub } = await putBetween({ ...parts, link })
  return {
    way,
    stop: async () => {
      await hub.end('kill')
      await link.close()
    },
  }
}

/** Hubs of one folder are one hub to their edges. */
function stateOf(dir: string): string {
  return join(dir, 'state')
}
