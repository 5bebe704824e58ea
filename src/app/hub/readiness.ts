/** Whether a hub may let edges in, and why not: its state, which cluster it is of, which resources that has, in this order. */
import { type Clock, sleep } from '../../base/clock.ts'
import { Unavailable } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { type Check, Health } from '../../endpoint/documents/health.ts'
import type { ClusterGate } from '../../mirror/clustergate.ts'
import type { CloudCatalog } from '../../mirror/documents/catalog.ts'
import { askJson } from '../../upstream/askjson.ts'
import { answersWell, type Reachability, Unreachable, type Upstream } from '../../upstream/upstream.ts'

type Parts = {
  readonly gate: Pick<ClusterGate, 'known'>
  readonly catalog: Pick<CloudCatalog, 'complete'>
  readonly reachability: Pick<Reachability, 'state' | 'why'>
  readonly clock: Clock
  readonly log: Log
}

/** What is waited for is there within a moment, or an operator has to act. */
const lookEveryMs = 200
const retryMs = 2_000

export class HubReadiness {
  readonly #parts: Parts
  readonly health: Health
  #phase: 'opening' | 'open' | 'ending' = 'opening'
  /** What could not be had. */
  #missing: string | undefined
  #told = ''

  constructor(parts: Parts) {
    this.#parts = parts
    const { reachability } = parts
    const upstream: Check = {
      ...{ name: 'upstream', ready: true, run: () => undefined },
      note: () => `${reachability.state}, ${reachability.why}`,
      warning: () => (reachability.why === answersWell ? undefined : `${reachability.state}, ${reachability.why}`),
    }
    this.health = new Health({ checks: [{ name: 'edges', ready: true, run: () => this.why }, upstream] })
  }

  /** Why no edge is let in; undefined: they are. While the API server is away they still are: other hubs could do no more for them. */
  get why(): string | undefined {
    if (this.#phase === 'open') return undefined
    if (this.#phase === 'ending') return 'this hub ends'
    return this.#missing ?? this.#unknown ?? 'it begins'
  }

  opened(): void {
    this.#phase = 'open'
  }

  ends(): void {
    this.#phase = 'ending'
  }

  /** Asks until it is had; undefined at the signal. What only an operator can put right ends the wait. */
  async had<T>(what: string, ask: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    while (!signal.aborted) {
      try {
        const found = await ask()
        this.#missing = undefined
        return found
      } catch (error) {
        if (!(error instanceof Unavailable) && !(error instanceof Unreachable)) throw error
        this.#missing = error.message
        this.#tell(what)
      }
      await sleep(this.#parts.clock, retryMs, signal)
    }
    return undefined
  }

  /** Until it is known which cluster this is and which resources it has; false at the signal. */
  async known(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#parts
    for (const since = clock.steady(); !signal.aborted; await sleep(clock, lookEveryMs, signal)) {
      if (this.#unknown === undefined) return true
      if (clock.steady() - since >= retryMs) this.#tell('cluster')
    }
    return false
  }

  get #unknown(): string | undefined {
    const { gate, catalog, reachability } = this.#parts
    const { known } = gate
    if (known === undefined) return `which cluster this is is not known: ${reachability.why}`
    if (known.uid === '')
      return 'which cluster this is is not known: let the hub get the namespace kube-system, whose uid says it'
    return catalog.complete ? undefined : 'which resources there are is not known yet'
  }

  /** Once, and again when it is another. */
  #tell(what: string): void {
    const why = this.why ?? ''
    if (why === this.#told) return
    this.#told = why
    this.#parts.log.warn('hub.waits', { for: what, why })
  }
}

const answerMsMax = 10_000
const answerBytesMax = 1024 * 1024

/** How far the cluster is now: a list without a version is not answered from an old copy. */
export async function newestVersion(upstream: Pick<Upstream, 'ask'>): Promise<number> {
  const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
  const { status, text } = await askJson(upstream, { method: 'GET', path: '/api/v1/namespaces?limit=1', ...limits })
  const version = status === 200 ? versionIn(text) : Number.NaN
  if (Number.isSafeInteger(version)) return version
  throw new Unavailable(`the API server does not say how far it is (${status}): let the hub list namespaces`)
}

function versionIn(text: string): number {
  const list = JSON.parse(text) as { metadata?: { resourceVersion?: string } }
  return Number(list.metadata?.resourceVersion)
}
