/**
 * `npm run conformance [--all] [--node] [--write] [NAME…]`: every proof that needs a real Kubernetes, step by step. A NAME is a step
 * or `step/part` (`differential/patches`); with `--write` a text that a step compares with (night.txt) is written anew. The last
 * line alone tells the result: `N passed, N failed`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ake, type AkeOptions, startAke } from './ake.ts'
import { step as apply } from './apply.ts'
import { step as applysequences } from './applysequences.ts'
import { step as attacks } from './attacks.ts'
import { step as clientnode } from './clientnode.ts'
import { step as contrast } from './contrast.ts'
import { step as cuts } from './cuts.ts'
import { step as demo } from './demo.ts'
import { step as differential } from './differential.ts'
import { step as edgecoredns, hubStep as hubcoredns } from './edge/coredns.ts'
import { step as edgecuts, hubStep as hubcuts } from './edge/cuts.ts'
import { step as edgedocuments, hubStep as hubdocuments } from './edge/documents.ts'
import { step as edgeinformers, hubStep as hubinformers } from './edge/informers.ts'
import { step as edgekubectl, hubStep as hubkubectl } from './edge/kubectl.ts'
import { step as edgeprometheus } from './edge/prometheus.ts'
import { step as edgereads, hubStep as hubreads } from './edge/reads.ts'
import { step as edgewrites, hubStep as hubwrites } from './edge/writes.ts'
import { step as faults } from './faults.ts'
import { step as fleetcallers } from './fleet/callers.ts'
import { step as fleetjoin } from './fleet/join.ts'
import { step as fleetkubelet } from './fleet/kubelet.ts'
import { step as fleetlegacy } from './fleet/legacy.ts'
import { step as fleetpolicy } from './fleet/policy.ts'
import { step as fleetreplicas } from './fleet/replicas.ts'
import { step as fleetrotation } from './fleet/rotation.ts'
import { step as fleetstolen } from './fleet/stolen.ts'
import { step as fleetstorm } from './fleet/storm.ts'
import { step as gettingstarted } from './gettingstarted/gettingstarted.ts'
import { step as hollow, hubStep as hubhollow } from './hollow/hollow.ts'
import { step as hubeviction } from './hub/eviction.ts'
import { step as hubidentity } from './hub/identity.ts'
import { step as hubnode } from './hub/node.ts'
import { step as hubversions } from './hub/versions.ts'
import { step as incluster } from './incluster/incluster.ts'
import { step as informers } from './informers.ts'
import { step as kubectl } from './kubectl.ts'
import { step as linklong } from './linklong.ts'
import { step as edgenight } from './night/night.ts'
import { step as node } from './node.ts'
import { step as nodeauthorizer } from './nodeauthorizer/nodeauthorizer.ts'
import { step as nodeidentity } from './nodeidentity/nodeidentity.ts'
import { type Oracle, startOracle } from './oracle.ts'
import { step as protobufclients } from './protobuf/clients.ts'
import { longStep as longprotobuffuzz, step as protobuffuzz } from './protobuf/fuzz.ts'
import { step as protobuf } from './protobuf/protobuf.ts'
import { step as protobufrequests } from './protobuf/requests.ts'
import { step as rbac } from './rbac/rbac.ts'
import { step as edgecallers } from './rights/callers.ts'
import { step as edgerights } from './rights/rights.ts'
import { searchLogs } from './secrecy.ts'
import { step as serverbac } from './serverbac/serverbac.ts'
import { step as soak } from './soak.ts'
import type { Step, StepContext, StepResult } from './step.ts'
import { step as tokens } from './tokens/tokens.ts'
import { step as websockets } from './websockets.ts'

const steps: readonly Step[] = [
  differential,
  apply,
  applysequences,
  kubectl,
  informers,
  clientnode,
  websockets,
  protobuf,
  protobufrequests,
  protobufclients,
  protobuffuzz,
  longprotobuffuzz,
  cuts,
  faults,
  contrast,
  linklong,
  edgeinformers,
  hubinformers,
  hubidentity,
  hubversions,
  fleetcallers,
  hubeviction,
  fleetjoin,
  fleetlegacy,
  fleetpolicy,
  fleetreplicas,
  fleetstolen,
  fleetstorm,
  fleetrotation,
  edgecuts,
  hubcuts,
  soak,
  edgereads,
  hubreads,
  edgedocuments,
  hubdocuments,
  edgekubectl,
  hubkubectl,
  edgewrites,
  hubwrites,
  rbac,
  serverbac,
  edgerights,
  edgecallers,
  nodeauthorizer,
  tokens,
  attacks,
  edgecoredns,
  hubcoredns,
  edgeprometheus,
  hollow,
  hubhollow,
  incluster,
  gettingstarted,
  demo,
  edgenight,
  node,
  nodeidentity,
  hubnode,
  fleetkubelet,
]

const usage = `usage: npm run conformance -- [--all] [--node] [--write] [STEP | STEP/PART]…
${steps.map(({ name, tier, minutes }) => `  ${name.padEnd(16)} about ${minutes} min${tier === 'default' ? '' : ` (--${tier})`}`).join('\n')}`

const nodeSteps = steps.filter(({ tier }) => tier === 'node').map(({ name }) => name)

const asked = process.argv.slice(2)
const flags = ['--all', '--node', '--write']
const unknown = asked.find((word) => word.startsWith('-') && !flags.includes(word))
if (unknown !== undefined) {
  console.error(asked.includes('--help') ? usage : `unknown option ${unknown}\n${usage}`)
  process.exit(asked.includes('--help') ? 0 : 2)
}
process.exit(
  await main(
    asked.includes('--all'),
    asked
      .filter((word) => word !== '--all' && word !== '--write')
      .flatMap((word) => (word === '--node' ? nodeSteps : [word])),
  ),
)

async function main(all: boolean, names: readonly string[]): Promise<number> {
  const chosen = steps.filter(({ name, tier }) =>
    names.length > 0 ? names.some((asked) => asked.split('/')[0] === name) : all || tier === 'default',
  )
  if (chosen.length === 0) {
    console.error(`no step is named ${names.join(' ')}\n${usage}`)
    return 2
  }
  const dir = await mkdtemp(join(tmpdir(), 'ake-conformance-'))
  const quit = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => quit.abort(new Error('interrupted')))
  let oracle: Promise<Oracle> | undefined
  let passed = 0
  let failed = 0
  const wrong: string[] = []
  for (const [at, step] of chosen.entries()) {
    if (quit.signal.aborted) break
    console.log(`[${at + 1}/${chosen.length}] ${step.name} (about ${step.minutes} min)`)
    const lacks = names.length === 0 ? ((await step.missing?.()) ?? []) : []
    if (lacks.length > 0) {
      console.log(`      left out: it needs ${lacks.join(', ')}`)
      continue
    }
    const started = performance.now()
    const folder = join(dir, step.name)
    const result = await runStep(step, {
      dir: folder,
      all,
      write: asked.includes('--write'),
      only: (part) => admitted(names, step.name, part),
      signal: AbortSignal.any([quit.signal, AbortSignal.timeout(step.minutes * 2 * 60_000)]),
      progress: (line) => console.error(`      ${step.name}: ${line}`),
      oracle: () => {
        oracle ??= startOracle({ dir: join(dir, 'oracle'), signal: quit.signal, progress: console.error })
        return oracle
      },
    })
    for (const note of result.notes ?? []) console.log(`      ${note}`)
    const seconds = Math.round((performance.now() - started) / 1000)
    console.log(`      ${result.passed} passed, ${result.failed} failed in ${seconds} s`)
    passed += result.passed
    failed += result.failed
    if (result.failed > 0) wrong.push(`${step.name}: ${result.failed} failed`, ...lastNotes(result.notes ?? []))
  }
  if (quit.signal.aborted) failed++
  ;(await oracle?.catch(() => undefined))?.stop()
  if (failed === 0) await rm(dir, { recursive: true, force: true })
  else console.log(`what was stored and logged is in ${dir}`)
  for (const line of wrong) console.log(line)
  console.log(`${passed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

/** What failed is said once more at the end, since a CI may show only that; a step that fails in everything must not fill it. */
function lastNotes(notes: readonly string[]): string[] {
  const shown = notes.slice(0, 40).map((note) => `      ${note.slice(0, 2_000)}`)
  return notes.length > shown.length ? [...shown, `      and ${notes.length - shown.length} more lines`] : shown
}

/** A step that cannot go on counts as one failure and does not keep the others from running. */
async function runStep(step: Step, context: Omit<StepContext, 'ake'>): Promise<StepResult> {
  const started: Ake[] = []
  const ake = async (options: Partial<AkeOptions> = {}): Promise<Ake> => {
    const dir = join(context.dir, `ake${started.length}`)
    const one = await startAke({ dir, signal: context.signal, ...options })
    started.push(one)
    return one
  }
  const result = await step.run({ ...context, ake }).catch((error: unknown) => {
    return { passed: 0, failed: 1, notes: [error instanceof Error ? (error.stack ?? error.message) : String(error)] }
  })
  await Promise.all(started.map((one) => one.kill()))
  return withoutCredentials(result, context.dir)
}

/** One more finding of every step whose processes have logs: no credential is in them. */
async function withoutCredentials({ passed, failed, notes = [] }: StepResult, dir: string): Promise<StepResult> {
  const { logs, found } = await searchLogs(dir)
  if (logs === 0) return { passed, failed, notes }
  if (found.length > 0) return { passed, failed: failed + 1, notes: [...notes, ...found] }
  return { passed: passed + 1, failed, notes: [...notes, `no credential in ${logs} logs`] }
}

/** Names of other steps, and the bare name of this one, narrow nothing. */
function admitted(names: readonly string[], step: string, part: string): boolean {
  const parts = names.filter((name) => name.startsWith(`${step}/`)).map((name) => name.slice(step.length + 1))
  return parts.length === 0 || parts.includes(part)
}
