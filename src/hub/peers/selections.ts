/**
 * What edges have a hub select for them. Names, namespaces and whole resources are as many as the cluster has; selectors an edge can
 * invent without end. A view by one is made by looking at every object of its source and hashing those it means, and is tried with each change
 * from then on, so an edge has a number of them, and earns by the time what the hub looks at for it. Views that others have had made cost nothing.
 * What was spent is kept by the name of the edge: another link does not earn it anew.
 */
import type { Clock } from '../../base/clock.ts'
import type { SessionRefusal } from '../../link/session/hubgreeting.ts'
import type { SelectedView } from '../sources/view.ts'
import { peerLimits } from './limits.ts'

type SelectionLimits = Pick<
  typeof peerLimits,
  'selectionsMax' | 'selectedObjectsMax' | 'lookingMax' | 'lookingPerMs' | 'lookedPerUnit' | 'lookingEdgesMax'
>

/** Of all edges of a hub, what each may still have looked at. */
export class LookingBudgets {
  readonly #clock: Clock
  readonly limits: SelectionLimits
  /** The edge that spent something longest ago comes first, and is forgotten first: it has most likely earned that anew. */
  readonly #edges = new Map<string, { readonly left: number; readonly at: number }>()

  constructor(clock: Clock, limits: SelectionLimits = peerLimits) {
    this.#clock = clock
    this.limits = limits
  }

  /** Milliseconds after which more is looked at for it; 0: now. */
  waitMs(edge: string): number {
    return Math.max(0, Math.ceil(-this.#left(edge) / this.limits.lookingPerMs))
  }

  /** More may be spent than is left, since it is known only then: the edge waits for that before the next. */
  spend(edge: string, units: number): void {
    const left = this.#left(edge) - units
    this.#edges.delete(edge)
    this.#edges.set(edge, { left, at: this.#clock.steady() })
    if (this.#edges.size > this.limits.lookingEdgesMax) this.#edges.delete(this.#edges.keys().next().value as string)
  }

  #left(edge: string): number {
    const { lookingMax, lookingPerMs } = this.limits
    const known = this.#edges.get(edge)
    if (known === undefined) return lookingMax
    return Math.min(lookingMax, known.left + (this.#clock.steady() - known.at) * lookingPerMs)
  }
}

/** Of one link. */
export class LinkSelections {
  readonly #edge: string
  readonly #budgets: LookingBudgets
  /** Each with how many interests have it: an edge that compares one again has two for a moment. */
  readonly #views = new Map<SelectedView, number>()

  constructor(edge: string, budgets: LookingBudgets) {
    this.#edge = edge
    this.#budgets = budgets
  }

  /** Undefined: the edge may have it, and has it from now on. */
  enter(view: SelectedView): SessionRefusal | undefined {
    const { selectionsMax, selectedObjectsMax } = this.#budgets.limits
    const others = this.#views.get(view) ?? 0
    if (others === 0) {
      if (this.#views.size >= selectionsMax) return crowded(`${selectionsMax} interests with selectors`)
      if (this.#objects() >= selectedObjectsMax)
        return crowded(
          `interests with selectors that mean ${selectedObjectsMax} objects together, which no other edge has,`,
        )
      const waitMs = view.isMade ? 0 : this.#budgets.waitMs(this.#edge)
      if (waitMs > 0) return { reason: 'busy', retryAfterMs: waitMs, sentence: lookedEnough }
    }
    this.#views.set(view, others + 1)
    return undefined
  }

  /** The hub has gone through so many objects for it, and hashed those that were found. */
  looked(objects: number, found: number): void {
    this.#budgets.spend(this.#edge, found + Math.ceil(objects / this.#budgets.limits.lookedPerUnit))
  }

  leave(view: SelectedView): void {
    const others = (this.#views.get(view) ?? 1) - 1
    if (others > 0) this.#views.set(view, others)
    else this.#views.delete(view)
  }

  /** What is held for the sake of this edge alone. */
  #objects(): number {
    let sum = 0
    for (const [view, own] of this.#views) if (view.readers <= own) sum += view.objects
    return sum
  }
}

const lookedEnough = 'the hub has looked at many objects for selectors of this edge, and goes on in a moment'

function crowded(what: string): SessionRefusal {
  return {
    reason: 'limit',
    retryAfterMs: peerLimits.crowdedRetryMs,
    sentence: `this edge has ${what} at its hub already`,
  }
}
