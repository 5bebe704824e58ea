/**
 * The body of a watch whose headers are out before its first event can be made: it begins when it can. One that cannot be made ends at
 * once, and its client comes again.
 */
export class DeferredWatch implements AsyncIterableIterator<Buffer> {
  readonly #open: () => Promise<AsyncIterator<Buffer> | undefined>
  #body: Promise<AsyncIterator<Buffer> | undefined> | undefined
  #over = false

  constructor(open: () => Promise<AsyncIterator<Buffer> | undefined>) {
    this.#open = open
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Buffer>> {
    this.#body ??= this.#open()
    const body = await this.#body
    if (body === undefined || this.#over) {
      body?.return?.().catch(() => {})
      return { value: undefined, done: true }
    }
    return await body.next()
  }

  async return(): Promise<IteratorResult<Buffer>> {
    this.#over = true
    // Why it could not be made is told to the reader that waits in `next`; there may be none left.
    this.#body?.then((body) => body?.return?.()).catch(() => {})
    return { value: undefined, done: true }
  }
}
