/**
 * Records written behind: what was learned may be lost by a crash and is then asked again, so it is collected for a
 * moment to spare the flash. What was taken away must not come back, so that goes to the disk at once.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RecordChange, Records } from './access.ts'

const behindMs = 500 // a crash costs at most what was learned for this long: offline its caller would be unknown
const retryMs = 10_000 // a full disk does not get better sooner

type Parts = { readonly records: Records; readonly clock: Clock; readonly log: Log }

export class WriteBehind {
  readonly #records: Records
  readonly #clock: Clock
  readonly #log: Log
  /** By kind and key, so that it cannot grow beyond what its users hold. */
  readonly #pending = new Map<string, RecordChange>()
  #synced = false
  #cancel: (() => void) | undefined
  #writing: Promise<void> | undefined
  #failing = false

  constructor({ records, clock, log }: Parts) {
    this.#records = records
    this.#clock = clock
    this.#log = log
  }

  /** An undefined value makes room: nothing depends on when that happens. */
  put(kind: string, key: string, value: Buffer | undefined): void {
    this.#pending.set(`${kind}\n${key}`, { kind, key, value })
    this.#arm()
  }

  /** Takes a right away. */
  remove(kind: string, key: string): void {
    this.replace(kind, key, undefined)
  }

  /** What takes its place may be less: that must not be lost by a power cut either. */
  replace(kind: string, key: string, value: Buffer | undefined): void {
    this.#pending.set(`${kind}\n${key}`, { kind, key, value })
    this.#synced = true
    if (this.#failing) this.#arm()
    else void this.flush()
  }

  /** Writes everything that waits; resolves when it is written or refused. */
  async flush(): Promise<void> {
    // Whatever is taken away within one turn goes in one commit.
    await Promise.resolve()
    while (this.#writing !== undefined) await this.#writing
    if (this.#pending.size === 0) return
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  /** Until the signal; then what waits is written. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    }
    await this.flush()
    this.#cancel?.()
    this.#cancel = undefined
  }

  async #write(): Promise<void> {
    const taken = new Map(this.#pending)
    const synced = this.#synced
    this.#pending.clear()
    this.#synced = false
    this.#cancel?.()
    this.#cancel = undefined
    try {
      await this.#records.commit({ changes: [], synced, records: [...taken.values()] })
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#log.warn('access.write.refused', { why: error instanceof Error ? error.message : '' })
      this.#failing = true
      // What has changed since is newer than what was refused.
      for (const [place, change] of taken) if (!this.#pending.has(place)) this.#pending.set(place, change)
      this.#synced ||= synced
      this.#arm()
    }
  }

  #arm(): void {
    this.#cancel ??= this.#clock.setTimer(this.#failing ? retryMs : behindMs, () => {
      this.#cancel = undefined
      void this.flush()
    })
  }
}
