/** What lies between an edge and the model API server: bodies that come in pieces, late or not at all, and a switch. */
import type { FakeClock } from '../base/fakeclock.test-support.ts'
import { type Reachability, type ReachabilityState, Unreachable } from '../upstream/upstream.ts'

/** Bytes on their way: in chunks cut anywhere, late, or broken off. */
export class Body implements AsyncIterableIterator<Buffer> {
  readonly #clock: FakeClock
  readonly #random: (below: number) => number
  readonly #endings: (() => void)[] = []
  #bytes = Buffer.alloc(0)
  #waiting: PromiseWithResolvers<IteratorResult<Buffer>> | undefined
  #over: 'open' | 'ended' | Error = 'open'
  cutAfter = Number.POSITIVE_INFINITY
  delayMs = 0
  heardAtMs: number

  constructor(parts: { clock: FakeClock; random: (below: number) => number; signal?: AbortSignal | undefined }) {
    this.#clock = parts.clock
    this.#random = parts.random
    this.heardAtMs = parts.clock.steady()
    const { signal } = parts
    const leave = () => this.fail(new Unreachable('aborted', true))
    signal?.addEventListener('abort', leave)
    // A signal that is made of others is kept while it has a listener: thousands of lives in one process would stay.
    this.#endings.push(() => signal?.removeEventListener('abort', leave))
    if (signal?.aborted === true) this.fail(new Unreachable('aborted', true))
  }

  onEnd(ending: () => void): void {
    this.#endings.push(ending)
    if (this.#over !== 'open') ending()
  }

  push(text: string): void {
    if (this.#over !== 'open') return
    this.#bytes = Buffer.concat([this.#bytes, Buffer.from(text)])
    this.#wake()
  }

  finish(text: string): void {
    if (this.delayMs > 0) {
      const late = () => {
        this.push(text)
        this.end()
      }
      this.#clock.setTimer(this.delayMs, late)
      return
    }
    this.push(text)
    this.end()
  }

  end(): void {
    this.#close('ended')
  }

  /** What lies in between is lost. */
  fail(why: Error): void {
    if (this.#over === 'open') this.#bytes = Buffer.alloc(0)
    this.#close(why)
  }

  #close(how: 'ended' | Error): void {
    if (this.#over !== 'open') return
    this.#over = how
    for (const ending of this.#endings) ending()
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) void this.next().then(waiting.resolve, waiting.reject)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<Buffer>> {
    if (this.#bytes.length > 0) {
      this.heardAtMs = this.#clock.steady()
      if (this.cutAfter <= 0) {
        this.#bytes = Buffer.alloc(0)
        this.#over = 'open'
        this.fail(new Unreachable('the connection was cut', true))
        return this.next()
      }
      const most = Math.min(this.#bytes.length, this.cutAfter)
      const length = this.#random(4) === 0 ? 1 + this.#random(most) : most
      const chunk = this.#bytes.subarray(0, length)
      this.#bytes = this.#bytes.subarray(length)
      this.cutAfter -= length
      return Promise.resolve({ value: chunk, done: false })
    }
    if (this.#over === 'ended') return Promise.resolve({ value: undefined, done: true })
    if (this.#over !== 'open') return Promise.reject(this.#over)
    this.#waiting = Promise.withResolvers()
    return this.#waiting.promise
  }

  async return(): Promise<IteratorResult<Buffer>> {
    this.fail(new Unreachable('nobody reads it any more', true))
    return { value: undefined, done: true }
  }
}

/** Reachability as a test says it is. */
export class Switch implements Reachability {
  readonly #clock: FakeClock
  readonly #listeners = new Set<(state: ReachabilityState) => void>()
  state: ReachabilityState = 'reachable'
  why = ''
  sinceMs = 0
  refusesEdge = false
  limitMs = 300
  #lostAt = Number.NEGATIVE_INFINITY
  answersProbes = true

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  /** Probes are answered all the time, until they are not. */
  get heardAt(): number {
    return this.state === 'reachable' ? this.#clock.steady() : this.#lostAt
  }

  /** Another process asks from here on. */
  restarted(): void {
    this.#lostAt = Number.NEGATIVE_INFINITY
    this.sinceMs = this.#clock.now()
  }

  set(state: ReachabilityState): void {
    if (state === this.state) return
    this.#lostAt = this.heardAt
    this.state = state
    this.why = state === 'reachable' ? '' : 'the test says so'
    this.sinceMs = this.#clock.now()
    for (const listener of [...this.#listeners]) listener(state)
  }

  suspect(): void {
    this.set('suspect')
  }

  probe(): Promise<boolean> {
    return Promise.resolve(this.answersProbes && this.state === 'reachable')
  }

  observe(listener: (state: ReachabilityState) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
