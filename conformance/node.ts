/**
 * A real kubelet with containerd through `ake edge`: the API server dies, then the node loses its power. Both pods run again
 * before the API server is back, and its return restarts nothing. Needs root and some packages (`--node`).
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { until } from '../src/base/until.test-support.ts'
import { buildKubernetes } from './build.ts'
import { askedOf } from './node/asked.ts'
import type { Container } from './node/containers.ts'
import { EdgeNode } from './node/node.ts'
import { install, missing } from './node/packages.ts'
import { logged, namespace, needed, pods } from './node/pods.ts'
import { agreed, isNodeReady, logOf, type Pod, podsOf } from './node/told.ts'
import { ask, type Oracle, startOracle } from './oracle.ts'
import type { Step, StepContext, StepResult } from './step.ts'

const execute = promisify(execFile)

const name = 'edge-node'
/** What is promised, from the kubelet's start on. */
const runningMsMax = 10_000
/** What is looked at beyond that, to tell late from never. */
const lookedMsMax = 60_000
/** Without the edge: as long as one looks until "never" is said. */
const neverMs = 30_000
/** A node's own report is due every 10 s, its pods' restarts would come within a few. */
const quietMs = 25_000
const onlineMsMax = 120_000
const deployed = (file: string) => join(import.meta.dirname, '..', 'deploy', file)

export const step: Step = {
  name: 'node',
  tier: 'node',
  minutes: 5,
  missing: () => missing(),
  async run(context) {
    const { dir, signal, progress } = context
    if (process.getuid?.() !== 0) throw new Error('this proof needs root: it makes namespaces and containers')
    await install(progress)
    const { bin } = await buildKubernetes({ only: ['kubelet', 'kubectl'], progress })
    // From the machine's network it is not on loopback.
    const extraArgs = ['--bind-address=0.0.0.0']
    const oracle = await startOracle({ dir: join(dir, 'oracle'), controllers: true, extraArgs, signal, progress })
    const node = new EdgeNode({ dir, bin, name, oracle })
    const end = () => node.machine.stop()
    process.once('exit', end)
    signal.addEventListener('abort', end, { once: true })
    try {
      await create(oracle, bin, ['-f', deployed('edge-rbac.yaml')])
      await create(oracle, bin, needed())
      await create(oracle, bin, ['-n', namespace, '-f', deployed('edge-secrets.yaml')])
      await node.prepare()
      return await prove({ node, oracle, bin, signal, progress })
    } finally {
      signal.removeEventListener('abort', end)
      await node.machine.cut()
      process.removeListener('exit', end)
      oracle.stop()
    }
  },
}

type Proof = Pick<StepContext, 'progress' | 'signal'> & {
  readonly node: EdgeNode
  readonly oracle: Oracle
  readonly bin: string
  readonly notes: string[]
  judge(holds: boolean, sentence: string): void
}

async function prove({ node, oracle, bin, signal, progress }: Omit<Proof, 'judge' | 'notes'>): Promise<StepResult> {
  const notes: string[] = []
  let passed = 0
  let failed = 0
  const judge = (holds: boolean, sentence: string) => {
    if (holds) passed++
    else failed++
    notes.push(`${holds ? '' : 'FAILED: '}${sentence}`)
    progress(sentence)
  }
  const proof = { node, oracle, bin, signal, progress, notes, judge }
  const before = await startOnline(proof)
  const containers = await startDead(proof, before.containers)
  // What follows would only repeat that failure.
  if (containers === undefined) return { passed, failed, notes }
  await comeBack(proof, before.pods, containers)
  await startSilent(proof)
  await startAlone(proof)
  return { passed, failed, notes }
}

type Before = { readonly containers: readonly Container[]; readonly pods: readonly Pod[] }

/** Nothing has happened yet: both pods become ready through the edge. */
async function startOnline({ node, oracle, bin, signal, progress }: Proof): Promise<Before> {
  progress('power on, the API server is there')
  await node.boot({ through: 'edge' })
  const rootCa = `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`
  await foundWithin(onlineMsMax, signal, async () => (await ask(oracle, rootCa)).status === 200)
  await create(oracle, bin, pods(name))
  const containers = await foundWithin(onlineMsMax, signal, () => agreed(node.containers, oracle))
  const told = await podsOf(oracle)
  if (containers === undefined) throw new Error(`the pods did not become ready: ${JSON.stringify(told)}`)
  // The kubelet's first reads were passed through: on a busy machine its pods are ready before the edge holds all of them.
  const held = await foundWithin(onlineMsMax, signal, () => isHeld(node))
  if (held === undefined) throw new Error(`the edge does not hold what the kubelet reads: ${await node.status()}`)
  return { containers, pods: told }
}

/** The main thing: the API server is dead, and the node has been without power. */
async function startDead({ node, oracle, signal, progress, notes, judge }: Proof, before: readonly Container[]) {
  await oracle.kill()
  await node.machine.cut()
  progress('the API server is dead and the node was without power: power on')
  const { atMs } = await node.boot({ through: 'edge' })
  const started = await foundWithin(lookedMsMax, signal, () => bothRun(node, atMs))
  judge(isInTime(started), `while the API server is dead ${spoken(started)}`)
  if (started !== undefined) {
    const probed = await foundWithin(runningMsMax, signal, () => isProbed(node))
    judge(probed === true, 'the readiness probe finds token, ConfigMap and Secret in the pod that needs them')
    const fresh = started.containers.every(({ id }) => !before.some((one) => one.id === id))
    judge(fresh, 'they are new containers of the same pods: the power was really cut')
    await pause(quietMs, undefined, { signal })
  }
  notes.push(...(await figuresOf(node).catch(() => ['the edge cannot be asked: see its log'])))
  return started?.containers
}

async function figuresOf(node: EdgeNode): Promise<string[]> {
  const status = (await node.status()).split('\n').filter((line) => line !== '')
  return [...askedOf(await node.metrics()), `the edge uses ${await node.edgeMemory()} MB`, ...status]
}

/** The API server returns to what has been running without it. */
async function comeBack(proof: Proof, before: readonly Pod[], running: readonly Container[]): Promise<void> {
  const { node, oracle, signal, progress, judge } = proof
  progress('the API server returns')
  // Before it does: the next report after its first is due minutes later, and that may come while the rest of it still starts.
  const returnedMs = Date.now()
  await oracle.restart()
  const back = await foundWithin(lookedMsMax, signal, () => agreed(node.containers, oracle))
  const seconds = ((Date.now() - returnedMs) / 1000).toFixed(1)
  const upToDate = 'it knows both pods as they are: ready, with their containers and addresses'
  judge(back !== undefined, `${seconds} s later ${upToDate}`)
  const then = await podsOf(oracle)
  const ready = await foundWithin(lookedMsMax, signal, () => isNodeReady(oracle, name, returnedMs))
  judge(ready === true, 'the node is Ready by a report of its own since then, and renews its lease')
  await pause(quietMs, undefined, { signal })
  const same = ids(await node.containers.running()) === ids(running)
  judge(same, `the return restarted nothing: the same containers run ${quietMs / 1000} s later`)
  const now = await podsOf(oracle)
  judge(counts(now) === counts(then), `restarts counted: ${counts(before)} before, ${counts(now)} since the power cut`)
  judge(uids(now) === uids(before), 'the pods are still the same objects')
  judge((await logOf(oracle, 'full')).includes(logged), 'the log of a pod can be read through the API server')
}

/** Once more, with a line that takes everything and answers nothing: most real ones fail like that. */
async function startSilent({ node, oracle, signal, progress, judge }: Proof): Promise<void> {
  await node.machine.setLine('silent')
  await node.machine.cut()
  progress('the line is silent and the node was without power again: power on')
  const { atMs } = await node.boot({ through: 'edge' })
  const started = await foundWithin(lookedMsMax, signal, () => bothRun(node, atMs))
  judge(isInTime(started), `while the line is silent ${spoken(started)}`)
  await pause(runningMsMax, undefined, { signal })
  await node.machine.setLine('open')
  const heard = await foundWithin(lookedMsMax, signal, () => agreed(node.containers, oracle))
  judge(heard !== undefined && ids(heard) === ids(started?.containers), 'and the healed line restarts nothing')
}

/** For contrast, and not judged: a kubelet that asks the dead API server itself. */
async function startAlone({ node, oracle, signal, progress, notes }: Proof): Promise<void> {
  await oracle.kill()
  await node.machine.cut()
  progress('for contrast: the API server is dead, and the kubelet without the edge')
  const { atMs } = await node.boot({ through: 'nothing' })
  const started = await foundWithin(neverMs, signal, () => bothRun(node, atMs))
  notes.push(`for contrast, without the edge ${spoken(started, neverMs)}`)
}

const ids = (containers: readonly Container[] | undefined) => containers?.map(({ id }) => id).join()
const counts = (all: readonly Pod[]) =>
  all.map(({ status }) => status.containerStatuses?.[0]?.restartCount).join(' and ')
const uids = (all: readonly Pod[]) => all.map(({ metadata }) => metadata.uid).join()

/** Undefined when the time is over; what cannot be asked is not there yet. */
async function foundWithin<Found>(ms: number, signal: AbortSignal, look: () => Promise<Found | undefined | false>) {
  const found = until(() => look().catch(() => undefined), '', { withinMs: ms, everyMs: 20, signal })
  return await found.catch(() => {
    signal.throwIfAborted()
    return undefined
  })
}

type Started = { readonly containers: readonly Container[]; readonly afterMs: number }

const isInTime = (started: Started | undefined) => started !== undefined && started.afterMs <= runningMsMax

function spoken(started: Started | undefined, lookedMs = lookedMsMax): string {
  if (started === undefined) return `the pods do not run within ${lookedMs / 1000} s of the kubelet's start`
  return `both pods run ${(started.afterMs / 1000).toFixed(1)} s after the kubelet's start`
}

async function bothRun(node: EdgeNode, sinceMs: number): Promise<Started | false> {
  const containers = await node.containers.running()
  return containers.length === 2 && { containers, afterMs: performance.now() - sinceMs }
}

/** Without `--node` an edge holds what was asked for, and these a kubelet asks for once it runs. */
async function isHeld(node: EdgeNode): Promise<boolean> {
  const status = JSON.parse(await node.page('/ake/status')) as { interests: { resource: string; state: string }[] }
  const isIn = (resource: string) => status.interests.some((one) => one.resource === resource)
  return (
    ['services', 'csinodes'].every(isIn) && status.interests.every(({ state }) => state === 'synced' || state === 'fed')
  )
}

async function isProbed(node: EdgeNode): Promise<boolean> {
  const lines = (await node.probes()).split('\n')
  return lines.some((line) => line.startsWith('prober_probe_total{') && /result="successful"/.test(line))
}

/** Objects, or the arguments of kubectl that name them. */
async function create(oracle: Oracle, bin: string, what: readonly object[] | readonly string[]): Promise<void> {
  const isWords = (all: typeof what): all is readonly string[] => typeof all[0] === 'string'
  const words = isWords(what) ? what : ['-f', '-']
  const applied = execute(join(bin, 'kubectl'), ['--kubeconfig', oracle.kubeconfig, 'apply', ...words])
  if (!isWords(what)) applied.child.stdin?.write(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: what }))
  applied.child.stdin?.end()
  await applied
}
