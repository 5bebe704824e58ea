/** What /metrics tells: requests by verb, resource and code with their times, and the state of copy, store and loop. */
import { Counter, counter, gauge, Histogram, type MetricLabels, seriesOf, summary } from '../../base/metrics.ts'
import type { Cache } from '../../cache/cache.ts'
import type { Copy } from '../../cache/copy.ts'
import { forms } from '../../cache/forms.ts'
import type { ApiRequest } from '../../kube/request.ts'
import type { Resource } from '../../kube/resource.ts'
import type { Store, StoreFigures } from '../../store/store.ts'
import { text } from '../answer/respond.ts'
import type { Measuring, NonResourcePaths, Response } from '../endpoint.ts'
import { LoopDelay } from './loopdelay.ts'

const secondsBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

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

/** The label sets under which a request is counted and, unless it is a watch, timed. */
type RequestSeries = {
  readonly requests: string
  readonly seconds: string | undefined
  /** Of those that the API server answered. */
  readonly passed: string
}

/** What is shown: the copy, and which resources there are. */
type Shown = {
  readonly copy: Copy
  readonly catalog: {
    find(group: string, version: string, plural: string): { readonly resource: Resource } | undefined
  }
}

type MeasuresParts = Shown & {
  readonly store: Store
  /** Which interests are counted together: no object is named in a figure, however many are mirrored by name. */
  readonly kindOf?: (interest: string) => MetricLabels
  /** What else this process has to tell, rendered. */
  readonly more?: () => readonly string[]
}

/** Bytes and connections, counted where sockets are. */
export type Traffic = { connections: number; bytesOut: number; bytesIn: number; refused: number; stalled: number }

export class Measures implements NonResourcePaths, Measuring {
  #shown: Shown
  readonly #parts: MeasuresParts
  readonly #requests = new Counter()
  readonly #passed = new Counter()
  readonly #seconds = new Histogram(secondsBounds)
  readonly #loop = new LoopDelay()
  /** Of requests for what is served, by what they asked for and the code of their answer. */
  readonly #series = new Map<string, RequestSeries>()
  readonly #served = new Set<string>()
  /** Requests that could not be answered here, because the API server is away. */
  unavailable = 0
  readonly traffic: Traffic = { connections: 0, bytesOut: 0, bytesIn: 0, refused: 0, stalled: 0 }

  constructor(parts: MeasuresParts) {
    this.#shown = parts
    this.#parts = parts
  }

  /** Something else is shown from here on. */
  show(shown: Shown): void {
    this.#shown = shown
  }

  answered(api: ApiRequest | undefined, code: number, ms: number, passed = false): void {
    const key = api?.isResource === true ? `${api.verb} ${code} ${api.group} ${api.resource} ${api.subresource}` : ''
    const series = this.#series.get(key) ?? this.#seriesFor(key, api, code)
    this.#requests.add(series.requests)
    if (series.seconds !== undefined) this.#seconds.observe(series.seconds, ms / 1000)
    if (passed) this.#passed.add(series.passed)
    else if (code === 503) this.unavailable++
  }

  /** A path that nothing serves, or an unknown method, is whatever its client likes: it gets no series of its own. */
  #seriesFor(key: string, api: ApiRequest | undefined, code: number): RequestSeries {
    const isKnown = api?.isResource === true && this.#isServed(api, code)
    const verb = api !== undefined && verbs.has(api.verb) ? api.verb : 'other'
    const { group, resource, subresource } = isKnown ? api : { group: '', resource: '', subresource: '' }
    const of = seriesOf({ verb, group, resource, subresource })
    const passed = seriesOf({ verb, group, resource })
    const series = { requests: `${of},code="${code}"`, seconds: verb === 'watch' ? undefined : of, passed }
    if (isKnown && verb !== 'other' && this.#series.size < servedMax) this.#series.set(key, series)
    return series
  }

  /** The catalog tells, or a success: what is refused, passed on or asked for while the cloud is away keeps its name too. */
  #isServed({ group, version, resource, subresource }: ApiRequest, code: number): boolean {
    const known = this.#shown.catalog.find(group, version, resource)
    if (
      known !== undefined &&
      (subresource === '' || known.resource.subresources.some((one) => one.name === subresource))
    )
      return true
    const name = `${group} ${resource} ${subresource}`
    if (this.#served.has(name)) return true
    if (code >= 400 || this.#served.size >= servedMax) return false
    this.#served.add(name)
    return true
  }

  answer(api: ApiRequest): Response | undefined {
    if (api.path !== '/metrics') return undefined
    return text(200, this.#render(), 'text/plain; version=0.0.4; charset=utf-8')
  }

  /** A figure of all caches, those of a kind taken together. */
  #by(value: (cache: Cache) => number, together = (one: number, other: number) => one + other): Map<string, number> {
    const { kindOf = ownKind } = this.#parts
    const values = new Map<string, number>()
    for (const [interest, cache] of this.#shown.copy.caches) {
      const series = seriesOf(kindOf(interest))
      const before = values.get(series)
      values.set(series, before === undefined ? value(cache) : together(before, value(cache)))
    }
    return values
  }

  #render(): string {
    const { copy } = this.#shown
    const { figures } = this.#parts.store
    const { traffic } = this
    const one = (value: number) => [['', value] as const]
    const parts = [
      this.#requests.render('ake_requests_total', 'Requests answered.'),
      this.#passed.render('ake_passed_through_total', 'Requests that the API server answered.'),
      this.#seconds.render('ake_request_seconds', 'Time to answer, watches apart.'),
      gauge(
        'ake_objects',
        'Objects held.',
        this.#by((cache) => cache.size),
      ),
      gauge(
        'ake_object_bytes',
        'Bytes of objects held.',
        this.#by((cache) => cache.bytes),
      ),
      gauge(
        'ake_watchers',
        'Watches open.',
        this.#by((cache) => cache.watchers.size),
      ),
      gauge(
        'ake_history_window_bytes',
        'History in memory.',
        this.#by((cache) => cache.history.window.bytes),
      ),
      gauge(
        'ake_history_floor',
        'Version below which a watch is too old.',
        this.#by((cache) => cache.history.floor, Math.max),
      ),
      gauge('ake_protobuf_bytes', 'Objects kept in protobuf besides their JSON.', one(forms.bytes)),
      gauge('ake_newest_resource_version', 'Newest resourceVersion published.', one(newestOf(copy))),
      counter('ake_store_commits_total', 'Commits asked for.', one(figures.commits)),
      counter('ake_store_groups_total', 'Transactions that carried them.', one(figures.groups)),
      counter('ake_store_written_bytes_total', 'Bytes of bodies committed.', one(figures.bytesWritten)),
      counter('ake_store_failures_total', 'Transactions the disk refused.', one(figures.failures)),
      gauge('ake_store_history_bytes', 'History on disk.', one(figures.historyBytes)),
      gauge('ake_store_healthy', 'Whether the disk took the last commit.', one(copy.healthy ? 1 : 0)),
      gauge(
        'ake_store_unsealed_segments',
        'Segments that the key of --encryption-key does not seal yet.',
        figures.sealing === undefined ? [] : one(figures.sealing.left),
      ),
      gauge(
        'ake_store_scrub_ratio',
        'How much of what is stored was reread in this round of the slow scrub.',
        one(rereadShare(figures)),
      ),
      counter(
        'ake_store_scrub_damaged_total',
        'Bodies that the slow scrub found damaged since the start.',
        one(figures.scrub?.damaged ?? 0),
      ),
      counter(
        'ake_store_scrub_mended_total',
        'Those of them that were written again.',
        one(figures.scrub?.mended ?? 0),
      ),
      gauge('ake_store_lost_frames', 'Frames of the log that are lost.', one(figures.lostFrames)),
      gauge(
        'ake_damaged_objects',
        'Objects whose stored bytes are damaged.',
        this.#by((cache) => [...cache.corrupt].length),
      ),
      gauge('ake_connections', 'Connections open.', one(traffic.connections)),
      counter('ake_sent_bytes_total', 'Bytes of bodies sent.', one(traffic.bytesOut)),
      counter('ake_received_bytes_total', 'Bytes of bodies received.', one(traffic.bytesIn)),
      counter('ake_refused_total', 'Requests refused by a limit.', one(traffic.refused)),
      counter('ake_stalled_total', 'Streams ended because nobody read them.', one(traffic.stalled)),
      summary('ake_event_loop_delay_seconds', 'Delay of the event loop, over a minute or two.', this.#loop.quantiles()),
      gauge('process_start_time_seconds', 'When this process started.', one(performance.timeOrigin / 1000)),
      gauge('process_resident_memory_bytes', 'Resident memory.', one(process.memoryUsage.rss())),
    ]
    return [...parts, ...(this.#parts.more?.() ?? [])].join('')
  }
}

/** Of what lay there when the round began; 0 before the first. */
function rereadShare({ scrub }: Readonly<StoreFigures>): number {
  return scrub === undefined || scrub.of === 0 ? 0 : scrub.bytes / scrub.of
}

function newestOf({ caches }: Copy): number {
  let newest = 0
  for (const { version } of caches.values()) newest = Math.max(newest, version)
  return newest
}

/** An authority's interests are whole resources, `apps/deployments`. */
function ownKind(interest: string): MetricLabels {
  const [group = '', resource = ''] = interest.split('/')
  return { group, resource, interest: 'all' }
}
