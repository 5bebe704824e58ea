/**
 * The place of the attacks: a real API server behind a script, `ake edge` in front of that, and callers of little right. The
 * edge has the rights of deploy/edge-rbac.yaml and is known by a token, which passes through the script.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import type { Ake } from '../ake.ts'
import { Seat, type Told } from '../asking.ts'
import { startEdge } from '../edge/edge.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { ask, type Oracle } from '../oracle.ts'
import { applyRbac } from '../rights/objects.ts'
import type { StepContext } from '../step.ts'
import { type Scripted, startScripted } from './scripted.ts'

export const space = 'attacks'
export const rbac = '/apis/rbac.authorization.k8s.io/v1'

const blindRole = `${space}-blind`
const seen = { resources: ['*'], verbs: ['get', 'list', 'watch'] }
const blindRules = [{ ...seen, apiGroups: ['', 'apiextensions.k8s.io', 'apiregistration.k8s.io'] }]

/** Long enough for a start, discovery and a first sync on a busy machine. */
const settledMsMax = 30_000
const lookEveryMs = 100

export type World = {
  readonly oracle: Oracle
  readonly scripted: Scripted
  readonly signal: AbortSignal
  /** Another edge behind the script; `args` go to its command line. */
  edge(name: string, options?: EdgeOptions): Promise<Attacked>
  /** Whatever is not there yet; the answer's body. */
  make<T>(path: string, body: object): Promise<T>
  remove(path: string): Promise<void>
  /** A service account of the attacked namespace and its token; its rights are a role and a binding of its name. */
  account(name: string, rules: readonly object[]): Promise<string>
  close(): Promise<void>
}

export type EdgeOptions = {
  readonly args?: readonly string[]
  /** Straight to the API server: callers known by certificates. */
  readonly direct?: boolean
  /** One that may not read roles, so that nothing tells it of their changes. */
  readonly blind?: boolean
}

/** An edge, and how callers see it. */
export class Attacked {
  readonly #start: () => Promise<Ake>
  readonly #seats = new Set<Seat>()
  ake: Ake

  constructor(ake: Ake, start: () => Promise<Ake>) {
    this.ake = ake
    this.#start = start
  }

  seat(person: { token?: string; cert?: string; key?: string }): Seat {
    const seat = new Seat(this.ake, person)
    this.#seats.add(seat)
    return seat
  }

  administrator(): Seat {
    return this.seat(this.ake)
  }

  async status<T>(): Promise<T> {
    const administrator = this.administrator()
    const { body } = await administrator.ask('/ake/status')
    administrator.close()
    return JSON.parse(body) as T
  }

  async untilCloudIs(state: string): Promise<void> {
    const isSo = async () => (await this.#state()) === state
    await until(isSo, `the cloud is ${state}`, { withinMs: settledMsMax, everyMs: lookEveryMs })
  }

  async untilCloudIsAway(): Promise<void> {
    const isAway = async () => (await this.#state()) !== 'reachable'
    await until(isAway, 'the edge has noticed', { withinMs: settledMsMax, everyMs: lookEveryMs })
  }

  async #state(): Promise<string> {
    return (await this.status<{ upstream: { state: string } }>()).upstream.state
  }

  async end(): Promise<void> {
    for (const seat of this.#seats) seat.close()
    this.#seats.clear()
    await this.ake.kill()
  }

  async restart({ meanwhile = async () => {} }: { meanwhile?: () => Promise<void> } = {}): Promise<void> {
    await this.end()
    await meanwhile()
    this.ake = await this.#start()
  }
}

export async function openWorld({ dir, signal, oracle: asked }: StepContext): Promise<World> {
  await mkdir(dir, { recursive: true })
  const oracle = await asked()
  const scripted = await startScripted(oracle)
  const edges: Attacked[] = []
  const make = async <T>(path: string, body: object): Promise<T> => {
    const answer = await ask(oracle, path, { method: 'POST', body })
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body) as T
  }
  const account = async (name: string, rules: readonly object[]) => {
    await make(`/api/v1/namespaces/${space}/serviceaccounts`, { metadata: { name } })
    if (rules.length > 0) {
      const subjects = [{ kind: 'ServiceAccount', name, namespace: space }]
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name }
      await make(`${rbac}/namespaces/${space}/roles`, { metadata: { name }, rules })
      await make(`${rbac}/namespaces/${space}/rolebindings`, { metadata: { name }, roleRef, subjects })
    }
    return oracle.tokenFor(space, name)
  }
  await applyRbac(oracle)
  await make('/api/v1/namespaces', { metadata: { name: space } })
  const bind = (account: string, role: string) =>
    make(`${rbac}/clusterrolebindings`, {
      metadata: { name: `${space}-${account}-${role}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace: space }],
    })
  const token = await account('edge', [])
  for (const role of ['ake-edge', 'ake-edge-secrets', 'ake-edge-custom']) await bind('edge', role)
  const blindToken = await account('blind-edge', [])
  await make(`${rbac}/clusterroles`, { metadata: { name: blindRole }, rules: blindRules })
  await bind('blind-edge', blindRole)
  return {
    oracle,
    scripted,
    signal,
    make,
    account,
    edge: async (name, { args = [], direct = false, blind = false } = {}) => {
      const kubeconfig = join(dir, `${name}.kubeconfig`)
      await writeKubeconfig(kubeconfig, { url: scripted.url, ca: oracle.ca, token: blind ? blindToken : token })
      const server = direct ? oracle.url : scripted.url
      const options = { dir: join(dir, name), server, kubeconfig, signal, args }
      const first = await startEdge(options)
      const edge = new Attacked(first, () => startEdge({ ...options, port: first.port }))
      edges.push(edge)
      const knows = async () => (await edge.status<{ interests: unknown[] }>()).interests.length > 0
      await until(knows, `${name} knows what there is`, { withinMs: settledMsMax, everyMs: lookEveryMs })
      return edge
    },
    remove: async (path) => {
      const { status, body } = await ask(oracle, path, { method: 'DELETE' })
      if (status !== 200) throw new Error(`DELETE ${path}: ${status} ${body}`)
    },
    close: async () => {
      await Promise.all(edges.map((edge) => edge.end()))
      await scripted.close()
    },
  }
}

/** Asks the same again and again for a while; the last answers that still satisfied `was`, with when they came. */
export async function lastTime(
  { seat, path, forMs }: { seat: Seat; path: string; forMs: number },
  was: (told: Told) => boolean,
): Promise<number | undefined> {
  const begunMs = performance.now()
  let lastMs: number | undefined
  while (performance.now() - begunMs < forMs) {
    const askedMs = performance.now() - begunMs
    if (was(await seat.ask(path))) lastMs = askedMs
    await pause(lookEveryMs)
  }
  return lastMs
}
