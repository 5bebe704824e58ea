/**
 * One mirror after the other, each as long as its cluster is the one that is believed in. To clients they are one server:
 * what is asked while one gives way to the next waits a moment, and is answered by neither half.
 */
import { within } from '../access/within.ts'
import { systemClock } from '../base/clock.ts'
import { reasonOf } from '../base/fault.ts'
import type { Request, Response } from '../endpoint/endpoint.ts'
import type { Endpoint } from '../endpoint/request/pipeline.ts'
import type { Cluster } from '../mirror/cluster.ts'
import type { ClusterGate } from '../mirror/clustergate.ts'
import { type AroundCluster, type ClusterMirror, type ClusterParts, openMirror } from './clustermirror.ts'

/** As long as a read may wait for the cloud: a disk may be slow to let go of the old copy, and it goes on meanwhile. */
const changingMsMax = 2_000
/** The probe that found the other cluster may be under way still: the one after it finds the way open. */
const probesAfter = 2

type Parts = Omit<ClusterParts, 'lost'> & { readonly gate: ClusterGate; readonly around: AroundCluster }

type Running = { readonly signal: AbortSignal; readonly drained: AbortSignal }

export class Mirrors {
  readonly #parts: Parts
  #mirror: ClusterMirror
  #endpoint: Endpoint
  #changing: Promise<void> | undefined

  constructor(parts: Parts, first: ClusterMirror) {
    this.#parts = parts
    this.#mirror = first
    this.#endpoint = first.serve(parts.around)
  }

  get current(): ClusterMirror {
    return this.#mirror
  }

  handle(request: Request): Promise<Response> {
    return this.#changing === undefined ? this.#endpoint.handle(request) : this.#handleLater(request, this.#changing)
  }

  async #handleLater(request: Request, changing: Promise<void>): Promise<Response> {
    await within(systemClock, changingMsMax, changing, () => {})
    return await this.#endpoint.handle(request)
  }

  upgrade(request: Request): ReturnType<Endpoint['upgrade']> {
    return this.#endpoint.upgrade(request)
  }

  async run({ signal, drained }: Running): Promise<void> {
    const ending: Promise<void>[] = []
    let over: AbortController
    do {
      over = new AbortController()
      const running = this.#mirror.run({
        ended: AbortSignal.any([signal, over.signal]),
        drained: AbortSignal.any([drained, over.signal]),
      })
      ending.push(running)
      await this.#untilChanged(running, over)
    } while (over.signal.aborted)
    await Promise.all(ending)
  }

  /** Until the mirror has given way to another, or has ended. */
  async #untilChanged(running: Promise<void>, over: AbortController): Promise<void> {
    while (!over.signal.aborted) {
      const cluster = await Promise.race([this.#parts.gate.another(), running])
      if (cluster === undefined) return
      const change = this.#change(cluster, over)
      this.#changing = change.catch(() => {})
      await change
      this.#changing = undefined
    }
  }

  /** Where the disk refuses, the old copy is served on, as while the cloud is away. */
  async #change(cluster: Cluster, over: AbortController): Promise<void> {
    const { gate, around, log, line } = this.#parts
    const lost = this.#mirror.newest()
    const fields = { from: gate.known?.uid ?? '', to: cluster.uid, lost }
    try {
      await this.#mirror.drop(gate.recordOf(cluster, lost))
    } catch (error) {
      log.error('cluster.unchanged', { ...fields, why: reasonOf(error) })
      gate.declined()
      return
    }
    log.warn('cluster.changed', fields)
    over.abort()
    this.#mirror = await openMirror({ ...this.#parts, lost })
    this.#endpoint = this.#mirror.serve(around)
    gate.adopted(cluster, lost)
    line.reconsider?.()
    for (let probes = 0; probes < probesAfter && !(await line.upstream.reachability.probe()); probes++);
  }
}
