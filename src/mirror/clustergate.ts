/**
 * Drives the judgement of which cluster answers: asks over each new connection, refuses those that lead to another cluster,
 * remembers the known one on disk, and tells when another is believed in.
 */
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { RecordChange, Store } from '../store/store.ts'
import type { Arrival, Gate } from '../upstream/upstream.ts'
import {
  type Candidate,
  type Cluster,
  identityPath,
  isBelieved,
  refreshed,
  type Sight,
  sighted,
  sightOf,
  verdictOf,
} from './cluster.ts'

/** Over a connection that stays, the API server is asked so often: behind a gateway another may answer all the same. */
const againMs = 30_000
/** After another cluster was seen at an address, connections to it are asked several times, and again at each probe. */
const warinessMs = 10 * 60_000
const waryAsks = 3
/** A cluster has a few API servers; one that shows another certificate each time is no reason to remember them all. */
const foreignMax = 64

const recordKind = 'cluster'
const recordKey = 'known'

type Parts = {
  readonly store: Pick<Store, 'commit' | 'record'>
  readonly clock: Clock
  readonly log: Log
  /** How long another cluster has to answer before it is believed in. */
  readonly spanMs: number
}

export class ClusterGate implements Gate {
  readonly #parts: Parts
  #known: Cluster | undefined
  #lost: number
  #candidate: Candidate | undefined
  /** Where another cluster was seen, and when, by the steady clock. */
  readonly #strange = new Map<string, number>()
  /** Certificates of servers that answer for another cluster, and not for the known one too. */
  readonly #foreign = new Set<string>()
  readonly #askedAt = new Map<string, number>()
  /** Where the API server does not take the edge's credential, and when it said so. */
  readonly #refusedAt = new Map<string, number>()
  #said = ''
  #isSaved = true
  #changes = 0
  #found: ((candidate: Candidate) => void) | undefined
  #isChanging = false

  static async open(parts: Parts): Promise<ClusterGate> {
    return new ClusterGate(parts, await parts.store.record(recordKind, recordKey))
  }

  private constructor(parts: Parts, stored: Buffer | undefined) {
    this.#parts = parts
    const { lost = 0, ...known } = stored === undefined ? {} : (JSON.parse(stored.toString()) as Partial<Stored>)
    this.#lost = lost
    this.#known = known.uid === undefined ? undefined : { uid: '', authorities: [], addresses: [], ...known }
  }

  get known(): Cluster | undefined {
    return this.#known
  }

  /** Another cluster that answers now, not believed in yet. */
  get candidate(): Candidate | undefined {
    return this.#candidate
  }

  /** The newest version that was ever shown of a cluster before this one. */
  get lost(): number {
    return this.#lost
  }

  /** How often another cluster was believed in since the start. */
  get changes(): number {
    return this.#changes
  }

  async admit(arrival: Arrival): Promise<string | undefined> {
    // The edge's own connections may lead elsewhere than this one, behind a balancer: the server that it reaches was seen before.
    if (!arrival.isOwn && this.#foreign.has(arrival.server)) return 'a server of another cluster answers'
    const asks = this.#isWary(arrival.address) ? waryAsks : 1
    for (let asked = 0; asked < asks; asked++) {
      const why = await this.#ask(arrival)
      if (why !== undefined) return why
    }
    return undefined
  }

  async look(arrival: Arrival, withinMs?: number): Promise<string | undefined> {
    if (withinMs === undefined) this.#candidate = undefined
    if (!this.#isSaved) await this.#save()
    const askedMs = this.#parts.clock.steady() - (this.#askedAt.get(arrival.address) ?? Number.NEGATIVE_INFINITY)
    return askedMs >= (withinMs ?? againMs) || this.#isWary(arrival.address)
      ? await this.#ask(arrival, 'again')
      : undefined
  }

  /** Resolves with a cluster once that is believed in. Until `adopted` or `declined` no connection is admitted. */
  another(): Promise<Candidate> {
    return new Promise((resolve) => {
      this.#found = resolve
    })
  }

  /** What has to be written down, together with the end of everything that is of the known cluster. */
  recordOf({ uid, authorities, addresses }: Cluster, lost: number): RecordChange {
    const stored: Stored = { uid, authorities, addresses, lost }
    return { kind: recordKind, key: recordKey, value: Buffer.from(JSON.stringify(stored)) }
  }

  adopted({ uid, authorities, addresses }: Cluster, lost: number): void {
    this.#known = { uid, authorities, addresses }
    this.#lost = lost
    this.#candidate = undefined
    this.#strange.clear()
    this.#foreign.clear()
    this.#changes++
    this.#isChanging = false
  }

  declined(): void {
    this.#isChanging = false
  }

  #isWary(address: string): boolean {
    return this.#parts.clock.steady() - (this.#strange.get(address) ?? Number.NEGATIVE_INFINITY) < warinessMs
  }

  async #ask(arrival: Arrival, again?: 'again'): Promise<string | undefined> {
    const { clock } = this.#parts
    const sight = await this.#sightAt(arrival)
    if (this.#isChanging) return 'the copy of another cluster is being dropped'
    const known = this.#known
    const verdict =
      known === undefined ? (sight.kind === 'unclear' ? 'unclear' : 'same') : verdictOf(known, sight, arrival)
    if (verdict === 'unclear') {
      const why = sight.kind === 'unclear' ? sight.why : 'no namespace kube-system'
      this.#say('cluster.unclear', { address: arrival.address, why })
      // What was admitted before stays so until something is known.
      return again === undefined ? `it does not say which cluster it is of (${why})` : undefined
    }
    this.#askedAt.set(arrival.address, clock.steady())
    if (known === undefined || verdict === 'same') {
      if (arrival.isOwn) this.#foreign.delete(arrival.server)
      await this.#confirm(sight, arrival)
      return undefined
    }
    if (arrival.isOwn && arrival.server !== '') {
      if (this.#foreign.size >= foreignMax) this.#foreign.clear()
      this.#foreign.add(arrival.server)
    }
    return this.#refuse(known, sight, arrival)
  }

  /**
   * kube-apiserver closes an HTTP/2 connection after a 401. Asked over each new one, an edge whose credential has expired
   * would never have a connection: what it was told lately it need not ask again.
   */
  async #sightAt({ address, get }: Arrival): Promise<Sight> {
    const { clock } = this.#parts
    if (clock.steady() - (this.#refusedAt.get(address) ?? Number.NEGATIVE_INFINITY) < againMs) return { kind: 'hidden' }
    const { status, body } = await get(identityPath)
    if (status === 401) this.#refusedAt.set(address, clock.steady())
    else this.#refusedAt.delete(address)
    return sightOf(status, body)
  }

  async #confirm(sight: Sight, site: Arrival): Promise<void> {
    const before = this.#known
    this.#candidate = undefined
    const known = refreshed(before ?? { uid: '', ...site }, sight, site)
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(known)) return
    this.#known = known
    this.#parts.log.info('cluster.known', { uid: known.uid === '' ? 'hidden' : known.uid })
    await this.#save()
  }

  #refuse(known: Cluster, sight: Sight, { address, authorities, addresses }: Arrival): string {
    const { clock, spanMs } = this.#parts
    const nowMs = clock.steady()
    const site = { authorities, addresses }
    this.#strange.set(address, nowMs)
    const candidate = sighted(this.#candidate, { sight, address, site, nowMs, spanMs })
    this.#candidate = candidate
    const why = `another cluster answers (${named(candidate)}) than the one that is mirrored (${named(known)})`
    this.#say('cluster.other', { address, uid: candidate.uid, known: known.uid })
    if (isBelieved(candidate, known, spanMs) && this.#found !== undefined) {
      const found = this.#found
      this.#found = undefined
      this.#isChanging = true
      found(candidate)
    }
    return why
  }

  /** Before anything of the cluster is: a crash must not leave a copy that does not know its cluster. */
  async #save(): Promise<void> {
    const { store, log } = this.#parts
    try {
      const records = [this.recordOf(this.#known as Cluster, this.#lost)]
      await store.commit({ changes: [], records, synced: true })
      this.#isSaved = true
    } catch (error) {
      // A disk that refuses is told elsewhere, and takes nothing of the cluster either.
      this.#isSaved = false
      log.debug('cluster.unsaved', { why: String(error) })
    }
  }

  /** Once, and again when it is another. */
  #say(event: string, fields: Record<string, string>): void {
    const text = `${event} ${Object.values(fields).join(' ')}`
    if (text === this.#said) return
    this.#said = text
    this.#parts.log.warn(event, fields)
  }
}

type Stored = Cluster & { readonly lost: number }

function named({ uid }: Cluster): string {
  return uid === '' ? 'of unknown uid' : `uid ${uid}`
}
