/** A program of the control plane that is killed and started again, and never outlives us, not even if we are killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'

/** An orderly end of kube-apiserver waits for requests for up to a minute. */
const orderlyMsMax = 90_000

type Parts = { readonly program: string; readonly args: readonly string[]; readonly log: string }

export class Program {
  readonly #parts: Parts
  #child: ChildProcess | undefined
  #guard: ChildProcess | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Started, and ended by something else than us. */
  get ended(): boolean {
    return this.#child !== undefined && (this.#child.exitCode !== null || this.#child.signalCode !== null)
  }

  start(): void {
    const { program, args, log } = this.#parts
    const file = openSync(log, this.#child === undefined && this.#guard === undefined ? 'w' : 'a')
    // A group of its own: Ctrl-C is ours to handle, and an orderly end takes too long for it.
    this.#child = spawn(program, args, { stdio: ['ignore', file, file], detached: true })
    closeSync(file)
    this.#guard = spawn('sh', ['-c', 'cat >/dev/null; kill -9 "$1" 2>/dev/null', 'guard', String(this.#child.pid)], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    })
  }

  /** By SIGKILL, at once. */
  stop(): void {
    this.#guard?.kill('SIGKILL')
    this.#child?.kill('SIGKILL')
  }

  /** Resolves when it has ended; by SIGKILL unless an orderly end is asked for and comes in time. */
  async end(how: 'kill' | 'orderly' = 'kill'): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const closed = this.ended ? undefined : once(child, 'exit')
    if (how === 'orderly') {
      child.kill('SIGTERM')
      const timer = setTimeout(() => this.stop(), orderlyMsMax)
      await closed
      clearTimeout(timer)
    }
    this.stop()
    await closed
    this.#child = undefined
  }
}
