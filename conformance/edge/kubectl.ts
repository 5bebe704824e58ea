/**
 * kubectl through an edge: the whole script of kubectl.ts with the edge in front of one API server and directly at another,
 * then streams to a running pod and an aggregated API through it; at last everything it had seen before with the line cut, and
 * again after a kill and a restart while it is cut.
 */
import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { proveAggregated } from '../aggregated.ts'
import type { Ake } from '../ake.ts'
import { buildKubernetes } from '../build.ts'
import { putBetween } from '../hubs.ts'
import type { Command } from '../kubectl/command.ts'
import { script } from '../kubectl/script.ts'
import { runCommand } from '../kubectl/shell.ts'
import { difference, endsAsTold } from '../kubectl.ts'
import { type Link, startLink } from '../link.ts'
import { ask, type Oracle, startOracle } from '../oracle.ts'
import { startStandIn } from '../standin.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { proveStreams } from '../streams.ts'
import { Cut } from './cut.ts'
import { startEdge } from './edge.ts'

/** An idle link to a hub asks for a sign of life every half a minute. */
const stateMsMax = 60_000
const lookAgainMs = 100

export const step: Step = { name: 'edge-kubectl', tier: 'default', minutes: 3, run: (context) => run(context, false) }

/** The same through a hub. */
export const hubStep: Step = { name: 'hub-kubectl', tier: 'all', minutes: 4, run: (context) => run(context, true) }

type Found = { count: number; faults: string[] }

async function run(context: StepContext, isBehindHub: boolean): Promise<StepResult> {
  const { dir, signal, progress, only } = context
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  // Two of their own: the script leaves its namespace behind, and what one line did the next one finds.
  const [behind, beside] = await Promise.all([
    startOracle({ dir: join(dir, 'behind'), signal, progress }),
    only('script') ? startOracle({ dir: join(dir, 'beside'), signal, progress }) : undefined,
  ])
  const link = await startLink({ target: { host: '127.0.0.1', port: behind.port } })
  const between = isBehindHub ? await putBetween({ dir, oracle: behind, link, signal }) : undefined
  const options = {
    ...(between?.way ?? { server: link.url, kubeconfig: behind.kubeconfig }),
    dir: join(dir, 'edge'),
    signal,
  }
  let edge = await startEdge(options)
  const shell = (name: string, kubeconfig: string) => ({ bin, kubeconfig, home: join(dir, `home-${name}`), signal })
  const found: Found[] = []
  const note = (what: string, one: Found) => {
    found.push(one)
    progress(`${what}: ${one.count} lines, ${one.faults.length} wrong`)
  }
  try {
    await untilState(edge, 'reachable')
    if (beside !== undefined) {
      const sides = [shell('edge', edge.kubeconfig), shell('beside', beside.kubeconfig)] as const
      note('script', await runScript(sides, join(dir, 'transcript.txt')))
      beside.stop()
    }
    if (only('streams')) note('streams', await streams(context, bin, behind, edge))
    if (only('aggregated')) {
      const sides = [shell('aggregated', edge.kubeconfig), shell('behind', behind.kubeconfig)] as const
      note('aggregated', await proveAggregated(behind, sides))
    }
    if (!only('offline')) return result(found)
    const cut = new Cut({ dir, shell, signal })
    note('before the cut', await cut.prepare(edge, behind))
    await link.set('refuse')
    await untilState(edge, 'unreachable')
    note('offline', await cut.prove('offline', edge))
    await edge.kill()
    edge = await startEdge({ ...options, port: edge.port })
    note('restarted offline', await cut.prove('restarted', edge))
    note('returned', await returned(link, edge, cut))
    return result(found)
  } finally {
    await edge.kill()
    await between?.hub.end('kill')
    await link.close()
    behind.stop()
    beside?.stop()
  }
}

function result(found: readonly Found[]): StepResult {
  const faults = found.flatMap((one) => one.faults)
  const count = found.reduce((sum, one) => sum + one.count, 0)
  return { passed: count - faults.length, failed: faults.length, notes: [...faults, `${count} lines`] }
}

async function returned(link: Link, edge: Ake, cut: Cut): Promise<Found> {
  await link.set('up')
  await untilState(edge, 'reachable')
  return await cut.returned(edge)
}

async function untilState(edge: Ake, state: string): Promise<void> {
  const give = performance.now() + stateMsMax
  const now = async () =>
    (JSON.parse((await ask(edge, '/ake/status')).body) as { upstream: { state: string } }).upstream
  while ((await now()).state !== state) {
    if (performance.now() > give) throw new Error(`the edge did not find its API server ${state}`)
    await pause(lookAgainMs)
  }
}

type Shell = Parameters<typeof runCommand>[0]

async function runScript([ours, real]: readonly [Shell, Shell], transcript: string): Promise<Found> {
  await Promise.all([ours, real].map(({ home }) => mkdir(home, { recursive: true })))
  const faults: string[] = []
  for (const command of script) {
    const [left, right] = await Promise.all([runCommand(ours, command), runCommand(real, command)])
    await appendFile(transcript, `$ ${command.line}\n${right}\n`)
    const fault = faultOf(command, left, right)
    if (fault !== undefined) faults.push(`${command.line}\n${fault}`)
  }
  return { count: script.length, faults }
}

function faultOf(command: Command, ours: string, real: string): string | undefined {
  if (!endsAsTold(command, real)) return `  the real server's answer shows nothing:\n${real}`
  return ours === real ? undefined : difference(ours, real)
}

async function streams({ dir, signal, progress }: StepContext, bin: string, oracle: Oracle, edge: Ake): Promise<Found> {
  const standIn = await startStandIn({ oracle, dir, signal, progress })
  const home = join(dir, 'home-streams')
  try {
    return await proveStreams({ bin, kubeconfig: edge.kubeconfig, home, node: standIn.node, signal })
  } finally {
    await standIn.stop()
  }
}
