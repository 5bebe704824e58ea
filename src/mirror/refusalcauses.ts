/** What the log has said of refusals: one cause concerns many interests, and is told once until it is over for all of them. */
import { resourceOfName } from './interest.ts'

export class RefusalCauses {
  /** Those that are refused, by cause. */
  readonly #causes = new Map<string, Set<string>>()

  /** Notes that an interest is refused; whether that is news at all, or of its cause. */
  note(interest: string, code: number): 'cause' | 'interest' | undefined {
    // A credential is one cause, a missing right one for each resource.
    const cause = code === 401 ? '401' : `${code} ${resourceOfName(interest)}`
    const concerned = this.#causes.get(cause)
    if (concerned?.has(interest) === true) return undefined
    this.#causes.set(cause, (concerned ?? new Set()).add(interest))
    return concerned === undefined ? 'cause' : 'interest'
  }

  /** An interest is mirrored again, or no longer wanted. */
  over(interest: string): void {
    for (const [cause, concerned] of this.#causes) {
      if (concerned.delete(interest) && concerned.size === 0) this.#causes.delete(cause)
    }
  }
}
