/** The acts of a long cut: what the cluster does to the pods of a node that it has lost, and what becomes of that afterwards. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Ake } from '../ake.ts'
import { Seat } from '../asking.ts'
import type { Findings } from '../findings.ts'
import type { Hollow } from '../hollow/node.ts'
import { HollowView, node, type Standing } from '../hollow/view.ts'
import type { Link } from '../link.ts'
import { ask, type Oracle } from '../oracle.ts'
import type { Make } from '../rights/objects.ts'
import type { StepContext } from '../step.ts'
import { Chronicle, isReady, readPods, type SeenPod } from './chronicle.ts'
import { accountsPath, type Fate, makeNamespace, makeService, makeWorkloads, workloads } from './workloads.ts'

/** Long enough for the usual 300 s after the 50 s in which the controllers wait for a node. */
const cutMs = 420_000
const lookEveryMs = 1_000
/** In looks: the kubelet's own word on its pods is asked for less often. */
const kubeletEvery = 5
/** How long after the edge has its hub again everything has to be as it stays. */
const mendedMs = 60_000
/** Between two tries to reach a hub that stays away there are 10 to 20 s, and one that was under way when the line came back takes 10 s; the rest is for a busy machine. */
const foundSecondsMax = 45
/** On a busy machine; usually some seconds. */
const waitMsMax = 90_000
/** The controllers wait for 50 s since the last renewal, which is up to 10 s old at the cut, and look every 5 s; the rest is for a busy machine. */
const lostSeconds = { from: 38, to: 75 }
/** What a busy machine may add to a toleration. */
const lateSecondsMax = 15
const unreachable = 'taint node.kubernetes.io/unreachable:NoExecute'

type Parts = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly link: Link
  readonly edge: Ake
  readonly kubelet: Hollow
  readonly proxy: Hollow
  readonly cloud: Hollow
  readonly cloudNode: string
  readonly make: Make
  readonly findings: Findings
}

/** Before the cut. */
type Before = {
  readonly pods: readonly SeenPod[]
  readonly held: readonly Standing[]
  readonly befell: readonly string[]
  readonly services: number
  readonly lists: readonly number[]
}

export class EvictionScene {
  readonly #parts: Parts
  readonly #view: HollowView
  readonly #administrator: Seat
  readonly #fates = workloads(node)

  constructor(parts: Parts) {
    this.#parts = parts
    this.#view = new HollowView(parts)
    this.#administrator = new Seat(parts.edge, parts.edge)
  }

  async play(): Promise<void> {
    const { context, link, make } = this.#parts
    try {
      context.progress('pods on a node behind an edge and a hub')
      const before = await this.#begin()
      context.progress(`the line is cut for ${cutMs / 1_000} s`)
      await link.set('blackhole')
      const chronicle = new Chronicle({ view: this.#view, node })
      await makeService(make, 'meanwhile')
      const last = await this.#watchCut(chronicle, before)
      this.#checkTimes(chronicle, before)
      this.#checkReplaced(last, before)
      await this.#checkUntouched(before)
      context.progress('the line is back')
      link.resetStats()
      await link.set('up')
      await this.#checkFound()
      await this.#checkBack(new Chronicle({ view: this.#view, node }), before)
      await this.#checkListed(before, 'to the end')
      context.progress('the node is given up')
      await this.#checkGivenUp()
    } finally {
      this.#view.close()
      this.#administrator.close()
    }
  }

  async #begin(): Promise<Before> {
    const { kubelet, proxy, cloud, cloudNode, make, findings } = this.#parts
    kubelet.start()
    proxy.start()
    await this.#until('the node is Ready', () => this.#view.isReady())
    await makeNamespace(make)
    await this.#until('the namespace has its account', async () => {
      return ((await this.#view.read(accountsPath)) as { items: unknown[] }).items.length > 0
    })
    await makeWorkloads(make, node)
    await makeService(make, 'web')
    const expected = Object.values(this.#fates).reduce((sum, { pods }) => sum + pods, 0)
    await this.#until('all pods run', async () => (await this.#view.running()).length === expected)
    const pods = await readPods(this.#view)
    findings.equal([...new Set(pods.map(({ spec }) => spec.nodeName))], [node], 'all pods run on the node of the edge')
    cloud.start()
    await this.#until('the other node runs its daemon', async () => {
      const all = await readPods(this.#view)
      return all.some(({ spec, status }) => spec.nodeName === cloudNode && status.phase === 'Running')
    })
    const services = ((await this.#view.read('/api/v1/services')) as { items: unknown[] }).items.length
    await this.#until('kube-proxy has its services', () => this.#view.isProgrammed(services))
    await this.#until('the kubelet runs all pods', async () => (await this.#view.held()).length === expected)
    const [held, befell] = [await this.#view.held(), await this.#view.befell()]
    findings.note(`${expected} pods on ${node}, ${services} services`)
    return { pods, held, befell, services, lists: await this.#view.lists() }
  }

  /** Answers the pods as they are when it ends. */
  async #watchCut(chronicle: Chronicle, before: Before): Promise<SeenPod[]> {
    const { context, findings } = this.#parts
    const states: string[] = []
    const seen = new Set<string>()
    for (let looks = 0; ; looks++) {
      const pods = await chronicle.look()
      if (looks % kubeletEvery === 0) {
        seen.add(JSON.stringify([await this.#view.held(), await this.#hears()]))
        const state = await this.#view.state()
        if (state !== states.at(-1)) states.push(state)
      }
      if (chronicle.seconds * 1_000 > cutMs) {
        findings.equal([...seen], [JSON.stringify([before.held, []])], 'what the kubelet had and heard during the cut')
        findings.check(states.lastIndexOf('reachable') <= 0, 'the cloud never seems to be there', states)
        findings.equal(states.at(-1), 'unreachable', 'it is away to the end')
        return pods
      }
      await pause(lookEveryMs, undefined, { signal: context.signal })
    }
  }

  /** Pods that the kubelet takes for marked. */
  async #hears(): Promise<string[]> {
    const pods = await this.#parts.kubelet.pods()
    return pods.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [] : [metadata.name]))
  }

  #checkTimes(chronicle: Chronicle, before: Before): void {
    const { findings } = this.#parts
    const [lost, tainted] = [chronicle.at('ready Unknown'), chronicle.at(unreachable)]
    findings.note(
      `the node is Unknown after ${shown(lost)}, its pods are not ready after ${shown(chronicle.at('pods not ready'))}`,
    )
    findings.note(`tainted unreachable:NoExecute after ${shown(tainted)}`)
    findings.check(lost > lostSeconds.from && lost < lostSeconds.to, 'the node is taken for lost', lost)
    findings.check(tainted - lost < lateSecondsMax, 'then it is tainted', tainted)
    for (const { metadata } of before.pods) {
      const after = chronicle.at(`marked ${metadata.uid}`)
      const { evictedAfter } = this.#fateOf(metadata.labels.app)
      findings.note(
        `${metadata.name}: ${Number.isNaN(after) ? 'not marked' : `marked for deletion after ${shown(after)}`}`,
      )
      if (evictedAfter === undefined) findings.check(Number.isNaN(after), `${metadata.name} is not evicted`, after)
      else {
        const late = after - tainted - evictedAfter
        findings.check(Math.abs(late) < lateSecondsMax, `${metadata.name} is marked when its toleration ends`, after)
      }
    }
    findings.equal(chronicle.marked, evicted(before, this.#fates), 'which pods are marked')
  }

  #checkReplaced(last: readonly SeenPod[], before: Before): void {
    const { findings, cloudNode } = this.#parts
    const known = new Set(before.pods.map(({ metadata }) => metadata.uid))
    const still = last.filter(({ metadata }) => known.has(metadata.uid))
    findings.equal(still.length, known.size, 'what is marked stays until its kubelet has ended it')
    for (const [app, { pods, replaced }] of Object.entries(this.#fates)) {
      const fresh = last.filter(({ metadata }) => metadata.labels.app === app && !known.has(metadata.uid))
      const found = fresh.map(({ spec, status }) => `${status.phase} ${spec.nodeName ?? 'nowhere'}`)
      const one = { elsewhere: [`Running ${cloudNode}`], pending: ['Pending nowhere'], not: [] }[replaced]
      // The daemon of the other node is no replacement.
      const expected = app === 'daemon' ? [`Running ${cloudNode}`] : one.flatMap((each) => Array(pods).fill(each))
      findings.equal(found, expected, `what is there in place of ${app}`)
      findings.note(`in place of ${app}: ${found.join(', ') || 'nothing'}`)
    }
  }

  async #checkUntouched(before: Before): Promise<void> {
    const { findings } = this.#parts
    await this.#checkListed(before, 'during the cut')
    findings.equal(await this.#view.befell(), before.befell, 'no container ended or was started during the cut')
    const { status, body } = await this.#administrator.ask(podsOfNode)
    findings.equal(status, 200, 'the edge lists the pods of its node')
    findings.equal(uids(JSON.parse(body).items), uids(before.pods), 'the edge has the pods of before')
    findings.check(!body.includes('deletionTimestamp'), 'none of them is marked at the edge')
  }

  async #checkFound(): Promise<void> {
    const startedMs = performance.now()
    await this.#until('the edge finds the cloud', async () => (await this.#view.state()) === 'reachable')
    const seconds = (performance.now() - startedMs) / 1_000
    this.#parts.findings.check(seconds < foundSecondsMax, 'it tries often enough', seconds)
  }

  async #checkListed({ lists }: Before, when: string): Promise<void> {
    const { findings } = this.#parts
    findings.check(!lists.includes(0), 'kubelet and kube-proxy tell of their lists', lists)
    findings.equal(await this.#view.lists(), lists, `nobody behind the edge lists again, ${when}`)
  }

  async #checkBack(chronicle: Chronicle, before: Before): Promise<void> {
    const { findings, link, kubelet, proxy, cloud } = this.#parts
    const gone = evicted(before, this.#fates)
    const here = (pods: readonly SeenPod[]) => uids(pods).filter((uid) => gone.includes(uid))
    await this.#until('the node is Ready and has no taint', async () => {
      await chronicle.look()
      return (await this.#view.isReady()) && !Number.isNaN(chronicle.at('no taint'))
    })
    await this.#until('what was marked is gone', async () => here(await chronicle.look()).length === 0)
    await this.#until('each owner has its pods, and they are ready', async () => this.#isWhole(await chronicle.look()))
    await this.#until('the lease is renewed', () => this.#view.isRenewed())
    const left = Math.max(0, mendedMs - chronicle.seconds * 1_000)
    const { bytesUp, bytesDown } = link.stats()
    findings.note(`all of that ${shown(chronicle.seconds)} after it, with ${bytesUp} bytes up and ${bytesDown} down`)
    findings.check(left > 0, 'within a minute', chronicle.seconds)
    await pause(left, undefined, { signal: this.#parts.context.signal })
    const pods = await chronicle.look()
    findings.equal(
      chronicle.marked.filter((uid) => !gone.includes(uid)),
      [],
      'nothing else was marked',
    )
    await this.#checkKept(pods, before, gone)
    await this.#until('the lease is renewed again', () => this.#view.isRenewed())
    findings.check(![kubelet, proxy, cloud].some(({ ended }) => ended), 'kubelets and kube-proxy have not ended')
  }

  /** A minute later: the API server, the edge and the kubelet have the same pods, and those that stayed are the same. */
  async #checkKept(pods: readonly SeenPod[], before: Before, gone: readonly string[]): Promise<void> {
    const { findings } = this.#parts
    const onNode = pods.filter(({ spec }) => spec.nodeName === node)
    const held = await this.#view.held()
    findings.equal(held.map(([, uid]) => uid).sort(), uids(onNode), 'the kubelet runs what the API server has')
    const { body } = await this.#administrator.ask(podsOfNode)
    findings.equal(uids(JSON.parse(body).items), uids(onNode), 'and so does the edge')
    const stayed = before.held.filter(([, uid]) => !gone.includes(uid))
    const known = new Set(before.held.map(([, uid]) => uid))
    findings.equal(
      held.filter(([, uid]) => known.has(uid)),
      stayed,
      'what stayed was not started again',
    )
    const names = before.held.filter(([, uid]) => gone.includes(uid)).map(([name]) => `ContainerDied ${name}`)
    const died = (await this.#view.befell()).filter((event) => event.startsWith('ContainerDied'))
    findings.equal(died, names.sort(), 'the kubelet ended what was marked and nothing else')
    findings.equal(await this.#view.added(), before.services + 1, 'kube-proxy has the service made meanwhile')
    for (const { metadata, spec } of onNode) findings.note(`${metadata.name} runs on ${spec.nodeName}`)
  }

  /** What tolerates for ever stays with a node that is gone for good, until somebody says that it is. */
  async #checkGivenUp(): Promise<void> {
    const { oracle, kubelet, findings, cloudNode } = this.#parts
    await kubelet.end()
    const { status, body } = await ask(oracle, `/api/v1/nodes/${node}`, { method: 'DELETE' })
    findings.equal(status, 200, `the node is deleted (${body.slice(0, 200)})`)
    await this.#until('the pods of a deleted node are removed', async () => {
      return (await readPods(this.#view)).every(({ spec }) => spec.nodeName !== node)
    })
    await this.#until('what tolerates for ever runs elsewhere', async () => {
      const ready = (await readPods(this.#view)).filter((pod) => pod.metadata.labels.app === 'staying' && isReady(pod))
      return ready.length === this.#fateOf('staying').pods && ready.every(({ spec }) => spec.nodeName === cloudNode)
    })
  }

  /** A bare pod has nobody who makes it anew. */
  #isWhole(pods: readonly SeenPod[]): boolean {
    return Object.entries(this.#fates).every(([app, { owner, pods: count }]) => {
      const ready = pods.filter((pod) => pod.metadata.labels.app === app && isReady(pod))
      return ready.length === (owner === 'pods' ? 0 : owner === 'daemonsets' ? count + 1 : count)
    })
  }

  #fateOf(app: string): Fate {
    const fate = this.#fates[app]
    if (fate === undefined) throw new Error(`nobody made a pod of ${app}`)
    return fate
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const { context, kubelet, proxy, cloud, findings } = this.#parts
    const started = performance.now()
    while (!(await holds())) {
      if ([kubelet, proxy, cloud].some(({ ended }) => ended))
        throw new Error(`${what}: a node ended: see ${context.dir}`)
      if (performance.now() - started > waitMsMax) throw new Error(`in vain: ${what} (see ${context.dir})`)
      await pause(200, undefined, { signal: context.signal })
    }
    findings.check(true, what)
    findings.note(`${what}: after ${shown((performance.now() - started) / 1_000)}`)
  }
}

const podsOfNode = `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}&resourceVersion=0`

function evicted({ pods }: Before, fates: Readonly<{ [app: string]: Fate }>): string[] {
  return uids(pods.filter(({ metadata }) => fates[metadata.labels.app]?.evictedAfter !== undefined))
}

function uids(pods: readonly SeenPod[]): string[] {
  return pods.map(({ metadata }) => metadata.uid).sort()
}

function shown(seconds: number): string {
  return `${seconds.toFixed(1)} s`
}
