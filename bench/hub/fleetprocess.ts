/** The process with the edges of a fleet (`fleet.ts`), as a question orders and asks it. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { FleetOrder, FleetReport } from './fleet.ts'

const pollMs = 100
/** Full handshakes are let in at 100 a second; both ends of them, and of forty first syncs each, share two cores here. */
const wholeMsOf = (edges: number) => 120_000 + edges * 90
/** Ten thousand edges with forty copies each are some gigabytes, and what comes for them is garbage at once. */
const execArgv = [
  ...['--max-old-space-size=8192', '--min-semi-space-size=64', '--max-semi-space-size=128'],
  ...['--import', join(import.meta.dirname, 'shareddeltas.ts')],
]

export class Fleet {
  readonly #child: ChildProcess

  constructor(state: string, port: number) {
    this.#child = fork(join(import.meta.dirname, 'fleet.ts'), [state, String(port)], {
      ...{ stdio: 'inherit', execArgv },
    })
    const endWithUs = () => this.#child.kill('SIGKILL')
    process.once('exit', endWithUs)
    this.#child.once('exit', () => process.removeListener('exit', endWithUs))
  }

  order(order: FleetOrder): Promise<FleetReport> {
    return this.#ask(order)
  }

  report(): Promise<FleetReport> {
    return this.#ask('report')
  }

  /** Resolves when all interests of so many edges are synced. */
  async untilWhole(edges: number): Promise<FleetReport> {
    const give = performance.now() + wholeMsOf(edges)
    for (;;) {
      const report = await this.report()
      if (report.whole === edges) return report
      if (performance.now() > give) throw new Error(`not all edges are whole: ${JSON.stringify(report)}`)
      await pause(pollMs)
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }

  async #ask(message: FleetOrder | 'report'): Promise<FleetReport> {
    const answer = once(this.#child, 'message')
    this.#child.send(message)
    return ((await answer) as [FleetReport])[0]
  }
}
