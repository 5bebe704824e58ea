/**
 * Server-side apply and managed fields by name: the cases in `apply/cases`, what users do with the real kubectl, and what
 * operators do with client-go's apply clients, each on `ake serve` and on a real kube-apiserver.
 */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readCases } from './apply/cases.ts'
import { defineAll, makeNamespace } from './apply/define.ts'
import { script } from './apply/kubectl.ts'
import { type Played, playAll } from './apply/lockstep.ts'
import { buildKubernetes } from './build.ts'
import type { Difference } from './compare.ts'
import { Side } from './exchange.ts'
import { Findings } from './findings.ts'
import { buildGoProgram } from './goprogram.ts'
import { runCommand } from './kubectl/shell.ts'
import { difference, endsAsTold } from './kubectl.ts'
import { admits, type Listed, listedIn } from './listed/listed.ts'
import { startOracle } from './oracle.ts'
import type { Step, StepContext, StepResult } from './step.ts'
import { type Outcome, verdict } from './verdict.ts'

const clientsNamespace = 'apply-clients'
/** It does some sixty requests. */
const clientsMsMax = 60_000

export const step: Step = {
  name: 'apply',
  tier: 'default',
  minutes: 2,
  async run(context: StepContext): Promise<StepResult> {
    // Not the shared one: definitions and nodes are left behind.
    const { dir, signal, progress } = context
    const oracle = await startOracle({ dir: join(dir, 'oracle'), signal, progress })
    const ake = await context.ake()
    const [real, ours] = [new Side(oracle), new Side(ake)]
    const findings = new Findings()
    try {
      await defineAll([real, ours])
      if (context.only('cases')) findings.add(await runCases(context, { real, ours }))
      if (context.only('kubectl'))
        findings.add(await runKubectl(context, { real: oracle.kubeconfig, ours: ake.kubeconfig }))
      if (context.only('clients')) {
        await makeNamespace([real, ours], clientsNamespace)
        findings.add(await runClients(context, { real: oracle.kubeconfig, ours: ake.kubeconfig }))
      }
      return findings.result
    } finally {
      real.close()
      ours.close()
      oracle.stop()
    }
  },
}

type Sides = { readonly real: Side; readonly ours: Side }

async function runCases({ signal }: StepContext, sides: Sides): Promise<StepResult> {
  const listed = listedIn('apply differences')
  const namespace = 'apply-cases'
  await makeNamespace([sides.real, sides.ours], namespace)
  const played = await playAll({ ...sides, namespace, signal, seconds: true, toTheEnd: true }, await readCases())
  return verdict(
    played.map((one) => outcome(one, listed)),
    listed,
    true,
  )
}

/** A field is told with the number of its step. */
function outcome({ scenario: { name }, steps }: Played, listed: readonly Listed[]): Outcome {
  const all = steps.flatMap(({ open }, at) => open.map((one) => ({ ...one, field: `${at + 1}.${one.field}` })))
  const admitting = ({ field }: Difference) => listed.filter((entry) => admits(entry, name, field))
  return {
    name,
    open: all.filter((one) => admitting(one).length === 0),
    listed: new Set(all.flatMap((one) => admitting(one).map(({ id }) => id))),
  }
}

type Configs = { readonly real: string; readonly ours: string }

async function runKubectl({ dir, signal, progress }: StepContext, configs: Configs): Promise<StepResult> {
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const shell = async (name: keyof Configs) => {
    const home = join(dir, `home-${name}`)
    await mkdir(home, { recursive: true })
    return { bin, kubeconfig: configs[name], home, signal }
  }
  const [real, ours] = await Promise.all([shell('real'), shell('ours')])
  const findings = new Findings()
  for (const command of script) {
    const [said, found] = await Promise.all([runCommand(real, command), runCommand(ours, command)])
    const told = endsAsTold(command, said)
    if (!told) findings.check(false, `${command.line}\n  the real server's answer shows nothing:\n${said}`)
    else findings.check(said === found, `${command.line}\n${difference(found, said)}`)
  }
  findings.note(`${script.length} lines of kubectl`)
  return findings.result
}

/** Typed, dynamic and metadata clients in Go, in JSON and in protobuf: a line for each answer. */
async function runClients({ progress, signal }: StepContext, configs: Configs): Promise<StepResult> {
  const program = await buildGoProgram('applier', progress)
  const lines = async (kubeconfig: string) => {
    const args = ['-kubeconfig', kubeconfig, '-namespace', clientsNamespace]
    const { stdout } = await promisify(execFile)(program, args, { signal, timeout: clientsMsMax, maxBuffer: 1 << 24 })
    return stdout.trimEnd().split('\n')
  }
  const [real, ours] = await Promise.all([lines(configs.real), lines(configs.ours)])
  const findings = new Findings()
  for (const [at, line] of real.entries()) findings.equal(ours[at], line, line.slice(0, line.indexOf(':')))
  findings.note(`${real.length} answers to clients in Go`)
  return findings.result
}
