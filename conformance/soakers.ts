/**
 * Who works through an edge while it is troubled, besides informers: probers that never wait, people with kubectl, and
 * programs that write through it and read what they wrote. Each knows what it must never be answered.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Answer, Client } from '../test/process.ts'
import type { Oracle } from './oracle.ts'
import { type Listed, Shown, type Truth } from './shown.ts'
import type { Edge, Random } from './site.ts'

const probeEveryMs = 50
const readEveryMs = 100
const writeEveryMs = 100
/** A reader that has waited so long has no answer: an edge holds a request for 10 s at most, and forwards with limits. */
const answerMsMax = 40_000
/** What is held is shown without asking anybody for longer than a moment, even where the line has just gone silent. */
const heldMsMax = 10_000
/** With a version an edge answers from memory; so long only on a machine that has no time for anybody. */
const probeMsMax = 5_000
const faultsMax = 20
const space = 'soak'
const collection = `/api/v1/namespaces/${space}/configmaps`

type Versioned = { readonly metadata: { readonly resourceVersion: string } }
/** The namespace in which `Through` writes. */
export async function prepareProbing(oracle: Oracle): Promise<void> {
  const direct = new Client({ url: oracle.url, credentials: oracle })
  await direct.json('POST', '/api/v1/namespaces', { metadata: { name: space } })
  direct.close()
}

/** A connection that is made anew when the edge is; only an answer counts, not that there was none while it was away. */
class Asking {
  readonly #edge: Edge
  #client: Client | undefined
  answers = 0
  broken = 0

  constructor(edge: Edge) {
    this.#edge = edge
  }

  get edge(): Edge {
    return this.#edge
  }

  /** Undefined when the connection broke, as it does when the edge is ended; anything else is the edge's own answer. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    withinMs = answerMsMax,
  ): Promise<Answer | 'late' | undefined> {
    const { restarts } = this.#edge
    if (this.#client === undefined || this.#client.session.closed || this.#client.session.destroyed) {
      this.#client = this.#edge.client()
    }
    const client = this.#client
    const late = new AbortController()
    const limit = pause(withinMs, 'late' as const, { signal: late.signal }).catch(() => 'late' as const)
    const answer = await Promise.race([client.ask(method, path, body).catch(() => undefined), limit])
    late.abort()
    if (answer === undefined || answer === 'late') {
      client.close()
      this.#client = undefined
      this.broken++
      // It was ended meanwhile: nobody could answer.
      return answer === 'late' && restarts === this.#edge.restarts ? 'late' : undefined
    }
    this.answers++
    return answer
  }

  close(): void {
    this.#client?.close()
  }
}

abstract class Worker {
  readonly faults: string[] = []
  protected readonly asking: Asking
  protected readonly statuses = new Map<number, number>()
  readonly #everyMs: number

  constructor(edge: Edge, everyMs: number) {
    this.asking = new Asking(edge)
    this.#everyMs = everyMs
  }

  protected abstract turn(): Promise<void>

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.turn()
      await pause(this.#everyMs, undefined, { signal }).catch(() => {})
    }
    this.asking.close()
  }

  protected count(answer: Answer): void {
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1)
  }

  protected fault(text: string): void {
    if (this.faults.length < faultsMax) this.faults.push(`${new Date().toISOString()} ${text}`)
  }

  protected get counted(): string {
    const statuses = [...this.statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`)
    return `${this.asking.answers} answers (${statuses.join(', ')}), ${this.asking.broken} connections broke`
  }
}

type Probing = { readonly edge: Edge; readonly truth: Truth; readonly path: string }

/** Reads with resourceVersion=0: always 200, never older than what it was shown before, and nothing that is over. */
export class Prober extends Worker {
  readonly #path: string
  readonly #shown: Shown
  readonly #truth: Truth
  #longestMs = 0

  constructor({ edge, truth, path }: Probing) {
    super(edge, probeEveryMs)
    this.#path = `${path}?resourceVersion=0`
    this.#shown = new Shown(edge, truth)
    this.#truth = truth
  }

  get figures(): string {
    return `prober of ${this.#path}: ${this.counted}, the longest took ${Math.round(this.#longestMs)} ms, ${this.#shown.relabelled} with the same objects under an earlier version`
  }

  protected async turn(): Promise<void> {
    const begunMs = performance.now()
    const { restarts } = this.asking.edge
    const { settled } = this.#truth
    const answer = await this.asking.ask('GET', this.#path, undefined, probeMsMax)
    if (answer === undefined) return
    if (answer === 'late') {
      this.fault(`GET ${this.#path} had no answer within ${probeMsMax} ms`)
      return
    }
    this.#longestMs = Math.max(this.#longestMs, performance.now() - begunMs)
    this.count(answer)
    if (answer.status !== 200) {
      this.fault(`GET ${this.#path}: ${answer.status} ${answer.body}`)
      return
    }
    const list = JSON.parse(answer.body.toString()) as Listed
    const wrong = this.#shown.take(list, restarts)
    if (wrong !== undefined) this.fault(`GET ${this.#path}: ${wrong}`)
    const over = settled !== undefined && settled === this.#truth.settled ? this.#truth.overIn(list) : undefined
    if (over !== undefined) this.fault(`GET ${this.#path} shows what is over: ${over}`)
  }
}

type Working = { readonly edge: Edge; readonly truth: Truth; readonly random: Random }

/** Offline an edge says 503 to what it never held; overloaded or starting it says 429, and 504 to a version ahead of it. */
const honest = new Set([200, 404, 429, 503, 504])

/** Somebody with kubectl: lists and gets, with and without a version, of what informers read and of what nobody does. */
export class Reader extends Worker {
  readonly #random: Random
  readonly #truth: Truth
  /** By path. */
  readonly #seen = new Map<string, Shown>()

  constructor({ edge, truth, random }: Working) {
    super(edge, readEveryMs)
    this.#random = random
    this.#truth = truth
  }

  get figures(): string {
    const relabelled = [...this.#seen.values()].reduce((sum, one) => sum + one.relabelled, 0)
    return `reader: ${this.counted}, ${relabelled} with the same objects under an earlier version`
  }

  protected async turn(): Promise<void> {
    const { below, of } = this.#random
    const mirrored = ['/api/v1/pods', `/api/v1/namespaces/churn-${below(4)}/configmaps`, '/api/v1/secrets']
    const other = ['/api/v1/services', '/apis/apps/v1/deployments', '/api/v1/namespaces', '/api/v1/nodes']
    const isMirrored = below(4) > 0
    const path = of(isMirrored ? mirrored : other)
    const shown = this.#seen.get(path) ?? new Shown(this.asking.edge, this.#truth)
    this.#seen.set(path, shown)
    const { restarts } = this.asking.edge
    const { settled } = this.#truth
    const versions = ['', '', '?resourceVersion=0', shown.version === 0 ? '' : `?resourceVersion=${shown.version}`]
    const query = of([...versions, '?limit=20', '?labelSelector=app%3Da'])
    const named = isMirrored && path.endsWith('configmaps') && below(2) === 0 ? `/object-00${below(8)}` : ''
    const asked = `${path}${named}${named === '' ? query : of(['', '?resourceVersion=0'])}`
    const withinMs = isMirrored ? heldMsMax : answerMsMax
    const answer = await this.asking.ask('GET', asked, undefined, withinMs)
    if (answer === undefined) return
    if (answer === 'late') {
      this.fault(`GET ${asked} had no answer within ${withinMs} ms`)
      return
    }
    this.count(answer)
    // Of either state, from the copy or from the cloud itself: nothing follows from it.
    const isBetween = settled === undefined || settled !== this.#truth.settled
    const mayBeAbsent = named !== '' && answer.status === 404
    // What informers read is held: no list of it may fail, whatever happens to the line.
    const isNamed = query === `?resourceVersion=${shown.version}`
    const isAhead = answer.status === 504 && isNamed && (shown.relabelled > 0 || isBetween)
    const right = isMirrored ? answer.status === 200 || mayBeAbsent || isAhead : honest.has(answer.status)
    if (!right) this.fault(`GET ${asked}: ${answer.status} ${answer.body.toString().slice(0, 500)}`)
    if (isBetween) shown.forget()
    if (isBetween || answer.status !== 200 || named !== '') return
    const list = JSON.parse(answer.body.toString()) as Listed
    const over = this.#truth.overIn(list)
    if (over !== undefined) this.fault(`GET ${asked} shows what is over: ${over}`)
    if (query.startsWith('?l')) return
    const wrong = shown.take(list, restarts)
    if (isMirrored && wrong !== undefined) this.fault(`GET ${asked}: ${wrong}`)
  }
}

type Written = { readonly version: number; readonly restarts: number }

/** Writes through the edge, and is shown what it wrote: never less than what it was told had been done (A7). */
export class Through extends Worker {
  readonly #random: Random
  readonly #truth: Truth
  #written = new Map<string, Written>()
  #marked = new Map<string, Written>()
  #number = 0
  #acknowledged = 0

  constructor({ edge, truth, random }: Working) {
    super(edge, writeEveryMs)
    this.#random = random
    this.#truth = truth
  }

  /** What it was told until now stays, whatever comes. */
  mark(): void {
    this.#marked = new Map(this.#written)
  }

  /** Where it is now, nothing of what it wrote is known. */
  forget(): void {
    this.#written = new Map()
  }

  /** It is back at the mark: what it was told since does not count. */
  setBack(): void {
    this.#written = new Map(this.#marked)
  }

  /** Reads everything it was told until the mark. */
  async prove(): Promise<void> {
    for (const [name, { version }] of this.#marked) {
      const answer = await this.asking.ask('GET', `${collection}/${name}?resourceVersion=0`)
      if (answer === undefined || answer === 'late') continue
      const found = answer.status === 200 ? versionOf(answer) : 0
      if (found === 0 || found < version) this.fault(`${name}, written at ${version}, is ${answer.status} ${found}`)
    }
  }

  get figures(): string {
    return `writer through the edge: ${this.#acknowledged} writes acknowledged, ${this.counted}`
  }

  protected async turn(): Promise<void> {
    const name = `own-${this.#random.below(20)}`
    const path = `${collection}/${name}`
    const body = { metadata: { name }, data: { number: String(++this.#number) } }
    const isKnown = this.#written.has(name)
    const { settled } = this.#truth
    const answer = isKnown ? await this.asking.ask('PUT', path, body) : await this.asking.ask('POST', collection, body)
    if (answer === undefined || answer === 'late') {
      // Nobody knows whether it was done; a create that was done is answered by 409 from then on.
      if (answer === 'late') this.fault(`a write of ${name} had no answer within ${answerMsMax} ms`)
      return
    }
    this.count(answer)
    // Of either state, or of none.
    if (settled === undefined || settled !== this.#truth.settled) return
    const { edge } = this.asking
    if (answer.status === 409 && !isKnown) this.#written.set(name, { version: 0, restarts: edge.restarts })
    else if (answer.status < 300) {
      this.#acknowledged++
      this.#written.set(name, { version: versionOf(answer), restarts: edge.restarts })
      await this.#readBack(path, name)
    } else if (![429, 500, 502, 503, 504].includes(answer.status)) {
      this.fault(`a write of ${name}: ${answer.status} ${answer.body.toString().slice(0, 500)}`)
    }
  }

  async #readBack(path: string, name: string): Promise<void> {
    const { edge } = this.asking
    const { settled } = this.#truth
    const answer = await this.asking.ask('GET', `${path}?resourceVersion=0`)
    if (settled !== this.#truth.settled) return
    const written = this.#written.get(name)
    // What a reply promised is remembered by the life of the edge that gave it.
    if (answer === undefined || answer === 'late' || written === undefined || written.restarts !== edge.restarts) return
    this.count(answer)
    const version = answer.status === 200 ? versionOf(answer) : 0
    if (answer.status === 200 && version >= written.version) return
    this.fault(`${name} was written at ${written.version}, then read as ${answer.status} ${version}`)
  }
}

function versionOf({ body }: Answer): number {
  return Number((JSON.parse(body.toString()) as Versioned).metadata.resourceVersion)
}
