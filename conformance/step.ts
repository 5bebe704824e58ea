/**
 * One step of `npm run conformance`: a named proof that counts what it looked at. A step registers itself by being in the
 * list of run.ts; it writes only inside `context.dir`, ends what it started, and throws only where it cannot go on at all.
 */
import type { Ake, AkeOptions } from './ake.ts'
import type { Oracle } from './oracle.ts'

export type Step = {
  readonly name: string
  /**
   * `all` runs only with `--all`: what does not fit into the default run's 40 minutes. `node` runs with `--node`, and with
   * `--all` where nothing of what it needs is missing.
   */
  readonly tier: 'default' | 'all' | 'node'
  /** About how long it takes on two cores; twice that is its limit. */
  readonly minutes: number
  /** What this machine lacks for it, besides what it gets itself. */
  missing?(): Promise<readonly string[]>
  run(context: StepContext): Promise<StepResult>
}

export type StepContext = {
  /** A folder of this step's own, removed when everything passed. */
  readonly dir: string
  /** Whether the names given on the command line admit a part of this step; true without names. */
  only(part: string): boolean
  /** Under `--all` a step may look at more. */
  readonly all: boolean
  /** `--write`: a step that compares a text with a file of the repository writes the file instead. */
  readonly write: boolean
  /** Aborted on Ctrl-C and when the step's time is over. */
  readonly signal: AbortSignal
  /** One line on standard error. */
  progress(line: string): void
  /** A real kube-apiserver of this run, started for the step that asks first, and shared: use namespaces of your own. */
  oracle(): Promise<Oracle>
  /** A fresh `ake serve` in a folder below `dir`; ended with the step at the latest. */
  ake(options?: Partial<AkeOptions>): Promise<Ake>
}

export type StepResult = {
  readonly passed: number
  readonly failed: number
  /** What a reader of the result should know: each failure, figures worth keeping. */
  readonly notes?: readonly string[]
}
