/** What was read of a resource, kept while it is read again: it is replaced as a whole, or changes one by one. */
import type { LinkObject } from '../../link/session/session.ts'

type Parts<Kept> = {
  readonly read: (object: LinkObject) => Kept
  readonly isSame: (one: Kept, other: Kept) => boolean
  /** These are there, are not, or are otherwise; undefined: what they are is known for the first time. */
  readonly changed: (keys: readonly string[] | undefined) => void
}

export class KeptObjects<Kept> {
  readonly #parts: Parts<Kept>
  #objects = new Map<string, Kept>()
  /** Since a new reading began, and until it is whole. */
  #next: Map<string, Kept> | undefined
  #isKnown = false
  /** What a FollowedObjects calls. */
  readonly heard = {
    put: (object: LinkObject) => this.#put(object),
    remove: (key: string) => this.#remove(key),
    clear: () => {
      this.#next = new Map()
    },
  }

  constructor(parts: Parts<Kept>) {
    this.#parts = parts
  }

  /** It was read once, or is known not to exist. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  get size(): number {
    return this.#objects.size
  }

  has(key: string): boolean {
    return this.#objects.has(key)
  }

  get(key: string): Kept | undefined {
    return this.#objects.get(key)
  }

  values(): Iterable<Kept> {
    return this.#objects.values()
  }

  /** All of it was read; what cannot be read now has the objects that it had. */
  told({ isKnown }: { readonly isKnown: boolean }): void {
    if (isKnown) this.#replace(this.#next ?? new Map<string, Kept>())
  }

  /** A resource that does not exist has no objects. */
  gone(): void {
    this.#replace(new Map())
  }

  #replace(next: Map<string, Kept>): void {
    this.#next = undefined
    const before = this.#objects
    const wasKnown = this.#isKnown
    this.#isKnown = true
    // What is the same stays the same object.
    for (const [key, kept] of next) {
      const old = before.get(key)
      if (old !== undefined && this.#parts.isSame(old, kept)) next.set(key, old)
    }
    this.#objects = next
    const other = [...next.keys()].filter((key) => !before.has(key) || before.get(key) !== next.get(key))
    const gone = [...before.keys()].filter((key) => !next.has(key))
    if (!wasKnown) this.#parts.changed(undefined)
    else if (other.length + gone.length > 0) this.#parts.changed([...other, ...gone])
  }

  #put(object: LinkObject): void {
    const { read, isSame, changed } = this.#parts
    const kept = read(object)
    if (this.#next !== undefined) {
      this.#next.set(object.key, kept)
      return
    }
    const old = this.#objects.get(object.key)
    if (this.#objects.has(object.key) && isSame(old as Kept, kept)) return
    this.#objects.set(object.key, kept)
    changed([object.key])
  }

  #remove(key: string): void {
    if (this.#next !== undefined) this.#next.delete(key)
    else if (this.#objects.delete(key)) this.#parts.changed([key])
  }
}
