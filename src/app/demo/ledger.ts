/** What was written at the cloud and when: by it the demo tells how far behind a place is. */

export type Lag = { readonly changes: number; readonly ms: number }

export class Ledger {
  /** In order. Two a second, and dropped once every place has them: what a cut of days leaves fits in memory. */
  #writes: { readonly version: number; readonly atMs: number }[] = []

  wrote(version: number, atMs: number): void {
    this.#writes.push({ version, atMs })
  }

  /** Of a place that has everything up to this version. */
  lagOf(version: number, nowMs: number): Lag {
    const first = this.#writes.findIndex((one) => one.version > version)
    const oldest = this.#writes[first]
    return oldest === undefined
      ? { changes: 0, ms: 0 }
      : { changes: this.#writes.length - first, ms: nowMs - oldest.atMs }
  }

  /** Every place has what was written up to here. */
  forget(version: number): void {
    this.#writes = this.#writes.filter((one) => one.version > version)
  }
}
