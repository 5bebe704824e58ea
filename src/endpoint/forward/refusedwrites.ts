/**
 * Which writes were refused because the API server could not be reached, counted since the cut by resource and caller: what an
 * operator has to do again, or sees going nowhere, such as the status of pods. A return keeps the count for the morning after;
 * the next cut begins another. One that did not get through while the API server is there is of no cut, and does not take the
 * night's count away. As a figure they are counted by resource for as long as the process lives.
 */
import type { Clock } from '../../base/clock.ts'
import { Counter, seriesOf } from '../../base/metrics.ts'
import type { ApiRequest } from '../../kube/request.ts'
import type { CloudCatalog } from '../../mirror/documents/catalog.ts'
import type { Reachability } from '../../upstream/upstream.ts'

/** A node's callers are a few dozen, and each writes a few resources; the rest is one row. */
const rowsMax = 50
/** Names of resources and callers come from requests. */
const charactersMax = 100

export type RefusedWrite = {
  /** '' in the row of the rest. */
  readonly resource: string
  readonly group: string
  readonly subresource: string
  readonly caller: string
  count: number
}

type Parts = {
  readonly clock: Clock
  readonly reachability: Reachability
  readonly catalog: Pick<CloudCatalog, 'find'>
}

const nameless = { group: '', resource: '', subresource: '' }

export class RefusedWrites {
  readonly #clock: Clock
  readonly #reachability: Reachability
  readonly #catalog: Pick<CloudCatalog, 'find'>
  readonly #counter = new Counter()
  readonly #rows = new Map<string, RefusedWrite>()
  #firstMs: number | undefined
  #total = 0
  /** The API server was reachable since the last one: the next is of another cut. */
  #isOver = false

  constructor({ clock, reachability, catalog }: Parts) {
    this.#clock = clock
    this.#reachability = reachability
    this.#catalog = catalog
    // Prometheus sees an increase only of a series that it has scraped before.
    this.#counter.add(seriesOf(nameless), 0)
    reachability.observe((state) => {
      if (state === 'reachable') this.#isOver = true
    })
  }

  add(api: ApiRequest, caller: string): void {
    const { group, resource, subresource } = api
    this.#counter.add(seriesOf(this.#isKnown(api) ? { group, resource, subresource } : nameless))
    // What breaks in a cut is told to the judgement before its callers hear of it.
    if (this.#reachability.state === 'reachable') return
    if (this.#isOver) {
      this.#rows.clear()
      this.#firstMs = undefined
      this.#total = 0
      this.#isOver = false
    }
    this.#firstMs ??= this.#clock.now()
    this.#total++
    const what = { resource: short(resource), group: short(group), subresource: short(subresource) }
    const named = { ...what, caller: short(caller) }
    const key = JSON.stringify(named)
    const row = this.#rows.get(key) ?? this.#rowFor(key, named)
    row.count++
  }

  #rowFor(key: string, named: Omit<RefusedWrite, 'count'>): RefusedWrite {
    const isRest = this.#rows.size >= rowsMax
    const row = isRest ? { ...nameless, caller: '' } : named
    const place = isRest ? '' : key
    const found = this.#rows.get(place) ?? { ...row, count: 0 }
    this.#rows.set(place, found)
    return found
  }

  /** A caller invents names as it likes: those that the API server does not have get no series of their own. */
  #isKnown({ group, version, resource, subresource }: ApiRequest): boolean {
    const known = this.#catalog.find(group, version, resource)?.resource
    return known !== undefined && (subresource === '' || known.subresources.some(({ name }) => name === subresource))
  }

  figures(): string[] {
    return [this.#counter.render('ake_refused_writes_total', 'Writes refused because the API server was away.')]
  }

  get total(): number {
    return this.#total
  }

  /** Since the first of them, the most frequent first; undefined: there were none. */
  status(): { since: string; over: boolean; total: number; writes: readonly RefusedWrite[] } | undefined {
    if (this.#firstMs === undefined) return undefined
    const writes = [...this.#rows.values()].sort((a, b) => b.count - a.count)
    return { since: new Date(this.#firstMs).toISOString(), over: this.#isOver, total: this.#total, writes }
  }
}

function short(text: string): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text
}
