/**
 * A cluster, two hubs with the rights of `deploy/hub.yaml` that do not trust their edges, and two edges, each behind a line of its
 * own, so that what one of them costs can be counted.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../src/base/until.test-support.ts'
import { type Person, Seat } from '../asking.ts'
import { startEdge } from '../edge/edge.ts'
import { Hub, issueEdge } from '../hubs.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { auditArguments } from '../nodeidentity/audit.ts'
import { type Oracle, startOracle } from '../oracle.ts'
import { Edge, type EdgeStatus, type Kept } from '../site.ts'
import type { StepContext } from '../step.ts'
import { applyManifest, type NodeName, nodes, populateShop, state, type Tokens } from './objects.ts'
import { PodAccount } from './podaccount.ts'

/** On a busy machine; usually a second or two. */
const waiting = { withinMs: 60_000, everyMs: 100 }

/** What else kube-apiserver and each of the hubs are started with. */
type Started = {
  readonly apiserver?: readonly string[]
  readonly hubs?: readonly (readonly string[])[]
  /** The first hub is a pod to itself, with what a kubelet mounts instead of a kubeconfig, where this process may mount. */
  readonly hasPod?: boolean
}

type Named<T> = { readonly [name in NodeName]: T }
type Parts = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly tokens: Tokens
  readonly hubs: readonly [Hub, Hub]
  readonly links: Named<Link>
  readonly account: PodAccount | undefined
}

export class HubbedWorld {
  /** Of the first hub, where that is a pod. */
  readonly account: PodAccount | undefined
  readonly oracle: Oracle
  readonly hubs: readonly [Hub, Hub]
  readonly links: Named<Link>
  readonly context: StepContext
  readonly #tokens: Tokens
  readonly #persons = new Map<string, Person>()
  readonly #edges = new Map<NodeName, Edge>()
  readonly #seats: Seat[] = []

  private constructor(parts: Parts) {
    this.context = parts.context
    this.oracle = parts.oracle
    this.hubs = parts.hubs
    this.links = parts.links
    this.account = parts.account
    this.#tokens = parts.tokens
  }

  /** `more`: what else there is in the cluster before a hub starts. */
  static async open(
    context: StepContext,
    more?: (oracle: Oracle) => Promise<void>,
    { apiserver = [], hubs: [first = [], second = []] = [], hasPod = false }: Started = {},
  ): Promise<HubbedWorld> {
    const { dir, signal, progress } = context
    await mkdir(dir, { recursive: true })
    const home = join(dir, 'oracle')
    const extraArgs = [...(await auditArguments(home)), ...apiserver]
    const oracle = await startOracle({ dir: home, extraArgs, signal, progress })
    try {
      await applyManifest(oracle)
      const tokens = await populateShop(oracle)
      await more?.(oracle)
      const kubeconfig = join(dir, 'hub.kubeconfig')
      const token = await oracle.tokenFor('ake-system', 'ake-hub')
      await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, token })
      const account = hasPod ? await PodAccount.make(oracle, dir) : undefined
      const inPod = account && { kubeconfig: undefined, program: account.launcher }
      const start = (name: string, args: readonly string[], more?: typeof inPod) =>
        Hub.start({ dir, state, kubeconfig, args: ['--drain', '5s', ...args], signal, ...more }, name)
      // Both at once: one of them makes the state, and the other takes it over.
      const hubs = await Promise.all([start('hub-1', first, inPod), start('hub-2', second)])
      const lines = await Promise.all(nodes.map(() => startLink({ target: { host: '127.0.0.1', port: hubs[0].port } })))
      const links = { 'edge-1': lines[0] as Link, 'edge-2': lines[1] as Link }
      return new HubbedWorld({ context, oracle, tokens, hubs, links, account })
    } catch (error) {
      oracle.stop()
      throw error
    }
  }

  /** Until what its node needs is there. */
  async startSynced(name: NodeName): Promise<void> {
    await this.start(name)
    await this.untilCloudIs(name, 'reachable')
    await this.untilState(name, 'services', 'synced')
  }

  async start(name: NodeName): Promise<void> {
    const { dir, signal } = this.context
    const { port } = this.links[name]
    const credential = await issueEdge(dir, name, { state, kubeconfig: this.oracle.kubeconfig })
    const args = ['--client-ca', join(this.oracle.dir, 'ca.crt')]
    const options = { hub: [`wss://127.0.0.1:${port}`], credential, dir: join(dir, name), args, signal }
    const first = await startEdge(options)
    const start = () => startEdge({ ...options, port: first.port })
    this.#edges.set(name, new Edge(first, { dir: options.dir, start }))
    const { cert, key } = await this.oracle.nodeCredential(name)
    this.#persons.set(`kubelet ${name}`, { cert, key })
  }

  edge(name: NodeName): Edge {
    const edge = this.#edges.get(name)
    if (edge === undefined) throw new Error(`${name} was not started`)
    return edge
  }

  know(who: string, person: Person): void {
    this.#persons.set(who, person)
  }

  person(who: string): Person {
    const token = this.#tokens.get(who)
    const known = token === undefined ? this.#persons.get(who) : { token }
    if (known === undefined) throw new Error(`nobody is called ${who}`)
    return known
  }

  /** As somebody sees an edge, or as its administrator. */
  at(name: NodeName, who: string): Seat {
    const { ake } = this.edge(name)
    return this.#seat(ake, who === 'administrator' ? ake : this.person(who))
  }

  /** As the same person sees the API server itself. */
  straight(who: string): Seat {
    return this.#seat(this.oracle, this.person(who))
  }

  #seat(server: { url: string; ca: string }, person: Person): Seat {
    const seat = new Seat(server, person)
    this.#seats.push(seat)
    return seat
  }

  status(name: NodeName): Promise<EdgeStatus> {
    return this.edge(name).status()
  }

  /** What an edge keeps of a resource of the whole cluster. */
  async kept(name: NodeName, resource: string): Promise<Kept | undefined> {
    const { interests } = await this.status(name)
    return interests.find((one) => one.resource === resource && one.namespace === undefined && one.fields === undefined)
  }

  async until(what: string, holds: () => Promise<boolean>, withinMs: number = waiting.withinMs): Promise<number> {
    const startedMs = performance.now()
    await until(holds, what, { ...waiting, withinMs, signal: this.context.signal })
    return performance.now() - startedMs
  }

  untilState(name: NodeName, resource: string, state: string, withinMs?: number): Promise<number> {
    const holds = async () => (await this.kept(name, resource))?.state === state
    return this.until(`${resource} of ${name} is ${state}`, holds, withinMs)
  }

  untilCloudIs(name: NodeName, state: string): Promise<number> {
    const holds = async () => (await this.status(name)).upstream.state === state
    return this.until(`the cloud of ${name} is ${state}`, holds)
  }

  async stop(): Promise<void> {
    for (const seat of this.#seats) seat.close()
    await Promise.all([...this.#edges.values()].map(({ ake }) => ake.kill()))
    await Promise.all(this.hubs.map((hub) => hub.end('kill')))
    await Promise.all(Object.values(this.links).map((link) => link.close()))
    this.oracle.stop()
  }
}
