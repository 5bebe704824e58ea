/**
 * Clients that speak protobuf as they are: Go's typed clientset, metadata client and informers, and the typed commands of
 * kubectl. The same on a real kube-apiserver, on `ake serve` and through `ake edge`; then, with the line cut, what reads.
 */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildKubernetes } from '../build.ts'
import { buildGoProgram } from '../goprogram.ts'
import type { Command } from '../kubectl/command.ts'
import { runCommand } from '../kubectl/shell.ts'
import { difference, endsAsTold } from '../kubectl.ts'
import { startOracle } from '../oracle.ts'
import { startSite, untilReachable } from '../site.ts'
import type { Step, StepContext, StepResult } from '../step.ts'
import { typedReads, typedWrites } from './commands.ts'

const stateMsMax = 30_000
const clientsMsMax = 90_000
const run = promisify(execFile)

export const step: Step = { name: 'protobuf-clients', tier: 'default', minutes: 4, run: prove }

type Found = { count: number; readonly faults: string[] }

async function prove(context: StepContext): Promise<StepResult> {
  const { dir, signal, progress } = context
  const { bin } = await buildKubernetes({ only: ['kubectl'], progress })
  const program = await buildGoProgram('protobufclients', progress)
  const found: Found = { count: 0, faults: [] }
  const sides = new Sides({ bin, program, dir, signal, found })
  // What was written through the edge stays behind it, so the one to compare with is another.
  const oracle = await startOracle({ dir: join(dir, 'beside'), signal, progress })
  const site = await startSite({ dir: join(dir, 'site'), signal, progress })
  try {
    const ake = await context.ake()
    const edge = await site.edge('edge')
    const real = await sides.look(oracle.kubeconfig, 'beside', { reads: false })
    const reads = await sides.look(oracle.kubeconfig, 'beside', { reads: true })
    sides.compare('serve', await sides.look(ake.kubeconfig, 'serve', { reads: false }), real)
    progress(`ake serve: ${found.count} lines, ${found.faults.length} wrong`)
    sides.compare('edge', await sides.look(edge.kubeconfig, 'edge', { reads: false }), real)
    progress(`ake edge: ${found.count} lines, ${found.faults.length} wrong`)
    // Once more, for what is mirrored from the first look on.
    await sides.look(edge.kubeconfig, 'edge', { reads: true })
    await site.link.set('refuse')
    await untilReachable(site, false, stateMsMax)
    sides.compare('offline', await sides.look(edge.kubeconfig, 'edge', { reads: true }), reads)
    await edge.restart('kill')
    sides.compare('restarted', await sides.look(edge.kubeconfig, 'edge', { reads: true }), reads)
  } finally {
    await site.stop()
    oracle.stop()
  }
  return { passed: found.count - found.faults.length, failed: found.faults.length, notes: found.faults }
}

/** What was asked, and what was seen. */
type Look = readonly (readonly [asked: string, seen: string])[]

class Sides {
  readonly #parts: { bin: string; program: string; dir: string; signal: AbortSignal; found: Found }

  constructor(parts: { bin: string; program: string; dir: string; signal: AbortSignal; found: Found }) {
    this.#parts = parts
  }

  async look(kubeconfig: string, name: string, { reads }: { reads: boolean }): Promise<Look> {
    const { bin, dir, signal } = this.#parts
    const home = join(dir, `home-${name}`)
    await mkdir(home, { recursive: true })
    const seen: [string, string][] = await this.#clients(kubeconfig, reads)
    for (const command of reads ? typedReads : [...typedWrites, ...typedReads]) {
      const said = await runCommand({ bin, kubeconfig, home, signal }, command)
      if (name === 'beside') this.#check(command, said)
      seen.push([command.line, withoutAge(said)])
    }
    return seen
  }

  compare(where: string, ours: Look, real: Look): void {
    const { found } = this.#parts
    for (const [at, [asked, right]] of real.entries()) {
      found.count++
      const left = ours[at]?.[1] ?? 'nothing'
      if (left !== right) found.faults.push(`${where}: ${asked}\n${difference(left, right)}`)
    }
  }

  /** One entry for each line that it prints. */
  async #clients(kubeconfig: string, reads: boolean): Promise<[string, string][]> {
    const { program, signal } = this.#parts
    const args = ['-kubeconfig', kubeconfig, ...(reads ? ['-reads'] : [])]
    const told = await run(program, args, { signal, timeout: clientsMsMax }).catch(
      (error: Error & { stdout?: string }) => ({ stdout: `${error.stdout ?? ''}failed: ${error.message}` }),
    )
    const lines = told.stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.trimEnd())
      .toSorted()
    return [
      ['the Go clients', String(lines.length)],
      ...lines.map((line): [string, string] => [line.replace(/:.*/s, ''), line]),
    ]
  }

  #check(command: Command, said: string): void {
    if (!endsAsTold(command, said)) {
      this.#parts.found.faults.push(`${command.line}\n  the real server's answer shows nothing:\n${said}`)
    }
  }
}

/** An edge without its API server says how old what it shows is. */
function withoutAge(said: string): string {
  return said.replaceAll(/^Warning: .*(?:API server|as of|old).*\n/gm, '').replaceAll(/--- errors\n(?=---)/g, '')
}
