/**
 * Which epoch of its cluster the copy of each interest has come to over a link, on the disk as long as that copy is: by it an edge
 * that was away finds that the cluster was put back meanwhile. A copy that was kept in step without a hub is of no known epoch.
 */
import { reasonOf } from '../base/fault.ts'
import type { Log } from '../base/log.ts'
import type { RecordChange, Store } from '../store/store.ts'
import type { CopyEpochs } from '../upstream/linked/linkedfollowing.ts'

const kind = 'epoch'

type Parts = { readonly store: Pick<Store, 'records' | 'commit'>; readonly log: Log }

export class LinkEpochs implements CopyEpochs {
  readonly #parts: Parts
  readonly #epochs = new Map<string, number>()

  static async open(parts: Parts): Promise<LinkEpochs> {
    const epochs = new LinkEpochs(parts)
    for (const { key, value } of await parts.store.records(kind)) {
      const epoch = Number(value.toString('latin1'))
      if (Number.isSafeInteger(epoch) && epoch >= 0) epochs.#epochs.set(key, epoch)
    }
    return epochs
  }

  private constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The newest that any of them has come to; undefined: none was ever told over a link. */
  get newest(): number | undefined {
    return this.#epochs.size === 0 ? undefined : Math.max(...this.#epochs.values())
  }

  of(interest: string): number | undefined {
    return this.#epochs.get(interest)
  }

  reached(interest: string, epoch: number): void {
    if (this.#epochs.get(interest) === epoch) return
    this.#epochs.set(interest, epoch)
    this.#write([{ kind, key: interest, value: Buffer.from(String(epoch), 'latin1') }])
  }

  /** Those of interests that are no more go with them. */
  keep(interests: ReadonlySet<string>): void {
    const gone = [...this.#epochs.keys()].filter((name) => !interests.has(name))
    for (const name of gone) this.#epochs.delete(name)
    this.#write(gone.map((key) => ({ kind, key, value: undefined })))
  }

  /** Lost with a power cut, it only means that a copy is compared by its contents. */
  #write(records: readonly RecordChange[]): void {
    const { store, log } = this.#parts
    if (records.length === 0) return
    store
      .commit({ changes: [], records, synced: false })
      .catch((error: unknown) => log.warn('epoch.unwritten', { why: reasonOf(error) }))
  }
}
