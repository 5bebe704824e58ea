/**
 * Which positions of a link may be acknowledged: each when every interest that was told something of it has taken that over,
 * and none before those ahead of it.
 */

type Part = { readonly position: number; left: number }

export class HandedOver {
  readonly #committed: (position: number) => void
  readonly #parts: Part[] = []
  readonly #waiting: (() => void)[] = []

  constructor(committed: (position: number) => void) {
    this.#committed = committed
  }

  /** Each of so many has to call what is answered, once. */
  add(position: number, hearers: number): () => void {
    const part = { position, left: hearers }
    this.#parts.push(part)
    if (hearers === 0) this.#settle()
    return () => {
      part.left--
      if (part.left === 0) this.#settle()
    }
  }

  /** Everything that was handed over until now is taken over, or will never be. */
  all(): Promise<void> {
    return this.#parts.length === 0 ? Promise.resolve() : new Promise((resolve) => void this.#waiting.push(resolve))
  }

  #settle(): void {
    let position: number | undefined
    while (this.#parts[0]?.left === 0) position = this.#parts.shift()?.position
    if (position !== undefined) this.#committed(position)
    if (this.#parts.length === 0) for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
