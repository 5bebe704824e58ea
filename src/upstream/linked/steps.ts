/** Steps that wait to be taken, in order: told as they come, taken one at a time, each over when the next one is asked for. */
import type { CloudChange, Followed } from '../follow/follow.ts'

type Waiting = {
  readonly step: Followed
  /** Of a step that has more than one part. */
  readonly more: CloudChange[]
  readonly taken: (() => void)[]
}

export class FollowSteps {
  #waiting: Waiting[] = []
  #fault: { readonly error: unknown } | undefined
  #isEnded = false
  #wake: () => void = () => {}

  /** `taken` is called once, when the step is taken over, or will not be since its reader left. */
  push(step: Followed, taken?: () => void): void {
    if (this.#isEnded) {
      taken?.()
      return
    }
    const last = this.#waiting.at(-1)
    // A reader that was away takes what came meanwhile in one step.
    if (step.kind === 'changes' && last?.step.kind === 'changes' && last.step.plan === step.plan) {
      for (const change of step.changes) last.more.push(change)
      if (taken !== undefined) last.taken.push(taken)
      return
    }
    this.#waiting.push({ step, more: [], taken: taken === undefined ? [] : [taken] })
    this.#wake()
  }

  /** What waits is still taken. */
  fail(error: unknown): void {
    if (this.#isEnded) return
    this.#fault = { error }
    this.end(true)
  }

  end(afterAll = false): void {
    this.#isEnded = true
    if (!afterAll) for (const { taken } of this.#waiting.splice(0)) call(taken)
    this.#wake()
  }

  async *all(): AsyncGenerator<Followed> {
    for (;;) {
      const next = this.#waiting.shift()
      if (next !== undefined) {
        try {
          yield wholeOf(next)
        } finally {
          call(next.taken)
        }
      } else if (this.#fault !== undefined) throw this.#fault.error
      else if (this.#isEnded) return
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
    }
  }
}

function wholeOf({ step, more }: Waiting): Followed {
  return step.kind === 'changes' && more.length > 0 ? { ...step, changes: [...step.changes, ...more] } : step
}

function call(all: readonly (() => void)[]): void {
  for (const one of all) one()
}
