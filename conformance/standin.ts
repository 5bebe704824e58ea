/**
 * The kubelet's stand-in as a process: a Node at the API server whose pods run at once, and whose port answers logs, exec,
 * attach, port-forward and cp. Its commands: echo, cat, log, complain, exit, sleep, size, `sh -c 'A; B'`, tar.
 */
import { join } from 'node:path'
import { buildGoProgram } from './goprogram.ts'
import type { Oracle } from './oracle.ts'
import { startReady } from './ready.ts'

export type StandIn = {
  readonly node: string
  readonly port: number
  stop(): Promise<void>
}

export type StandInOptions = {
  readonly oracle: Pick<Oracle, 'dir' | 'kubeconfig'>
  readonly node?: string
  /** Where its log goes. */
  readonly dir: string
  readonly signal?: AbortSignal
  readonly progress?: (line: string) => void
}

/** Registers the node directly with the API server. */
export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  const { oracle, node = 'stand-in', dir, signal, progress = () => {} } = options
  const program = await buildGoProgram('kubelet', progress)
  const authority = join(oracle.dir, 'ca.crt')
  const { word, stop } = await startReady({
    program,
    args: ['-kubeconfig', oracle.kubeconfig, '-client-ca', authority, '-node', node],
    log: join(dir, `${node}.log`),
    ...(signal === undefined ? {} : { signal }),
  })
  return { node, port: Number(word), stop }
}
