/** The acts: what is done to hubs, API server, line, edge and kubelet, and what must hold after each. */
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import type { Findings } from '../findings.ts'
import { askedOf } from '../node/asked.ts'
import { begunIn } from '../node/begun.ts'
import type { Container } from '../node/containers.ts'
import { logged, namespace, needed, podNamed, pods } from '../node/pods.ts'
import { agreed, isNodeReady, logOf } from '../node/told.ts'
import { auditedWrites } from '../nodeidentity/audit.ts'
import { ask } from '../oracle.ts'
import { creatorOf, type Make } from '../rights/objects.ts'
import { checkPages } from '../secrecy.ts'
import type { StepContext } from '../step.ts'
import { type HubNodeSite, nodeName } from './nodesite.ts'
import { hubUser } from './objects.ts'

/** On a busy machine; usually some seconds. Between two tries to reach a hub that stays away there are up to 20 s. */
const waiting = { withinMs: 120_000, everyMs: 200 }
/** How long what must not end goes on: the kubelet looks at its pods every second, and reports every ten. */
const goesOnMs = 12_000
const within = `/api/v1/namespaces/${namespace}`
const ofNode = `/api/v1/pods?fieldSelector=spec.nodeName%3D${nodeName}`
const user = `system:node:${nodeName}`

type Parts = { readonly context: StepContext; readonly site: HubNodeSite; readonly findings: Findings }

export class HubNodeScene {
  readonly #parts: Parts
  readonly #make: Make

  constructor(parts: Parts) {
    this.#parts = parts
    this.#make = creatorOf(parts.site.oracle)
  }

  async play(): Promise<void> {
    const { site, findings } = this.#parts
    await this.#begin()
    await this.#killHub()
    await this.#changeHub()
    await this.#killApiServer()
    await this.#cut()
    await this.#checkEqual()
    await this.#checkAudit()
    await checkPages(findings, (path) => site.node.page(path))
    for (const line of askedOf(await site.node.metrics())) findings.note(line)
  }

  /** Nothing has happened yet: both pods become ready through edge and hub. */
  async #begin(): Promise<void> {
    const { context, site, findings } = this.#parts
    const { node, oracle } = site
    context.progress('power on: a kubelet behind an edge and a hub')
    for (const object of needed()) await this.#apply(object)
    await node.prepare()
    await node.boot({ through: 'edge' })
    await this.#found('the cluster’s authority is published', () =>
      this.#isThere(`${within}/configmaps/kube-root-ca.crt`),
    )
    for (const pod of pods(nodeName)) await this.#apply(pod)
    await this.#found('both pods are ready', () => agreed(node.containers, oracle))
    await this.#found('the node is Ready', () => isNodeReady(oracle, nodeName, 0))
    findings.check(
      (await logOf(oracle, 'full')).includes(logged),
      'the log of a pod can be read through the API server',
    )
    // The kubelet's first reads were passed through: on a busy machine its pods are ready before the edge holds all of them.
    await this.#found('the edge holds what the kubelet reads', () => this.#isHeld())
    const begun = await begunIn(node.kubeletLog)
    findings.check(begun.size > 5, 'the kubelet tells of its informers', [...begun])
    findings.note(`${begun.size} informers of the kubelet`)
  }

  async #killHub(): Promise<void> {
    const { context, site } = this.#parts
    context.progress('the hub is killed')
    const before = await site.node.containers.running()
    await site.hubs[0].end('kill')
    await this.#unreachable('without a hub')
    await this.#runOn('without a hub', before)
    await site.hubs[0].restart('kill')
    await this.#reachable('the hub is back')
    await this.#newPod('after-hub', 'the hub is back', before)
  }

  async #changeHub(): Promise<void> {
    const { context, site, findings } = this.#parts
    context.progress('another hub takes its place')
    const before = await site.node.containers.running()
    site.lead(site.hubs[1])
    await site.hubs[0].end('kill')
    type Status = { readonly edges: readonly { readonly name: string }[] }
    await this.#found('the edge is at the other hub', async () => {
      const { edges } = await site.hubs[1].status<Status>()
      return edges.some(({ name }) => name === nodeName)
    })
    await this.#reachable('at the other hub')
    await this.#newPod('after-move', 'at the other hub', before)
    findings.equal(await this.#again(), [], 'no informer of the kubelet has begun anew by then')
    await site.hubs[0].restart('kill')
  }

  async #killApiServer(): Promise<void> {
    const { context, site } = this.#parts
    context.progress('the API server is killed')
    const before = await site.node.containers.running()
    await site.oracle.kill()
    await this.#runOn('without the API server', before)
    await site.oracle.restart()
    await this.#newPod('after-apiserver', 'the API server is back', before)
  }

  /** Edge and kubelet are killed while the line is cut; meanwhile the cluster goes on. */
  async #cut(): Promise<void> {
    const { context, site, findings } = this.#parts
    const { node, oracle } = site
    context.progress('the line is cut')
    const before = await node.containers.running()
    await site.link.set('blackhole')
    await this.#unreachable('cut')
    await this.#apply(podNamed('meanwhile', nodeName))
    const gone = await ask(oracle, `${within}/pods/after-hub?gracePeriodSeconds=1`, { method: 'DELETE' })
    findings.equal(gone.status, 200, 'cut: a pod is deleted in the cluster')
    await node.killEdge()
    node.startEdge()
    await this.#found('cut: the edge serves again', async () => (await node.page('/readyz')) === 'ok')
    await this.#runOn('cut, the edge started again', before)
    findings.equal(await this.#again(), [], 'no informer of the kubelet has begun anew by then')
    const first = await begunIn(node.kubeletLog)
    context.progress('the kubelet is killed and starts again, the line still cut')
    await node.killKubelet()
    node.startKubelet()
    await this.#found('cut: the informers of a kubelet that starts begin with the edge alone', async () => {
      const begun = await begunIn(node.kubeletLog)
      return [...first.keys()].every((informer) => begun.has(informer))
    })
    await this.#runOn('cut, the kubelet started again', before)
    findings.equal(await site.cloudState(), 'unreachable', 'the line is still cut')
    context.progress('the line is back')
    const backMs = Date.now()
    await site.link.set('up')
    await this.#reachable('the line is back')
    const after = await this.#found('back: what was made runs, what was deleted has ended', async () => {
      const running = await agreed(node.containers, oracle)
      const names = (running ?? []).map(({ pod }) => pod)
      return names.includes('meanwhile') && !names.includes('after-hub') && running
    })
    await this.#found('back: the node is Ready by its own word', () => isNodeReady(oracle, nodeName, backMs))
    await pause(goesOnMs, undefined, { signal: context.signal })
    findings.equal(ids(await node.containers.running()), ids(after), 'back: the return restarted nothing')
    const stayed = before.filter(({ pod }) => pod !== 'after-hub')
    findings.equal(
      ids(after.filter(({ pod }) => pod !== 'meanwhile')),
      ids(stayed),
      'back: every container from before the cut runs',
    )
    findings.equal(await this.#again(), [], 'no informer of the second kubelet has begun anew')
  }

  /** To the end: what the kubelet is shown is what the API server has, with the same versions, and no container was ever started again. */
  async #checkEqual(): Promise<void> {
    const { site, findings } = this.#parts
    type Pods = { readonly items: readonly { readonly status: { containerStatuses?: { restartCount: number }[] } }[] }
    const read = async () => JSON.parse((await ask(site.oracle, ofNode)).body) as Pods
    await this.#found('the edge shows the pods as they are', async () => {
      const shown = await site.node.kubectl(site.node.kubeconfig, 'get', '--raw', `${ofNode}&resourceVersion=0`)
      return JSON.stringify((JSON.parse(shown) as Pods).items) === JSON.stringify((await read()).items)
    })
    const { items } = await read()
    findings.equal(
      items.map(({ status }) => status.containerStatuses?.map(({ restartCount }) => restartCount).join()),
      items.map(() => '0'),
      'no container was started again',
    )
  }

  /** To the API server the kubelet is its node, by the word of the hub, and nobody else wrote of it. */
  async #checkAudit(): Promise<void> {
    const { site, findings } = this.#parts
    const done = (await auditedWrites(site.oracle.dir)).filter(({ code }) => code >= 200 && code < 300)
    const reports = done.filter(({ what, as }) => what === 'patch nodes/status' && as !== undefined)
    const pairs = [...new Set(reports.map((one) => `${one.user} as ${one.as} of ${one.name}`))]
    findings.equal(pairs, [`${hubUser} as ${user} of ${nodeName}`], 'audit: the kubelet reports as its node')
    const others = done.filter((one) => one.user === hubUser && one.as !== undefined && one.as !== user)
    findings.equal(others, [], 'audit: the hub stood for nobody else')
    findings.note(`audit: ${done.filter(({ as }) => as === user).length} writes in the name of the node`)
  }

  /** Informers of the kubelet that runs which began more than once. */
  async #again(): Promise<string[]> {
    const begun = await begunIn(this.#parts.site.node.kubeletLog)
    return [...begun].flatMap(([informer, times]) => (times > 1 ? [`${informer} ×${times}`] : []))
  }

  async #unreachable(when: string): Promise<void> {
    const { site } = this.#parts
    await this.#found(`${when}: the edge finds the cloud away`, async () => (await site.cloudState()) === 'unreachable')
  }

  async #reachable(when: string): Promise<void> {
    const { site } = this.#parts
    await this.#found(`${when}: the edge finds the cloud`, async () => (await site.cloudState()) === 'reachable')
  }

  async #runOn(when: string, before: readonly Container[]): Promise<void> {
    const { context, site, findings } = this.#parts
    await pause(goesOnMs, undefined, { signal: context.signal })
    findings.equal(ids(await site.node.containers.running()), ids(before), `${when}: the same containers run`)
  }

  /** What the cluster decides arrives at the kubelet, and what the kubelet reports at the cluster; nothing else is touched. */
  async #newPod(name: string, when: string, before: readonly Container[]): Promise<void> {
    const { site, findings } = this.#parts
    await this.#apply(podNamed(name, nodeName))
    const running = await this.#found(`${when}: a new pod becomes ready`, async () => {
      const all = await agreed(site.node.containers, site.oracle)
      return all?.some(({ pod }) => pod === name) === true && all
    })
    findings.equal(ids(running.filter(({ pod }) => pod !== name)), ids(before), `${when}: nothing else was restarted`)
  }

  async #isHeld(): Promise<boolean> {
    const { node } = this.#parts.site
    const status = JSON.parse(await node.page('/ake/status')) as { interests: { resource: string; state: string }[] }
    const isIn = (resource: string) => status.interests.some((one) => one.resource === resource)
    const isThere = ({ state }: { readonly state: string }) => state === 'synced' || state === 'fed'
    return ['services', 'csinodes', 'pods', 'secrets'].every(isIn) && status.interests.every(isThere)
  }

  async #isThere(path: string): Promise<boolean> {
    return (await ask(this.#parts.site.oracle, path)).status === 200
  }

  async #apply(object: object): Promise<void> {
    const { kind, metadata } = object as { kind: string; metadata: { namespace?: string } }
    const at = metadata.namespace === undefined ? '/api/v1' : within
    const path = `${at}/${kind.toLowerCase()}s`
    await until(() => this.#make(path, object).catch(() => undefined), `a ${kind} is made`, {
      ...waiting,
      signal: this.#parts.context.signal,
    })
  }

  /** Waits for it; what does not come is said, and the rest cannot be looked at. */
  async #found<Found>(what: string, look: () => Promise<Found | false | undefined>): Promise<Found> {
    const { context, findings } = this.#parts
    const started = performance.now()
    const said = `${what} (see ${context.dir})`
    const found = await until(() => look().catch(() => undefined), said, { ...waiting, signal: context.signal })
    findings.check(true, what)
    const seconds = (performance.now() - started) / 1000
    if (seconds > 1) findings.note(`${what}: after ${seconds.toFixed(1)} s`)
    return found as Found
  }
}

const ids = (containers: readonly Container[]) => containers.map(({ id }) => id).join()
