/** One line of the script on one server: a shell in the folder of the manifests, whose `kubectl` talks to that server. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from './command.ts'
import { mask } from './mask.ts'

/** Nothing in the script needs more than a few seconds, even on a busy machine. */
const lineMsMax = 60_000

/** After the last expected line of a watch: long enough for a line too many to show up. */
const settleMs = 300

const lookAgainMs = 20

/** How a watch ends that showed all it was to show. */
export const interrupted = 'when interrupted'

type Shell = {
  /** The folder that kubectl is in. */
  readonly bin: string
  readonly kubeconfig: string
  /** kubectl's cache of discovery and its other traces: one folder per server. */
  readonly home: string
  readonly signal: AbortSignal
}

type Said = { out: string; err: string }

/**
 * What an edge says where the API server took too long for a document or an object, as a busy one does: of this machine, not of the
 * edge. What it says while there is no API server is worded otherwise, and compared.
 */
const lateAnswer =
  /^Warning: served (?:as last seen: .*|from the local copy, \d+ s old \(the API server cannot be asked: no answer within \d+ ms\))\n/gm

/** Everything a user would see, as one masked text: output, errors, exit code. */
export async function runCommand(shell: Shell, command: Command): Promise<string> {
  const { child, said } = start(shell, command.line)
  const [code, aside] = command.watch === undefined ? [undefined, ''] : await watched(shell, command.watch, child, said)
  const exit = await ended(child)
  const err = said.err.replace(lateAnswer, '')
  return `${mask(said.out)}${err === '' ? '' : `--- errors\n${mask(err)}`}${aside}--- exit ${code ?? exit}\n`
}

function start({ bin, kubeconfig, home, signal }: Shell, line: string): { child: ChildProcess; said: Said } {
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: home,
    TMPDIR: home,
    KUBECONFIG: kubeconfig,
    KUBECACHEDIR: `${home}/cache`,
    KUBECTL_KUBERC: 'false',
    TZ: 'UTC',
  }
  const child = spawn('sh', ['-c', line], {
    cwd: import.meta.dirname,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    timeout: lineMsMax,
  })
  const said: Said = { out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said.out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said.err += text
  })
  return { child, said }
}

async function ended(child: ChildProcess): Promise<string> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
  return String(child.exitCode ?? child.signalCode)
}

/** Changes things once the watch has shown what there is, and ends it when all that was to come has come. */
async function watched(
  shell: Shell,
  { from, until, meanwhile }: NonNullable<Command['watch']>,
  child: ChildProcess,
  said: Said,
): Promise<[string, string]> {
  const give = performance.now() + lineMsMax / 2
  const printed = () => said.out.split('\n').length - 1
  const seen = async (lines: number) => {
    while (printed() < lines && performance.now() < give && child.exitCode === null) {
      await pause(lookAgainMs, undefined, { signal: shell.signal })
    }
  }
  await seen(from)
  let aside = ''
  for (const line of meanwhile) aside += `--- meanwhile\n${await runCommand(shell, { line })}`
  await seen(until)
  await pause(settleMs)
  child.kill('SIGINT')
  const exit = printed() < until ? `${interrupted}, of ${until} lines only ${printed()} seen` : interrupted
  return [exit, aside]
}
