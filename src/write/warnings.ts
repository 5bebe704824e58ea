/** Warnings reach the client with refusals too: what was noted before a request failed goes with its error. */

import { StatusError } from '../kube/status.ts'

const noted = new WeakMap<StatusError, readonly string[]>()

/** Runs `work`; an error that leaves it carries these warnings. */
export async function carrying<T>(warnings: readonly string[], work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof StatusError && warnings.length > 0) noted.set(error, [...warnings, ...warningsOf(error)])
    throw error
  }
}

/** What a refused request is to be warned of besides. */
export function warningsOf(error: StatusError): readonly string[] {
  return noted.get(error) ?? []
}
