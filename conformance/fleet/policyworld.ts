/** A cluster with a shop, one hub with the rights of `deploy/hub.yaml`, and an edge behind it that wants more than its node may read. */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '../../src/base/until.test-support.ts'
import { type Person, Seat, type Told } from '../asking.ts'
import { buildKubernetes } from '../build.ts'
import { startEdge } from '../edge/edge.ts'
import { applyManifest, shop, state } from '../hub/objects.ts'
import { Hub, issueEdge } from '../hubs.ts'
import { writeKubeconfig } from '../kubeconfig.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import { creatorOf } from '../rights/objects.ts'
import { Edge, type Kept } from '../site.ts'
import type { StepContext } from '../step.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '..', '..')
const rbac = '/apis/rbac.authorization.k8s.io/v1'
export const policies = '/apis/ake.dev/v1alpha1/edgepolicies'
export const node = 'edge-1'
export const maps = `/api/v1/namespaces/${shop}/configmaps`
/** On a busy machine; usually a second. */
const waiting = { withinMs: 60_000, everyMs: 50 }

export class PolicyWorld {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly hub: Hub
  readonly link: Link
  readonly edge: Edge
  readonly #keeper: Person
  readonly #bin: string
  readonly #seats: Seat[] = []

  private constructor(parts: {
    context: StepContext
    oracle: Oracle
    hub: Hub
    link: Link
    edge: Edge
    keeper: Person
    bin: string
  }) {
    this.context = parts.context
    this.oracle = parts.oracle
    this.hub = parts.hub
    this.link = parts.link
    this.edge = parts.edge
    this.#keeper = parts.keeper
    this.#bin = parts.bin
  }

  /** Without the definition of policies: that comes later. */
  static async open(context: StepContext): Promise<PolicyWorld> {
    const { dir, signal, progress } = context
    await mkdir(dir, { recursive: true })
    const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
    try {
      await applyManifest(oracle)
      const keeper = { token: await populate(oracle) }
      const kubeconfig = join(dir, 'hub.kubeconfig')
      const token = await oracle.tokenFor('ake-system', 'ake-hub')
      await writeKubeconfig(kubeconfig, { url: oracle.url, ca: oracle.ca, token })
      const hub = await Hub.start({ dir, state, kubeconfig, args: ['--drain', '2s'], signal }, 'hub-1')
      const link = await startLink({ target: { host: '127.0.0.1', port: hub.port } })
      const credential = await issueEdge(dir, node, { state, kubeconfig: oracle.kubeconfig })
      // What no caller asks for is had by policy alone.
      const args = ['--mirror', `configmaps@${shop}`, '--mirror', `limitranges@${shop}`]
      const options = { hub: [`wss://127.0.0.1:${link.port}`], credential, dir: join(dir, node), args, signal }
      const first = await startEdge(options)
      const edge = new Edge(first, { dir: options.dir, start: () => startEdge({ ...options, port: first.port }) })
      const { bin } = await buildKubernetes({ only: ['kubectl'], progress: () => {} })
      return new PolicyWorld({ context, oracle, hub, link, edge, keeper, bin })
    } catch (error) {
      oracle.stop()
      throw error
    }
  }

  /** As somebody sees the edge. */
  async at(who: 'administrator' | 'keeper', path: string): Promise<Told> {
    const { ake } = this.edge
    const seat = new Seat(ake, who === 'administrator' ? ake : this.#keeper)
    this.#seats.push(seat)
    return await seat.ask(path)
  }

  /** As an operator types it: what it prints, or the words it fails with. */
  async kubectl(...words: string[]): Promise<string> {
    const args = ['--kubeconfig', this.oracle.kubeconfig, ...words]
    return await run(join(this.#bin, 'kubectl'), args).then(
      ({ stdout }) => stdout,
      (error: { stderr?: string }) => `${error.stderr}`,
    )
  }

  async ake(...words: string[]): Promise<string> {
    const { stdout } = await run(join(root, 'bin', 'ake'), [...words, '--kubeconfig', this.oracle.kubeconfig])
    return stdout
  }

  deployed(name: string): string {
    return join(root, 'deploy', name)
  }

  /** Makes or replaces a policy. */
  async put(name: string, spec: object): Promise<void> {
    const { status } = await ask(this.oracle, `${policies}/${name}`)
    const metadata = { name }
    const object = { apiVersion: 'ake.dev/v1alpha1', kind: 'EdgePolicy', metadata, spec }
    const answer =
      status === 404
        ? await ask(this.oracle, policies, { method: 'POST', body: object })
        : await this.patch(`${policies}/${name}`, [{ op: 'replace', path: '/spec', value: spec }])
    if (answer.status >= 300) throw new Error(`the policy ${name}: ${answer.status} ${answer.body}`)
  }

  patch(path: string, patch: readonly object[]): Promise<{ readonly status: number; readonly body: string }> {
    const headers = { 'content-type': 'application/json-patch+json' }
    return ask(this.oracle, path, { method: 'PATCH', headers, body: patch })
  }

  async remove(name: string): Promise<void> {
    await ask(this.oracle, `${policies}/${name}`, { method: 'DELETE' })
  }

  /** What the edge keeps of the shop. */
  async kept(of = 'configmaps'): Promise<Pick<Kept, 'state' | 'why' | 'objects'> | undefined> {
    const { interests, passedThrough } = await this.edge.status()
    const held = interests.find(({ resource, namespace }) => resource === of && namespace === shop)
    const passed = passedThrough.find(({ resource }) => resource === of)
    return held ?? (passed && { state: passed.state ?? '', why: passed.why, objects: 0 })
  }

  async until(what: string, holds: () => Promise<boolean>, withinMs = waiting.withinMs): Promise<number> {
    const startedMs = performance.now()
    await until(holds, what, { ...waiting, withinMs, signal: this.context.signal })
    return Math.round(performance.now() - startedMs)
  }

  untilKept(state: string, of = 'configmaps'): Promise<number> {
    return this.until(`${of} of the edge are ${state}`, async () => (await this.kept(of))?.state === state)
  }

  async stop(): Promise<void> {
    for (const seat of this.#seats) seat.close()
    await this.edge.ake.kill()
    await this.hub.end('kill')
    await this.link.close()
    this.oracle.stop()
  }
}

/** Answers the token of an account that manages the shop. */
async function populate(oracle: Oracle): Promise<string> {
  const make = creatorOf(oracle)
  await make('/api/v1/namespaces', { metadata: { name: shop } })
  await make('/api/v1/nodes', { metadata: { name: node } })
  await make(maps, { metadata: { name: 'first' }, data: { word: 'one' } })
  await make(`/api/v1/namespaces/${shop}/serviceaccounts`, { metadata: { name: 'keeper' } })
  const apiGroup = 'rbac.authorization.k8s.io'
  const rules = [{ apiGroups: [''], resources: ['*'], verbs: ['*'] }]
  await make(`${rbac}/namespaces/${shop}/roles`, { metadata: { name: 'keeper' }, rules })
  await make(`${rbac}/namespaces/${shop}/rolebindings`, {
    metadata: { name: 'keeper' },
    roleRef: { apiGroup, kind: 'Role', name: 'keeper' },
    subjects: [{ kind: 'ServiceAccount', name: 'keeper', namespace: shop }],
  })
  return await oracle.tokenFor(shop, 'keeper')
}
