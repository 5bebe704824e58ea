/** What is written down of each interest besides its objects, and what is read of that at a start. */
import { type FieldPlan, planFields } from '../kube/object.ts'
import type { Store } from '../store/store.ts'
import { type Interest, parseInterest, printInterest } from './interest.ts'

const recordKind = 'interest'

export type InterestRecord = {
  custom: boolean
  namespaced: boolean
  kind: string
  listKind: string
  /** The fields read from its objects: known before discovery is. */
  paths: readonly string[]
  /** Named by an option, or by a pod of the node that one names: it never ends, but may be emptied. */
  standing: boolean
  /** See Copy's lostOf. */
  lost: number
  /** How long no caller has asked, counted while running and reachable. */
  unaskedMs: number
  askedAtMs: number
  /** The callers who asked for it, the first of them: in their shares it counts. */
  by: readonly string[]
  /** The node's own asked for it: it is not evicted. */
  node: boolean
  /** A client has watched it, and may come back with a version of its history. */
  watched: boolean
  /** Begun because many of its names were asked for. */
  gathered: boolean
  /** When it was last as the cloud had it, by the wall's clock; 0: when the cloud was last heard. */
  heardMs: number
  /** What it was last kept out with, until its watch is open: neither a cut line nor a restart takes back what was said. */
  refusal: KeptOut | undefined
}

/** What the API server, or its size, keeps an interest from being mirrored with. */
export type KeptOut =
  | { readonly kind: 'refused'; readonly code: number; readonly why: string }
  | { readonly kind: 'tooLarge'; readonly why: string }

/** A sentence; what is longer is not worth its place in a record. */
const whyCharactersMax = 1_024

/** When more callers than these ask for an interest, in whose shares it counts no longer matters. */
const callersMax = 8

/** How an interest is asked for. */
export type Beginning = {
  readonly standing?: boolean
  readonly by?: readonly string[]
  readonly isWatch?: boolean
}

/** Notes a caller, who may have asked for no more than a part of it; whether that is news. */
export function noteCaller(record: InterestRecord, caller: string, isWatch: boolean): boolean {
  const { by } = record
  const joins = by.length < callersMax && caller !== '' && !by.includes(caller)
  if (joins) record.by = [...by, caller]
  if (!isWatch || record.watched) return joins
  record.watched = true
  return true
}

/** Notes how exactly this was asked for; whether that is news. */
export function noteBeginning(
  record: InterestRecord,
  { standing = false, by = [], isWatch = false }: Beginning,
): boolean {
  let isNews = false
  for (const caller of by) isNews = noteCaller(record, caller, isWatch) || isNews
  if (standing && !record.standing) isNews = record.standing = true
  if (!record.node && by.some(isNode)) isNews = record.node = true
  return isNews
}

/** Notes what keeps it out; whether that is news. */
export function noteKeptOut(record: InterestRecord, said: KeptOut | undefined): boolean {
  const now = said === undefined ? undefined : keptOutOf(said)
  if (record.refusal?.kind === now?.kind && record.refusal?.why === now?.why) return false
  record.refusal = now
  return true
}

/** Whether a caller is one of the node's own: every kubelet's user is named so. */
export function isNode(caller: string): boolean {
  return caller.startsWith('system:node:')
}

/** Whether it is one object by its name, which no client watches. */
export function isByName({ fields }: Interest, { watched }: Pick<InterestRecord, 'watched'>): boolean {
  return !watched && fields.required('metadata.name') !== undefined
}

/** An interest with its record. */
type Recorded = { readonly interest: Interest; readonly record: InterestRecord }

export class InterestRecords {
  readonly #store: Pick<Store, 'records' | 'figures'>
  readonly #records = new Map<string, InterestRecord>()
  readonly #plans = new Map<string, FieldPlan>()
  /** One for the same fields: what interests share is read once. */
  readonly #plansByPaths = new Map<string, FieldPlan>()
  /** Those whose record the disk has refused. */
  readonly #unsaved = new Set<Recorded>()
  #commit: Store['commit'] | undefined

  constructor(store: Pick<Store, 'records' | 'figures'>) {
    this.#store = store
  }

  /** Every interest that was written down. */
  async read(): Promise<Interest[]> {
    const found: Interest[] = []
    for (const { value } of await this.#store.records(recordKind)) {
      const printed = JSON.parse(value.toString()) as Record<string, unknown>
      const interest = parseInterest(printed)
      this.#records.set(interest.name, recordOf(printed))
      found.push(interest)
    }
    return found
  }

  /** From here on records can be written. */
  attach(commit: Store['commit']): void {
    this.#commit = commit
  }

  get(name: string): InterestRecord | undefined {
    return this.#records.get(name)
  }

  set(name: string, record: InterestRecord): void {
    this.#records.set(name, record)
  }

  planOf(name: string): FieldPlan {
    let plan = this.#plans.get(name)
    if (plan === undefined) {
      const paths = this.#records.get(name)?.paths ?? []
      plan = this.#plansByPaths.get(paths.join()) ?? planFields(paths)
      this.#plansByPaths.set(paths.join(), plan)
      this.#plans.set(name, plan)
    }
    return plan
  }

  /** Its fields are others now: the plan is made anew when it is next asked for. */
  replan(name: string): void {
    this.#plans.delete(name)
  }

  /** Whether the disk has lost what was written down of it. */
  isLost(name: string): boolean {
    return this.#store.figures.damagedRecords.some(({ kind, key }) => kind === recordKind && key === name)
  }

  /** What the disk refuses is written with the next `saveRest`. */
  async save(recorded: Recorded): Promise<void> {
    const { interest, record } = recorded
    const value = Buffer.from(JSON.stringify({ ...printInterest(interest), ...record }))
    this.#unsaved.add(recorded)
    await this.#commit?.({ changes: [], records: [{ kind: recordKind, key: interest.name, value }], synced: false })
    this.#unsaved.delete(recorded)
  }

  saveRest(): void {
    for (const recorded of [...this.#unsaved]) void this.save(recorded).catch(() => {})
  }

  async drop(recorded: Recorded): Promise<void> {
    const { name } = recorded.interest
    this.#unsaved.delete(recorded)
    this.#records.delete(name)
    this.#plans.delete(name)
    await this.#commit?.({ changes: [], records: [{ kind: recordKind, key: name, value: undefined }], synced: false })
  }
}

/** From what was written down; what is missing there is as if it had never been. */
function recordOf(printed: Record<string, unknown>): InterestRecord {
  const paths = Array.isArray(printed.paths) ? printed.paths.map(String) : []
  return {
    custom: printed.custom === true,
    namespaced: printed.namespaced === true,
    kind: String(printed.kind ?? ''),
    listKind: String(printed.listKind ?? ''),
    paths,
    standing: printed.standing === true,
    lost: Number(printed.lost ?? 0),
    unaskedMs: Number(printed.unaskedMs ?? 0),
    askedAtMs: Number(printed.askedAtMs ?? 0),
    by: Array.isArray(printed.by) ? printed.by.map(String) : [],
    node: printed.node === true,
    watched: printed.watched === true,
    gathered: printed.gathered === true,
    heardMs: Number(printed.heardMs ?? 0),
    refusal: keptOutOf((printed.refusal ?? {}) as Record<string, unknown>),
  }
}

function keptOutOf(said: {
  readonly kind?: unknown
  readonly code?: unknown
  readonly why?: unknown
}): KeptOut | undefined {
  const { kind, code } = said
  const why = String(said.why).slice(0, whyCharactersMax)
  if (kind === 'refused') return { kind, code: Number(code), why }
  return kind === 'tooLarge' ? { kind, why } : undefined
}
