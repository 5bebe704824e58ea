/** A cluster that approves and signs certificates of nodes by itself, a hub with the rights of `deploy/hub.yaml`, and machines that join. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'
import { type AkeProgram, startProgram } from '../ake.ts'
import { applyManifest, state } from '../hub/objects.ts'
import { Hub } from '../hubs.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink, type Target } from '../link.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import { freePorts } from '../ports.ts'
import type { StepContext } from '../step.ts'
import { publishHubs, serviceWords } from './service.ts'

const run = promisify(execFile)
const program = join(import.meta.dirname, '..', '..', 'bin', 'ake')
const waiting = { withinMs: 60_000, everyMs: 100 }

const signers =
  '--controllers=certificatesigningrequest-approving-controller,certificatesigningrequest-signing-controller'

type WorldOptions = {
  /** How long what the cluster signs is good. With the five minutes by which the signer backdates, of two minutes another is due within 36 s of the last. */
  readonly signing?: string
  readonly apiServerArgs?: readonly string[]
  /** Only those that approve and sign: others would remove pods of nodes that are not there. */
  readonly signersOnly?: boolean
  readonly hubArgs?: readonly string[]
  /** Two that know each other, behind a balancer that gives each connection to the next. */
  readonly isBalanced?: boolean
}

const auditName = 'joiners.jsonl'

export type Run = { readonly code: number; readonly out: string; readonly err: string }

type Started = Pick<StepContext, 'dir' | 'signal' | 'progress'>

export class JoiningWorld {
  readonly context: Started
  readonly oracle: Oracle
  readonly hub: Hub
  readonly #others: readonly Hub[]
  readonly #balancer: Link | undefined

  private constructor(context: Started, oracle: Oracle, [hub, ...others]: readonly [Hub, ...Hub[]], balancer?: Link) {
    this.context = context
    this.oracle = oracle
    this.hub = hub
    this.#others = others
    this.#balancer = balancer
  }

  static async open(context: Started, options: WorldOptions = {}): Promise<JoiningWorld> {
    const { dir, signal, progress } = context
    const { signing = '2m', apiServerArgs = [], hubArgs = [], signersOnly = false, isBalanced = false } = options
    await mkdir(dir, { recursive: true })
    const home = join(dir, 'oracle')
    await mkdir(home, { recursive: true, mode: 0o700 })
    const policy = join(home, 'policy.json')
    const rules = [
      { level: 'Metadata', userGroups: ['system:bootstrappers'], omitStages: ['RequestReceived', 'ResponseStarted'] },
      // The hub's own question, whether a name is taken.
      {
        ...{ level: 'Metadata', users: ['system:serviceaccount:ake-system:ake-hub'], verbs: ['get'] },
        ...{ resources: [{ group: '', resources: ['nodes'] }], omitStages: ['RequestReceived'] },
      },
      { level: 'None' },
    ]
    await writeFile(policy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules }))
    const audit = [`--audit-policy-file=${policy}`, `--audit-log-path=${join(home, auditName)}`]
    const controllers = [`--cluster-signing-duration=${signing}`, ...(signersOnly ? [signers] : [])]
    const oracle = await startOracle({
      ...{ dir: home, extraArgs: [...audit, ...apiServerArgs], controllers, signal, progress },
    })
    try {
      await applyManifest(oracle)
      const kubeconfig = join(dir, 'hub.kubeconfig')
      const token = await oracle.tokenFor('ake-system', 'ake-hub')
      await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, token })
      const start = (name: string, more: readonly string[] = []) =>
        Hub.start({ dir, state, kubeconfig, args: ['--drain', '1s', ...hubArgs, ...more], signal }, name)
      if (!isBalanced) return new JoiningWorld(context, oracle, [await start('hub')])
      const hubs = await Promise.all([start('hub-1', serviceWords), start('hub-2', serviceWords)])
      await publishHubs(oracle, hubs)
      const targets = hubs.map(({ port }) => ({ host: '127.0.0.1', port }))
      const balancer = await startLink({ target: targets[0] as Target })
      balancer.lead(...targets)
      return new JoiningWorld(context, oracle, hubs, balancer)
    } catch (error) {
      oracle.stop()
      throw error
    }
  }

  /** What joiners, and the hub for them, asked the API server: a line for each request. */
  get audit(): string {
    return join(this.oracle.dir, auditName)
  }

  /** How many lines each hub has to others. */
  async lines(): Promise<readonly string[]> {
    const all = await Promise.all([this.hub, ...this.#others].map((hub) => hub.metrics()))
    return all.map((text) => /^ake_hub_replicas (\d+)$/m.exec(text)?.[1] ?? '0')
  }

  get url(): string {
    return `wss://127.0.0.1:${this.#balancer?.port ?? this.hub.port}`
  }

  /** The words of the command that `ake hub token` prints, without the first. */
  async token(url = this.url): Promise<string[]> {
    const where = ['--kubeconfig', this.oracle.kubeconfig, '--state', state, '--hub', url]
    const { out, err, code } = await this.ake(['hub', 'token', '--ttl', '1h', ...where])
    const line = out.split('\n').find((one) => one.startsWith('ake join '))
    if (code !== 0 || line === undefined) throw new Error(`ake hub token: ${code} ${out} ${err}`)
    return line.split(' ').slice(1)
  }

  async ake(words: readonly string[]): Promise<Run> {
    const { signal } = this.context
    try {
      const { stdout, stderr } = await run(program, [...words], { signal })
      return { code: 0, out: stdout, err: stderr }
    } catch (error) {
      const { code, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string }
      return { code: typeof code === 'number' ? code : -1, out: stdout, err: stderr }
    }
  }

  folder(name: string): string {
    return join(this.context.dir, name)
  }

  /** An edge from what a join wrote, and from nothing else. */
  startEdge(name: string): Promise<AkeProgram> {
    const { signal } = this.context
    const config = join(this.folder(name), 'edge.yaml')
    return startProgram(['edge', '--config', config], { log: this.folder(`${name}.log`), signal })
  }

  async freePort(): Promise<number> {
    const [port] = await freePorts(1)
    return port as number
  }

  /** As the administrator. */
  async read<T>(path: string): Promise<T | undefined> {
    const { status, body } = await ask(this.oracle, path)
    return status === 200 ? (JSON.parse(body) as T) : undefined
  }

  async requests(): Promise<readonly string[]> {
    type List = { readonly items: readonly { readonly metadata: { readonly name: string } }[] }
    const list = await this.read<List>('/apis/certificates.k8s.io/v1/certificatesigningrequests')
    return (list?.items ?? []).map(({ metadata }) => metadata.name)
  }

  until(what: string, holds: () => Promise<boolean>, withinMs: number = waiting.withinMs): Promise<unknown> {
    return until(holds, what, { ...waiting, withinMs, signal: this.context.signal })
  }

  async stop(): Promise<void> {
    await Promise.all([this.hub, ...this.#others].map((hub) => hub.end('kill')))
    await this.#balancer?.close()
    this.oracle.stop()
  }
}
