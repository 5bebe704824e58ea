/** What /metrics tells: requests by verb, resource and code with their times, and the state of copy, store and loop. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, gauge, Histogram, seriesOf } from '../../base/metrics.ts'
import type { Copy } from '../../cache/copy.ts'
import { forms } from '../../cache/forms.ts'
import type { ApiRequest } from '../../kube/request.ts'
import type { Store } from '../../store/store.ts'
import { text } from '../answer/respond.ts'
import type { Measuring, NonResourcePaths, Response } from '../endpoint.ts'

const secondsBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
/** Fine enough to see a stall that delays PING answers, coarse enough to cost nothing. */
const loopResolutionMs = 20

/** Resources with series of their own: a cluster with hundreds of definitions has no more. */
const servedMax = 2_000

const verbs: ReadonlySet<string> = new Set([
  'get',
  'list',
  'watch',
  'create',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'head',
  'post',
  'put',
])

/** Bytes and connections, counted where sockets are. */
export type Traffic = { connections: number; bytesOut: number; bytesIn: number; refused: number; stalled: number }

export class Measures implements NonResourcePaths, Measuring {
  #copy: Copy
  readonly #store: Store
  readonly #more: () => readonly string[]
  readonly #requests = new Counter()
  readonly #seconds = new Histogram(secondsBounds)
  readonly #loop = monitorEventLoopDelay({ resolution: loopResolutionMs })
  readonly #series = new Map<string, string>()
  readonly #served = new Set<string>()
  readonly traffic: Traffic = { connections: 0, bytesOut: 0, bytesIn: 0, refused: 0, stalled: 0 }

  /** `more` is what else this process has to tell, rendered. */
  constructor(parts: { copy: Copy; store: Store; more?: () => readonly string[] }) {
    this.#copy = parts.copy
    this.#store = parts.store
    this.#more = parts.more ?? (() => [])
    this.#loop.enable()
  }

  /** Another copy is shown from here on. */
  measure(copy: Copy): void {
    this.#copy = copy
  }

  answered(api: ApiRequest | undefined, code: number, ms: number): void {
    // A path that nothing serves, or an unknown method, is whatever its client likes: it gets no series of its own.
    const known = api?.isResource === true && this.#isServed(api, code)
    const verb = api !== undefined && verbs.has(api.verb) ? api.verb : 'other'
    const resource = known ? api.resource : ''
    const of = this.#seriesFor(verb, known ? api.group : '', resource, known ? api.subresource : '')
    this.#requests.add(`${of},code="${code}"`)
    if (verb !== 'watch') this.#seconds.observe(of, ms / 1000)
  }

  /** Refusals come before it was looked up whether the resource exists: a success tells that it does. */
  #isServed({ group, resource, subresource }: ApiRequest, code: number): boolean {
    const name = `${group} ${resource} ${subresource}`
    if (this.#served.has(name)) return true
    if (code >= 400 || this.#served.size >= servedMax) return false
    this.#served.add(name)
    return true
  }

  #seriesFor(verb: string, group: string, resource: string, subresource: string): string {
    const key = `${verb} ${group} ${resource} ${subresource}`
    let series = this.#series.get(key)
    if (series === undefined) {
      series = seriesOf({ verb, group, resource, subresource })
      if (this.#series.size < 2_000) this.#series.set(key, series)
    }
    return series
  }

  answer(api: ApiRequest): Response | undefined {
    if (api.path !== '/metrics') return undefined
    return text(200, this.#render(), 'text/plain; version=0.0.4; charset=utf-8')
  }

  #render(): string {
    const caches = [...this.#copy.caches]
    const by = (value: (cache: (typeof caches)[number][1]) => number) =>
      caches.map(([interest, cache]) => [seriesOf({ interest }), value(cache)] as const)
    const { figures } = this.#store
    const { traffic } = this
    const one = (value: number) => [['', value] as const]
    const quantile = (q: number) => [`quantile="${q / 100}"`, this.#loop.percentile(q) / 1e9] as const
    const parts = [
      this.#requests.render('ake_requests_total', 'Requests answered.'),
      this.#seconds.render('ake_request_seconds', 'Time to answer, watches apart.'),
      gauge(
        'ake_objects',
        'Objects held.',
        by((cache) => cache.size),
      ),
      gauge(
        'ake_object_bytes',
        'Bytes of objects held.',
        by((cache) => cache.bytes),
      ),
      gauge(
        'ake_watchers',
        'Watches open.',
        by((cache) => cache.watchers.size),
      ),
      gauge(
        'ake_history_window_bytes',
        'History in memory.',
        by((cache) => cache.history.window.bytes),
      ),
      gauge(
        'ake_history_floor',
        'Version below which a watch is too old.',
        by((cache) => cache.history.floor),
      ),
      gauge('ake_protobuf_bytes', 'Objects kept in protobuf besides their JSON.', one(forms.bytes)),
      gauge('ake_version', 'Newest version published.', one(newestOf(this.#copy))),
      gauge('ake_store_commits_total', 'Commits asked for.', one(figures.commits)),
      gauge('ake_store_groups_total', 'Transactions that carried them.', one(figures.groups)),
      gauge('ake_store_written_bytes_total', 'Bytes of bodies committed.', one(figures.bytesWritten)),
      gauge('ake_store_failures_total', 'Transactions the disk refused.', one(figures.failures)),
      gauge('ake_store_history_bytes', 'History on disk.', one(figures.historyBytes)),
      gauge('ake_store_healthy', 'Whether the disk took the last commit.', one(this.#copy.healthy ? 1 : 0)),
      gauge('ake_store_lost_frames', 'Frames of the log that are lost.', one(figures.lostFrames)),
      gauge(
        'ake_damaged_objects',
        'Objects whose stored bytes are damaged.',
        by((cache) => [...cache.corrupt].length),
      ),
      gauge('ake_connections', 'Connections open.', one(traffic.connections)),
      gauge('ake_sent_bytes_total', 'Bytes of bodies sent.', one(traffic.bytesOut)),
      gauge('ake_received_bytes_total', 'Bytes of bodies received.', one(traffic.bytesIn)),
      gauge('ake_refused_total', 'Requests refused by a limit.', one(traffic.refused)),
      gauge('ake_stalled_total', 'Streams ended because nobody read them.', one(traffic.stalled)),
      gauge('ake_event_loop_delay_seconds', 'Delay of the event loop.', [50, 99, 99.9].map(quantile)),
      gauge('process_resident_memory_bytes', 'Resident memory.', one(process.memoryUsage.rss())),
    ]
    return [...parts, ...this.#more()].join('')
  }
}

function newestOf({ caches }: Copy): number {
  let newest = 0
  for (const { version } of caches.values()) newest = Math.max(newest, version)
  return newest
}
