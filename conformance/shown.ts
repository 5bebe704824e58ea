/**
 * What a client may be shown while the cloud changes under an edge: set back to an earlier state, or another cluster than
 * before. Until every edge has found out, both states may be shown; from then on nothing of what is over, and in either
 * nothing goes back.
 */
import type { Edge } from './site.ts'

type Object = { readonly metadata: { readonly uid: string; readonly resourceVersion: string } }

export type Listed = {
  readonly metadata: { readonly resourceVersion: string }
  readonly items: readonly Object[]
}

/** Which state of which cluster is true. */
export class Truth {
  #era = 0
  #isChanging = false
  /** Objects of a past that is over, each as it was. */
  readonly #lost = new Set<string>()
  /** Of the cluster that the edge does not belong to. */
  #strangers: ReadonlySet<string> = new Set()

  /** Counts the changes: what was shown before one says nothing about what comes after it. */
  get era(): number {
    return this.#era
  }

  /** The same before a question and after its answer: that answer is of this state alone. undefined while it changes. */
  get settled(): number | undefined {
    return this.#isChanging ? undefined : this.#era
  }

  changes(): void {
    this.#era++
    this.#isChanging = true
  }

  /** From here on nothing is shown of these: objects of a lost past, and uids of another cluster. */
  changed({ lost = [], strangers = new Set() }: { lost?: Iterable<string>; strangers?: ReadonlySet<string> }): void {
    for (const text of lost) this.#lost.add(text)
    this.#strangers = strangers
    this.#isChanging = false
  }

  /** The first object that is over. */
  overIn({ items }: Listed): string | undefined {
    const found = items.find((one) => this.#strangers.has(one.metadata.uid) || this.#lost.has(JSON.stringify(one)))
    return found && JSON.stringify(found).slice(0, 300)
  }
}

/**
 * What one caller was shown of a list. Its version may be lower than before in two cases. How far a copy came without a change
 * is written down now and then, so after a kill -9 the very same objects may come under an earlier version. And each time the
 * truth changes everything may go back once.
 */
export class Shown {
  readonly #edge: Edge
  readonly #truth: Truth
  #version = 0
  #restarts = 0
  #objects: ReadonlyMap<string, number> = new Map()
  /** The era in which it last went back, or began. */
  #era: number
  relabelled = 0

  constructor(edge: Edge, truth: Truth) {
    this.#edge = edge
    this.#truth = truth
    this.#era = truth.era
  }

  get version(): number {
    return this.#version
  }

  /** It was shown something of two states: what comes next is the first it was shown. */
  forget(): void {
    this.#version = 0
    this.#objects = new Map()
    this.#era = this.#truth.era
  }

  /** Takes note of a whole list, and answers what is wrong with it. */
  take({ metadata, items }: Listed, restarts: number): string | undefined {
    const version = Number(metadata.resourceVersion)
    const objects = new Map(items.map((one) => [one.metadata.uid, Number(one.metadata.resourceVersion)]))
    const before = this.#objects
    const back = [...objects].find(([uid, one]) => one < (before.get(uid) ?? 0))
    const isLower = version < this.#version
    const isSame = objects.size === before.size && [...objects].every(([uid, one]) => one === before.get(uid))
    const isRelabelled = isLower && isSame && this.#edge.restarts > this.#restarts
    let fault: string | undefined
    if (back !== undefined) fault = `object ${back[0]} went back from ${before.get(back[0])} to ${back[1]}`
    else if (isLower && !isRelabelled) fault = `went back from ${this.#version} to ${version}`
    if (fault !== undefined && this.#era < this.#truth.era) {
      this.#era = this.#truth.era
      fault = undefined
      this.#version = version
      this.#restarts = restarts
    } else {
      if (isLower && fault === undefined) this.relabelled++
      else this.#restarts = restarts
      if (!isLower || fault !== undefined) this.#version = version
    }
    this.#objects = objects
    return fault
  }
}
