/**
 * Callers who see the same. When what they are shown becomes something else (another authority after `DIR/pki` was lost,
 * another address, a view switched on or off) a watch that goes on would leave its client with what it saw before: each of
 * their watches of what is seen otherwise then gets one 410, over a restart too, and its client lists anew. Versions are the
 * cloud's and do not tell the two apart: a caller that has listed since is remembered by name.
 */
import { type Status, tooOld } from '../../kube/status.ts'
import type { ClassView } from './view.ts'

/** What a class sees: `mark` is another text for another sight, '' for things as they are. */
export type Showing = { readonly mark: string; readonly views: ReadonlyMap<string, ClassView> }

type Failing = { fail(status: Status): void }

type ViewRecord = { readonly kind: 'view'; readonly key: string; readonly value: Buffer | undefined }
export type ViewRecords = {
  /** All of it or nothing, later; what a crash or a full disk loses costs a client one more list. */
  write(changes: readonly ViewRecord[]): void
}

/**
 * Callers times what each asks for of what it sees otherwise: a kubelet watches one
 * ConfigMap of each namespace that it has pods of. Beyond it the caller that listed first is forgotten, and may have to list once more.
 */
const toldMax = 2_000

const kind = 'view'

export class ViewClass {
  readonly name: string
  readonly callers: readonly string[]
  readonly #records: ViewRecords
  readonly #newest: () => number
  readonly #told = new Set<string>()
  readonly #open = new Set<Failing>()
  #mark = ''
  /** Up to this version a client may have what was shown before. */
  #upTo = 0
  #views: ReadonlyMap<string, ClassView> = new Map()

  constructor(parts: {
    name: string
    callers: readonly string[]
    stored: readonly { readonly key: string; readonly value: Buffer }[]
    records: ViewRecords
    /** The newest version that a client may have. */
    newest: () => number
  }) {
    this.name = parts.name
    this.callers = parts.callers
    this.#records = parts.records
    this.#newest = parts.newest
    for (const { key, value } of parts.stored) {
      if (key === this.name) [this.#mark = '', this.#upTo = 0] = readState(value)
      else if (key.startsWith(`${this.name} `)) this.#told.add(key.slice(this.name.length + 1))
    }
  }

  /** Whether its callers see anything otherwise, or did. */
  get isSeeing(): boolean {
    return this.#mark !== '' || this.#upTo > 0
  }

  viewOf(resource: string): ClassView | undefined {
    return this.#views.get(resource)
  }

  /** From now on; nothing happens where it is what they are shown already. */
  show({ mark, views }: Showing): void {
    this.#views = mark === this.#mark && this.#views.size > 0 ? this.#views : views
    if (mark === this.#mark) return
    const told = [...this.#told].map((one) => this.#record(` ${one}`, undefined))
    this.#told.clear()
    this.#mark = mark
    this.#upTo = this.#newest()
    this.#records.write([...told, this.#record('', Buffer.from(`${this.#upTo} ${mark}`))])
    for (const watcher of this.#open) watcher.fail(tooOld(this.#upTo, this.#upTo + 1).status)
  }

  /** Whether what a client has at this version may be what was shown before. */
  isOther(caller: string, scope: string, version: number): boolean {
    return version <= this.#upTo && !this.#told.has(`${caller} ${scope}`)
  }

  /** A client is told what there is now. */
  listed(caller: string, scope: string): void {
    const one = `${caller} ${scope}`
    if (this.#upTo === 0 || this.#told.has(one)) return
    this.#told.add(one)
    const [oldest] = this.#told.size > toldMax ? this.#told : []
    if (oldest !== undefined) this.#told.delete(oldest)
    const forgotten = oldest === undefined ? [] : [this.#record(` ${oldest}`, undefined)]
    this.#records.write([...forgotten, this.#record(` ${one}`, Buffer.alloc(0))])
  }

  /** A watch that ends when something else is shown. */
  opened(watcher: Failing): () => void {
    this.#open.add(watcher)
    return () => void this.#open.delete(watcher)
  }

  #record(suffix: string, value: Buffer | undefined): ViewRecord {
    return { kind, key: `${this.name}${suffix}`, value }
  }
}

function readState(value: Buffer): [mark?: string, upTo?: number] {
  const [, upTo, mark] = /^(\d+) (.*)$/.exec(value.toString()) ?? []
  return upTo === undefined ? [] : [mark as string, Number(upTo)]
}
