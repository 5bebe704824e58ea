/**
 * The Nodes of the cluster, as far as edges are concerned: an operator who deletes one ends the link of its name, and with it what the edge was given
 * and shown. A name without a Node is not refused: the kubelet of a new one makes it through its edge.
 */
import type { Clock } from '../../base/clock.ts'
import { parseTime } from '../../kube/table/duration.ts'
import type { LinkObject } from '../../link/session/session.ts'
import { FollowedObjects } from '../access/followed.ts'
import type { HubSources } from '../sources/sources.ts'

type Parts = {
  readonly sources: Pick<HubSources, 'open'>
  readonly clock: Clock
  /** One that was there is not any more, also where another of its name has taken its place. */
  readonly deleted: (name: string) => void
  /** All of them were read. */
  readonly read?: () => void
}

type FleetNode = { readonly uid: string; readonly madeAtMs: number }

export class FleetNodes {
  readonly #parts: Parts
  readonly #followed: FollowedObjects
  #nodes = new Map<string, FleetNode>()
  /** While all are read anew: those that were there before, until it is known whether they still are. */
  #before: Map<string, FleetNode> | undefined
  #isKnown = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#followed = new FollowedObjects({
      ...{ sources: parts.sources, clock: parts.clock, of: { group: '', version: 'v1', resource: 'nodes' } },
      put: (object) => this.#put(object),
      remove: (name) => this.#remove(name),
      clear: () => {
        this.#before ??= this.#nodes
        this.#nodes = new Map()
      },
      told: () => this.#told(),
    })
  }

  /** They were read once: whom `get` does not find has no Node. */
  get isKnown(): boolean {
    return this.#isKnown
  }

  /** While all are read anew one that was there before is taken to be still. */
  get(name: string): FleetNode | undefined {
    return this.#nodes.get(name) ?? this.#before?.get(name)
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#followed.start()
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    this.#followed.stop()
  }

  #put({ key: name, uid, bytes }: LinkObject): void {
    const known = this.#nodes.get(name)
    if (known?.uid === uid) return
    const { metadata } = JSON.parse(bytes.toString()) as { readonly metadata?: { readonly creationTimestamp?: string } }
    this.#nodes.set(name, { uid, madeAtMs: parseTime(metadata?.creationTimestamp ?? '') ?? 0 })
    if (known !== undefined) this.#parts.deleted(name)
  }

  #remove(name: string): void {
    this.#before?.delete(name)
    if (this.#nodes.delete(name)) this.#parts.deleted(name)
  }

  /** Where Nodes cannot be read now, those that were there are taken to be still. */
  #told(): void {
    if (!this.#followed.isKnown) return
    const before = this.#before ?? new Map<string, FleetNode>()
    this.#before = undefined
    for (const [name, { uid }] of before) if (this.#nodes.get(name)?.uid !== uid) this.#parts.deleted(name)
    this.#isKnown = true
    this.#parts.read?.()
  }
}
