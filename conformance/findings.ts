/** Counts what a step looked at and keeps what it found wrong, without ending it at the first. */
import type { StepResult } from './step.ts'

/** What one finding may print of each side. */
const shownMax = 400

export class Findings {
  readonly #progress: (line: string) => void
  readonly #notes: string[] = []
  #passed = 0
  #failed = 0

  /** `progress` is told of each part that begins. */
  constructor(progress: (line: string) => void = () => {}) {
    this.#progress = progress
  }

  /** Any statement; `shown` is printed beside it when it does not hold. */
  check(holds: boolean, what: string, shown: unknown = ''): boolean {
    if (holds) this.#passed++
    else {
      this.#failed++
      this.#notes.push(`${what}${shown === '' ? '' : `: ${short(shown)}`}`)
    }
    return holds
  }

  equal(found: unknown, expected: unknown, what: string): boolean {
    const [a, b] = [text(found), text(expected)]
    return this.check(a === b, what, `expected ${short(b)}, found ${short(a)}`)
  }

  /** A figure worth keeping. */
  note(line: string): void {
    this.#notes.push(line)
  }

  /** A part of the step that throws is one finding, and the others go on. */
  async part(name: string, body: () => Promise<void>): Promise<void> {
    this.#progress(name)
    const before = this.#passed + this.#failed
    try {
      await body()
    } catch (error) {
      this.check(false, name, error instanceof Error ? (error.stack ?? error.message) : error)
    }
    this.note(`${name}: ${this.#passed + this.#failed - before} checks`)
  }

  /** What somebody else found beside. */
  add({ passed, failed, notes = [] }: StepResult): void {
    this.#passed += passed
    this.#failed += failed
    this.#notes.push(...notes)
  }

  get result(): StepResult {
    return { passed: this.#passed, failed: this.#failed, notes: this.#notes }
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')
}

function short(value: unknown): string {
  const shown = text(value)
  return shown.length > shownMax ? `${shown.slice(0, shownMax)}… (${shown.length})` : shown
}
