/**
 * The real kubectl, the same script on ake and on a real kube-apiserver: whatever a user would see (output, errors, exit
 * code) must be the same, apart from what mask.ts names and the differences that kubectl/allowed.ts lists with reasons.
 */

import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buildKubernetes } from './build.ts'
import { allowed } from './kubectl/allowed.ts'
import type { Allowed, Command } from './kubectl/command.ts'
import { script } from './kubectl/script.ts'
import { interrupted, runCommand } from './kubectl/shell.ts'
import type { Step, StepContext, StepResult } from './step.ts'

/** How much of one difference is shown. */
const linesMax = 30

export const step: Step = { name: 'kubectl', tier: 'default', minutes: 4, run }

async function run(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const [ake, oracle] = await Promise.all([context.ake(), context.oracle()])
  const shell = async (name: string, kubeconfig: string) => {
    const home = join(dir, `home-${name}`)
    await mkdir(home, { recursive: true })
    return { bin, kubeconfig, home, signal }
  }
  const [ours, real] = await Promise.all([shell('ake', ake.kubeconfig), shell('oracle', oracle.kubeconfig)])

  const failures: string[] = []
  const needed = new Map<Allowed, number>()
  let passed = 0
  const transcript = join(dir, 'transcript.txt')
  for (const command of script) {
    const [left, right] = await Promise.all([runCommand(ours, command), runCommand(real, command)])
    await appendFile(transcript, `$ ${command.line}\n${right}\n`)
    const verdict = judge(command.line, left, right)
    if (!endsAsTold(command, right))
      failures.push(`${command.line}\n  the real server's answer shows nothing:\n${right}`)
    else if (!verdict.same) failures.push(`${command.line}\n${difference(left, right)}`)
    else passed += 1
    if (verdict.by !== undefined) needed.set(verdict.by, (needed.get(verdict.by) ?? 0) + 1)
  }
  const differences: string[] = []
  let listed = 0
  for (const entry of allowed) {
    const uses = needed.get(entry) ?? 0
    listed += uses
    if (uses > 0) differences.push(`listed difference, ${uses} lines: ${entry.reason}`)
    else failures.push(`no line needs the listed difference ${entry.commands}: remove it`)
  }
  differences.push(`${script.length} lines: ${passed - listed} identical, ${listed} with listed differences`)
  return { passed, failed: failures.length, notes: [...failures, ...differences] }
}

/** A line that fails, or a watch that is silent, for a reason that has nothing to do with it would prove nothing. */
export function endsAsTold({ watch, fails }: Command, real: string): boolean {
  const exit = /^--- exit (.*)\n$/m.exec(real.slice(real.lastIndexOf('--- exit ')))?.[1]
  if (watch !== undefined) return exit === interrupted
  return fails === true ? exit !== undefined && /^[1-9]/.test(exit) : exit === '0'
}

type Verdict = { readonly same: boolean; readonly by?: Allowed }

function judge(line: string, ours: string, real: string): Verdict {
  if (ours === real) return { same: true }
  for (const entry of allowed) {
    if (entry.commands.test(line) && covers(entry, ours, real)) return { same: true, by: entry }
  }
  return { same: false }
}

function covers(entry: Allowed, ours: string, real: string): boolean {
  if ('ours' in entry) return entry.ours.test(ours)
  return without(ours, entry.lines) === without(real, entry.lines)
}

function without(text: string, lines: RegExp): string {
  return text
    .split('\n')
    .filter((line) => !lines.test(line))
    .join('\n')
}

/** The lines that only one side has, in order; `-` is ake's, `+` the real server's. */
export function difference(ours: string, real: string): string {
  const left = ours.split('\n')
  const right = real.split('\n')
  const lines = [
    ...left.filter((line) => !right.includes(line)).map((line) => `  - ${line}`),
    ...right.filter((line) => !left.includes(line)).map((line) => `  + ${line}`),
  ]
  if (lines.length === 0) return '  the same lines in another order'
  return [
    ...lines.slice(0, linesMax),
    ...(lines.length > linesMax ? [`  … ${lines.length - linesMax} more`] : []),
  ].join('\n')
}
