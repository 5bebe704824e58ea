/** The acts of the hollow node's play: what is done to it and its cloud, and what must hold after each. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Ake } from '../ake.ts'
import type { Findings } from '../findings.ts'
import type { Link } from '../link.ts'
import type { Oracle } from '../oracle.ts'
import type { Make } from '../rights/objects.ts'
import type { StepContext } from '../step.ts'
import type { Hollow } from './node.ts'
import { HollowView, node, type Standing } from './view.ts'

const replicas = 3
/**
 * kubemark's runtime lives and dies with its kubelet: the second kubelet finds its pods without their containers and counts
 * one restart, and later ones count no further, with a cloud or without.
 */
const restartsByKubemark = 1
/** On a busy machine; usually some seconds. */
const waitMsMax = 60_000
/** Longer than the controllers' 50 s after which they take the node for lost. */
const longCutMs = 70_000

type Parts = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly link: Link
  readonly edge: Ake
  readonly kubelet: Hollow
  readonly proxy: Hollow
  readonly make: Make
  readonly findings: Findings
}

export class HollowScene {
  readonly #parts: Parts
  readonly #view: HollowView
  #services = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#view = new HollowView(parts)
  }

  async play(): Promise<void> {
    const { context, link, kubelet, proxy, findings } = this.#parts
    try {
      context.progress('a node, its pods and services, through the edge')
      kubelet.start()
      proxy.start()
      const first = await this.#begin()
      const deleted = await this.#view.deletions()
      await this.#kubeletDies(first, context.all ? 45_000 : 6_000)

      context.progress('the cloud is cut, kubelet and kube-proxy are killed and start again')
      await link.set('blackhole')
      await this.#until('the edge finds the cloud away', async () => (await this.#view.state()) === 'unreachable')
      await Promise.all([kubelet.end(), proxy.end()])
      await this.#service('meanwhile')
      kubelet.start()
      proxy.start()
      await this.#checkOffline(first)
      const befell = await this.#view.befell()
      if (context.all) await pause(longCutMs)

      context.progress('the cloud is back')
      const lists = await this.#view.lists()
      findings.check(!lists.includes(0), 'kubelet and kube-proxy tell of their lists', lists)
      await link.set('up')
      this.#services++
      await this.#until('the service made meanwhile arrives', async () => (await this.#view.added()) === this.#services)
      await this.#until('the node is Ready', () => this.#view.isReady())
      await this.#until('its lease is renewed', () => this.#view.isRenewed())
      // A kubelet that took its pods for gone, or new, would have said so to the API server by now.
      await pause(5_000)
      findings.equal(await this.#view.lists(), lists, 'nobody listed again when the cloud came back')
      findings.equal(await this.#view.pods(), restarted(first, restartsByKubemark), 'the same pods run')
      findings.equal(
        await this.#view.befell(),
        befell,
        'no container ended or was started again when the cloud came back',
      )
      findings.equal(deleted(), [], 'no pod was deleted or evicted')
      findings.check(!kubelet.ended && !proxy.ended, 'kubelet and kube-proxy have not ended by themselves')
    } finally {
      this.#view.close()
    }
  }

  /** Ready, Running, programmed; answers the pods as the API server has them. */
  async #begin(): Promise<Standing[]> {
    const { make, findings } = this.#parts
    await this.#until('the node is Ready', () => this.#view.isReady())
    await workload(make)
    await this.#service('web')
    await this.#until('all pods run', async () => (await this.#view.running()).length === replicas)
    const { items } = (await this.#view.read('/api/v1/services')) as { items: unknown[] }
    this.#services = items.length
    await this.#until('kube-proxy has its services', () => this.#view.isProgrammed(this.#services))
    const slices = '/apis/discovery.k8s.io/v1/namespaces/hollow/endpointslices'
    await this.#until('the service has its endpoints', async () => {
      const { items } = (await this.#view.read(slices)) as { items: { endpoints: { addresses: string[] }[] | null }[] }
      return items.some(({ endpoints }) => endpoints?.length === replicas)
    })
    findings.note(`${replicas} pods, ${this.#services} services`)
    return await this.#view.pods()
  }

  /** Openyurt 1.4: an edge that takes the kubelet's heartbeat for the cloud's marks the cloud dead for every client. */
  async #kubeletDies(first: readonly Standing[], ms: number): Promise<void> {
    const { kubelet, findings } = this.#parts
    await kubelet.end()
    const give = performance.now() + ms
    const states = new Set<string>()
    while (performance.now() < give) {
      states.add(await this.#view.state())
      await pause(500)
    }
    findings.equal([...states], ['reachable'], 'openyurt 1.4: the cloud is there, kubelet or not')
    kubelet.start()
    await this.#settle('with the cloud there', restarted(first, restartsByKubemark))
    await this.#until(
      'the API server knows it',
      async () => String(await this.#view.pods()) === String(await this.#view.held()),
    )
  }

  /** By what was known of them its pods are Running at once; the runtime's own word is what counts. */
  async #settle(when: string, expected: readonly Standing[]): Promise<void> {
    const begun = expected.map(([name]) => `ContainerStarted ${name}`)
    await this.#until(
      `the kubelet runs its pods ${when}`,
      async () => String(await this.#view.befell()) === String(begun),
    )
    // Its status follows.
    await pause(2_000)
    this.#parts.findings.equal(await this.#view.held(), expected, `what a new kubelet does to its pods ${when}`)
  }

  async #checkOffline(first: readonly Standing[]): Promise<void> {
    const { findings } = this.#parts
    await this.#settle('without the cloud', restarted(first, restartsByKubemark))
    await this.#until('kube-proxy has its services without the cloud', () => this.#view.isProgrammed(this.#services))
    findings.equal(
      await this.#view.added(),
      this.#services,
      'kube-proxy knows the services of before, no more and no fewer',
    )
    findings.equal(await this.#view.state(), 'unreachable', 'the cloud is still away')
  }

  async #service(name: string): Promise<void> {
    const spec = { selector: { app: 'hollow' }, ports: [{ port: 80 }] }
    await this.#parts.make('/api/v1/namespaces/hollow/services', { metadata: { name }, spec })
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const { context, kubelet, proxy, findings } = this.#parts
    const started = performance.now()
    while (!(await holds())) {
      context.signal.throwIfAborted()
      if (kubelet.ended || proxy.ended) throw new Error(`${what}: kubelet or kube-proxy ended: see ${context.dir}`)
      if (performance.now() - started > waitMsMax) throw new Error(`in vain: ${what} (see ${context.dir})`)
      await pause(200)
    }
    findings.check(true, what)
    findings.note(`${what}: after ${((performance.now() - started) / 1000).toFixed(1)} s`)
  }
}

function restarted(all: readonly Standing[], more: number): Standing[] {
  return all.map(([name, uid, restarts]) => [name, uid, restarts + more])
}

/** Pods that need everything a kubelet fetches: a Secret, a ConfigMap and, by default, a token and the cluster's CA. */
async function workload(make: Make): Promise<void> {
  await make('/api/v1/namespaces', { metadata: { name: 'hollow' } })
  await make('/api/v1/namespaces/hollow/secrets', { metadata: { name: 'word' }, stringData: { word: 'hollow' } })
  await make('/api/v1/namespaces/hollow/configmaps', { metadata: { name: 'settings' }, data: { a: 'b' } })
  const labels = { app: 'hollow' }
  const volumes = [
    { name: 'word', secret: { secretName: 'word' } },
    { name: 'settings', configMap: { name: 'settings' } },
  ]
  const mounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }))
  // Bound by its template: there is no scheduler.
  const spec = { nodeName: node, volumes, containers: [{ name: 'main', image: 'hollow', volumeMounts: mounts }] }
  await make('/apis/apps/v1/namespaces/hollow/deployments', {
    metadata: { name: 'hollow' },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  })
}
