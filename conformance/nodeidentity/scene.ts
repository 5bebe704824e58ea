/** The acts: what is done to the node and its line, and what must hold after each. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/base/until.test-support.ts'
import { nowhere } from '../controlplane.ts'
import type { Findings } from '../findings.ts'
import { askedOf } from '../node/asked.ts'
import type { Container } from '../node/containers.ts'
import { namespace } from '../node/pods.ts'
import { agreed, isNodeReady, podsOf } from '../node/told.ts'
import { ask, type Oracle } from '../oracle.ts'
import { checkPages } from '../secrecy.ts'
import type { StepContext } from '../step.ts'
import { auditedWrites } from './audit.ts'
import { allPods, configMap, informers, nodeName, operatorUser, otherNode, podCount, service, web } from './objects.ts'
import type { IdentitySite, OperatorState } from './site.ts'

/** On a busy machine; usually some seconds. */
const waiting = { withinMs: 120_000, everyMs: 200 }
/** How long something has to go on that must not end: several rounds of each client that repeats anything. */
const goesOnMs = 20_000
const edgeUser = 'edge-1'
const rootCa = (within: string) => `/api/v1/namespaces/${within}/configmaps/kube-root-ca.crt`
const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'

/** Objects, or the arguments of kubectl that name them. */
export type Create = (what: readonly object[] | readonly string[]) => Promise<void>

type Parts = {
  readonly context: StepContext
  readonly oracle: Oracle
  readonly site: IdentitySite
  readonly findings: Findings
  readonly create: Create
}

export class NodeScene {
  readonly #parts: Parts
  #uid = ''

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async play(): Promise<void> {
    const { site, findings } = this.#parts
    const before = await this.#begin()
    await this.#checkNode()
    await this.#cut(before)
    await this.#restartEdge('cut')
    await this.#happenMeanwhile()
    const after = await this.#reboot(before)
    await this.#restartEdge('rebooted without the cloud')
    await this.#comeBack(after)
    await this.#restartEdge('back')
    await this.#checkAudit()
    await checkPages(findings, (path) => site.node.page(path))
  }

  /** Nothing has happened yet: everything becomes ready through the edge. */
  async #begin(): Promise<readonly Container[]> {
    const { context, oracle, site, findings, create } = this.#parts
    context.progress('power on, the API server is there')
    await site.boot()
    for (const within of [namespace, 'kube-system']) {
      await this.#found(`the cluster's authority is published in ${within}`, () => isThere(oracle, rootCa(within)))
    }
    await create(allPods())
    const containers = await this.#found('online: all pods are ready', () => agreed(site.node.containers, oracle))
    this.#uid = containers.find(({ pod }) => pod === 'operator')?.uid ?? ''
    const works = (now: OperatorState) => now.synced && now.wrote > 0 && isResolved(now)
    const first = await this.#operator('online: the operator is synced, has written and finds a service by name', works)
    findings.equal(first.host, 'https://10.96.0.1:443', 'it knows the service alone')
    findings.equal(first.lists, informers, 'each of its informers listed once')
    this.#checkRefusal('online', first)
    findings.check(
      (await this.#lists()).some((line) => line.includes('endpointslices')),
      'lists are told by the edge',
    )
    await create([configMap('online', namespace, { value: 'yes' })])
    await this.#operator('online: the operator hears of a change', ({ values }) => values.online === 'yes')
    findings.equal(await site.resolve(web.name), [web.address], 'online: the cluster’s DNS answers the node, too')
    await this.#found('online: the node would survive a reboot, says ake check', async () => {
      await site.node.check()
      return true
    })
    return containers
  }

  /** By whom what is seen: the views of this node, and nothing of them in the cluster. */
  async #checkNode(): Promise<void> {
    const { context, oracle, site, findings } = this.#parts
    const rules = await site.rules()
    findings.check(
      site.leadsHere(rules) && !rules.includes(nowhere),
      'kube-proxy leads the service to the edge alone',
      rules,
    )
    const own = (await site.node.edgeCa()).trim()
    for (const { pod, pid } of await site.node.containers.running()) {
      if (pod !== 'plain')
        findings.check((await site.mountedCa(pid)).includes(own), `the edge's authority is mounted into ${pod}`)
    }
    findings.check(
      !(await ask(oracle, rootCa(namespace))).body.includes(JSON.stringify(own).slice(1, -1)),
      'and not in the cluster',
    )
    findings.check((await ask(oracle, slices)).body.includes(nowhere), 'where the service is as it was')
    const other = join(context.dir, 'other-node.json')
    await writeFile(other, JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: otherNode } }))
    const refused = await site.asKubelet('replace', '--raw', `/api/v1/nodes/${otherNode}`, '-f', other)
    const words = `node "${nodeName}" is not allowed to modify node "${otherNode}"`
    findings.check(refused.includes(words), 'NodeRestriction holds for the kubelet through the edge', refused)
    await this.#checkForeignSecret('online')
  }

  /** A Secret that no pod of the node names is not the kubelet's to read; the edge itself may, and may have it. */
  async #checkForeignSecret(when: string): Promise<void> {
    const { site, findings } = this.#parts
    const said = await site.asKubelet('get', '--raw', '/api/v1/namespaces/kube-system/secrets/elsewhere')
    findings.check(
      /Forbidden|ServiceUnavailable/.test(said),
      `${when}: the kubelet is not shown a Secret of others`,
      said,
    )
  }

  async #cut(containers: readonly Container[]): Promise<void> {
    const { context, site, findings } = this.#parts
    context.progress('the line is cut')
    const before = await this.#operator(
      'online: the operator writes until the line is cut',
      ({ write }) => write === 'ok',
    )
    await site.machine.setLine('silent')
    await this.#found('cut: the edge finds the cloud away', async () => (await site.cloudState()) === 'unreachable')
    await this.#operator('cut: a write is refused', ({ write }) => write !== 'ok')
    await pause(goesOnMs, undefined, { signal: context.signal })
    const after = await this.#judged('cut')
    this.#checkMisses('cut', before, after)
    findings.equal(after.lists, informers, 'cut: no informer of the operator listed again')
    findings.equal(after.watches, before.watches, 'cut: its watches stayed open')
    findings.equal(await site.resolve(web.name), [web.address], 'cut: DNS answers the node')
    findings.equal(ids(await site.node.containers.running()), ids(containers), 'cut: the same containers run')
    await this.#checkForeignSecret('cut')
  }

  /** The edge alone is killed: each client that outlives it goes on where it was. */
  async #restartEdge(when: string): Promise<void> {
    const { context, site, findings } = this.#parts
    context.progress(`the edge alone is killed and starts again (${when})`)
    const before = await this.#operator(`${when}: the operator goes on`, () => true)
    const begun = await site.begun()
    const running = ids(await site.node.containers.running())
    await site.node.killEdge()
    site.node.startEdge()
    await this.#found(`${when}: the edge serves again`, async () => (await site.node.page('/readyz')) === 'ok')
    const resumed = (now: OperatorState) => now.watches >= before.watches + informers
    const after = await this.#operator(`${when}: every watch of the operator is open again`, resumed)
    await this.#judged(`${when}, the edge restarted`, when === 'back' ? 'taken' : 'refused')
    await pause(goesOnMs, undefined, { signal: context.signal })
    const last = await this.#operator(`${when}: the operator still goes on`, ({ rounds }) => rounds > after.rounds)
    findings.equal(last.lists, before.lists, `${when}: the edge's restart made no informer of the operator list again`)
    this.#checkMisses(`${when}, the edge restarted`, before, last)
    findings.equal(await site.begun(), begun, `${when}: nor did kubelet or kube-proxy begin anew`)
    findings.equal(await this.#lists(), [], `${when}: nobody listed anything at the edge since its restart`)
    findings.equal(ids(await site.node.containers.running()), running, `${when}: no container was restarted for it`)
    const looked = `${begun.kubelet} informers of the kubelet, ${begun['kube-proxy']} of kube-proxy, ${informers} of the operator`
    findings.note(`${when}: the edge's restart was outlived by ${looked}, and those of CoreDNS`)
  }

  async #happenMeanwhile(): Promise<void> {
    const { create } = this.#parts
    await create([
      configMap('meanwhile', namespace, { value: 'yes' }),
      service('later', namespace, { ports: [{ port: 80 }] }),
    ])
  }

  /** Everything on the node ends at once and starts again, without the cloud. */
  async #reboot(before: readonly Container[]): Promise<readonly Container[]> {
    const { context, site, findings } = this.#parts
    await site.machine.cut()
    context.progress('the node was without power, and the line is still cut: power on')
    const { atMs } = await site.boot()
    const since = () => `${((performance.now() - atMs) / 1000).toFixed(1)} s after the kubelet's start`
    const containers = await this.#found('rebooted: all pods run', async () => {
      const running = await site.node.containers.running()
      return running.length === podCount && running
    })
    findings.note(`rebooted: all pods run ${since()}`)
    const fresh = containers.every(({ id }) => !before.some((one) => one.id === id))
    findings.check(fresh, 'rebooted: they are new containers: the power was really cut')
    const works = (now: OperatorState) => now.synced && isResolved(now) && now.wrote === 0
    const begun = await this.#operator(
      'rebooted: the operator begins with the edge alone and finds a service by name',
      works,
    )
    findings.note(`rebooted: the operator is synced and DNS answers ${since()}`)
    findings.equal(begun.lists, informers, 'rebooted: each of its informers listed once')
    findings.equal(
      [begun.values.online, begun.values.meanwhile],
      ['yes', null],
      'rebooted: it sees what was last known',
    )
    await this.#judged('rebooted')
    const rules = await site.rules()
    findings.check(
      site.leadsHere(rules) && !rules.includes(nowhere),
      'rebooted: kube-proxy leads the service to the edge alone',
      rules,
    )
    findings.equal(await site.resolve(web.name), [web.address], 'rebooted: DNS answers the node')
    findings.equal(await site.resolve('later'), [], 'rebooted: and nothing that nobody here can know')
    findings.equal(await site.cloudState(), 'unreachable', 'rebooted: the cloud is still away')
    await this.#checkForeignSecret('rebooted')
    return containers
  }

  async #comeBack(running: readonly Container[]): Promise<void> {
    const { context, oracle, site, findings } = this.#parts
    context.progress('the line is back')
    const before = await this.#operator('rebooted: the operator goes on until the line is back', () => true)
    await site.machine.setLine('open')
    const backMs = Date.now()
    const heard = ({ values, wrote }: OperatorState) => values.meanwhile === 'yes' && wrote > 0
    await this.#operator('back: what happened meanwhile arrives, and writes go on', heard)
    await this.#found(
      'back: DNS answers the name of a service made meanwhile',
      async () => (await site.resolve('later')).length === 1,
    )
    await this.#found('back: the node is Ready by its own word', () => isNodeReady(oracle, nodeName, backMs))
    await this.#found('back: the API server knows all pods as they are', () => agreed(site.node.containers, oracle))
    await pause(goesOnMs, undefined, { signal: context.signal })
    findings.equal(ids(await site.node.containers.running()), ids(running), 'back: the return restarted nothing')
    findings.equal((await podsOf(oracle)).length, podCount, 'back: and ended nothing')
    const last = await this.#operator('back: the operator finds a service by name', isResolved)
    findings.equal(last.lists, informers, 'back: no informer of the operator listed again')
    this.#checkMisses('back', before, last)
  }

  /** The edge passed on what others wrote, each in the writer's own name, and wrote nothing itself. */
  async #checkAudit(): Promise<void> {
    const { oracle, findings } = this.#parts
    const done = (await auditedWrites(oracle.dir)).filter(({ code }) => code >= 200 && code < 300)
    const writers = (of: string, name?: string) =>
      [
        ...new Set(
          done.filter((one) => one.what.endsWith(of) && (name ?? one.name) === one.name).map(({ user }) => user),
        ),
      ].sort()
    findings.equal(
      writers(' configmaps', 'written'),
      [operatorUser],
      'audit: what the operator wrote was written by it',
    )
    findings.equal(
      writers(' nodes/status', nodeName).includes(`system:node:${nodeName}`),
      true,
      'audit: the kubelet reports as its node',
    )
    findings.equal(
      writers(' serviceaccounts/token', 'operator'),
      [`system:node:${nodeName}`],
      'audit: and has asked for the operator’s token',
    )
    findings.equal(
      done.filter(({ user }) => user === edgeUser),
      [],
      'audit: the edge wrote nothing in its own name',
    )
    findings.note(`audit: ${done.length} writes, by ${[...new Set(done.map(({ user }) => user))].length} users`)
  }

  #checkMisses(when: string, before: OperatorState, { misses, lastMiss }: OperatorState): void {
    const more = misses - before.misses
    this.#parts.findings.check(more === 0, `${when}: no name was without an answer`, `${more} were: ${lastMiss}`)
  }

  /** What was listed at the edge since its start, by whomever. */
  async #lists(): Promise<string[]> {
    const asked = askedOf(await this.#parts.site.node.metrics())
    return asked.filter((line) => / list /.test(line) && /, 200:/.test(line))
  }

  /** Its pod mounts that Secret, and so the edge has it: refused is who asks. */
  #checkRefusal(when: string, { read, secret, refused }: OperatorState): void {
    const { findings } = this.#parts
    findings.equal([read, secret], [200, 403], `${when}: the operator has its own rights, and no others`)
    findings.check(
      refused.includes(`User "${operatorUser}" cannot get`),
      `${when}: and is refused by its name`,
      refused,
    )
  }

  /** From now on: what it asked before is over. */
  async #judged(when: string, writes: 'taken' | 'refused' = 'refused'): Promise<OperatorState> {
    const { rounds } = await this.#operator(`${when}: the operator runs`, () => true)
    const judged = (now: OperatorState) =>
      now.rounds > rounds + 1 && now.read === 200 && isResolved(now) && (now.write === 'ok') === (writes === 'taken')
    const now = await this.#operator(
      `${when}: the operator reads past its informers and finds a service by name`,
      judged,
    )
    this.#checkRefusal(when, now)
    return now
  }

  /** Waits for it; what does not come is said with what there was, and the rest cannot be looked at. */
  async #operator(what: string, is: (now: OperatorState) => boolean): Promise<OperatorState> {
    let last: OperatorState | undefined
    const look = async () => {
      last = await this.#parts.site.operator(this.#uid)
      return last !== undefined && is(last) && last
    }
    return await this.#found(what, look).catch((error: Error) => {
      throw new Error(`${error.message}; the operator says ${JSON.stringify(last)}`)
    })
  }

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

const isResolved = ({ found, missed }: OperatorState) => missed === '' && found?.join() === web.address
const ids = (containers: readonly Container[]) => containers.map(({ id }) => id).join()

async function isThere(oracle: Oracle, path: string): Promise<boolean> {
  return (await ask(oracle, path)).status === 200
}
