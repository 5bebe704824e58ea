/**
 * What happens to edges, as Events of their Nodes: `kubectl get events`, `kubectl describe node`. Told by the way: an edge, or a thief of its
 * certificate, can bring about one of each kind in ten minutes and no more, and an API server that takes none loses them.
 */
import { createHash } from 'node:crypto'
import { type Clock, sleep } from '../../base/clock.ts'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { Counter, seriesOf } from '../../base/metrics.ts'
import { askJson } from '../../upstream/askjson.ts'
import type { Upstream } from '../../upstream/upstream.ts'

const reasons = ['EdgeJoined', 'EdgeRenewed', 'EdgeRevoked', 'EdgeRefused'] as const
export type FleetEventReason = (typeof reasons)[number]

type Told = {
  readonly node: string
  /** Of the Node, where there is one. */
  readonly uid?: string | undefined
  readonly reason: FleetEventReason
  readonly message: string
  /** What happened, if several hubs may tell of it: they make one Event. */
  readonly once?: string
}

type Parts = {
  readonly upstream: Pick<Upstream, 'ask'>
  /** The hub that tells. */
  readonly hub: string
  readonly clock: Clock
  readonly log: Log
}

/** Nodes have no namespace: what is told of them lies here, as kubelets do it. */
const path = '/api/v1/namespaces/default/events'
/** Of one node and one reason. */
const repeatMs = 600_000
const rememberedMax = 4_096
/** Those that wait: a fleet that comes at once is told of in a few minutes, or not. */
const waitingMax = 256
/** One after the other, so many a second. */
const everyMs = 200
/** Where the hub may not write them, or the API server does not take them. */
const retryMs = 60_000
const answerMsMax = 10_000
const answerBytesMax = 256 * 1024
const messageMax = 1_024
const normal: ReadonlySet<FleetEventReason> = new Set(['EdgeJoined', 'EdgeRenewed'])

export class FleetEvents {
  readonly #parts: Parts
  readonly #waiting: (Told & { readonly at: number })[] = []
  /** When each was last told, by the steady clock. */
  readonly #told = new Map<string, number>()
  readonly #counter = new Counter()
  #wake: () => void = () => undefined
  #complaint = ''

  constructor(parts: Parts) {
    this.#parts = parts
    // From the start on: an alert asks by how much a figure grew, which the first of its kind would not tell.
    for (const reason of reasons) this.#counter.add(seriesOf({ reason }), 0)
  }

  tell(told: Told): void {
    const { clock } = this.#parts
    const key = `${told.reason} ${told.node}`
    const before = this.#told.get(key)
    this.#counter.add(seriesOf({ reason: told.reason }))
    if (before !== undefined && clock.steady() - before < repeatMs) return
    if (this.#waiting.length >= waitingMax) return
    this.#told.delete(key)
    this.#told.set(key, clock.steady())
    if (this.#told.size > rememberedMax) this.#told.delete(this.#told.keys().next().value as string)
    this.#waiting.push({ ...told, at: clock.now() })
    this.#wake()
  }

  figures(): string[] {
    return [
      this.#counter.render('ake_hub_edge_events_total', 'What happened to edges, also where no Event was made of it.'),
    ]
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    const stop = () => this.#wake()
    signal.addEventListener('abort', stop, { once: true })
    while (!signal.aborted) {
      const [next] = this.#waiting
      if (next === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        continue
      }
      const why = await this.#create(next)
      if (why === undefined) this.#waiting.shift()
      this.#tellLog(why)
      await sleep(clock, why === undefined ? everyMs : retryMs, signal)
    }
  }

  /** Why it could not be made; undefined: it is there, or the API server will never take it. */
  async #create(told: Told & { readonly at: number }): Promise<string | undefined> {
    try {
      const asked = { method: 'POST', path, content: this.#eventOf(told) }
      const limits = { headMsMax: answerMsMax, bytesMax: answerBytesMax }
      const { status } = await askJson(this.#parts.upstream, { ...asked, ...limits })
      if (status === 401 || status === 403) return `the hub may not create Events in the namespace default (${status})`
      return status >= 500 || status === 429 ? `the API server answers ${status}` : undefined
    } catch (error) {
      return reasonOf(error)
    }
  }

  #eventOf({ node, uid, reason, message, once, at }: Told & { readonly at: number }) {
    const time = `${new Date(at).toISOString().slice(0, 19)}Z`
    const unique = createHash('sha256').update(`${reason} ${node} ${once ?? `${this.#parts.hub} ${at}`}`)
    const name = `${node.slice(0, 200)}.${unique.digest('hex').slice(0, 16)}`
    return {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name, namespace: 'default' } },
      involvedObject: { apiVersion: 'v1', kind: 'Node', name: node, uid: uid ?? node },
      ...{ reason, message: message.slice(0, messageMax), type: normal.has(reason) ? 'Normal' : 'Warning' },
      ...{ count: 1, firstTimestamp: time, lastTimestamp: time },
      source: { component: 'ake-hub', host: this.#parts.hub },
    }
  }

  /** Once, and again when it is another. */
  #tellLog(why: string | undefined): void {
    if (why !== undefined && why !== this.#complaint) this.#parts.log.warn('hub.events', { why })
    this.#complaint = why ?? ''
  }
}
