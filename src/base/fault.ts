/** What a command could not do, told to its operator as one sentence; the class decides the exit code. */

/** Something only the operator can put right: shown as one sentence, exit 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** What is no mistake of the operator and still cannot be had: one sentence too, exit 1. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
}

/** `ENOENT: no such file or directory, open '…'` → `no such file or directory`. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return /^(?:\w+ )?E[A-Z]+: ([a-z -]+)/.exec(message)?.[1]?.trim() ?? message
}
