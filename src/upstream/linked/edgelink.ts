/**
 * The edge's way to its hubs over time: one link after the other, each as `livelink.ts` drives it, with waits in between that
 * grow until a hub has welcomed it. What is followed over a link ends with that, and is asked for again over the next.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import type { Hubs } from './hubs.ts'
import { type LinkWire, LiveLink } from './livelink.ts'

type HubsOfLink = Pick<Hubs, 'lived' | 'moveOn' | 'leaveAlone'> & {
  connect(signal: AbortSignal): Promise<LinkWire | undefined>
}

type Parts = {
  readonly hubs: HubsOfLink
  /** As the hub's certificate for it says. */
  readonly edge: string
  readonly release: string
  /** The cluster that the copy is of and the epoch that it has come to, as they are when a link begins; '' where no epoch is known. */
  readonly known: () => { readonly cluster: string; readonly epoch: number }
  /** Whether the hub at that address is one of the copy's cluster; a sentence says why not. */
  readonly admit: (seen: { readonly address: string; readonly cluster: string }) => Promise<string | undefined>
  readonly clock: Clock
  readonly log: Log
  readonly random?: () => number
}

export class EdgeLink {
  readonly #parts: Parts
  readonly #listeners = new Set<() => void>()
  #current: LiveLink | undefined
  #why = 'no hub was reached yet'
  #address = ''
  #keepaliveMs = sessionLimits.keepaliveMsMax
  /** The last hub is of another cluster: which, the next one is asked without saying whose copy this is. */
  #isEstranged = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The link that there is, once its hub has welcomed it. */
  get current(): LiveLink | undefined {
    return this.#current?.isOpen === true ? this.#current : undefined
  }

  /** Why there is none. */
  get why(): string {
    return this.#why
  }

  /** Of the hub that it leads to, or did. */
  get address(): string {
    return this.#address
  }

  /** Hears that there is a link, or none any more; answers how to stop hearing. */
  observe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { hubs } = this.#parts
    while (!signal.aborted) {
      const wire = await hubs.connect(signal)
      if (wire !== undefined) await this.#live(wire, signal)
    }
  }

  async #live(wire: LinkWire, signal: AbortSignal): Promise<void> {
    const { edge, release, clock, log, hubs, known } = this.#parts
    const { address } = wire.peer
    this.#address = address
    let cancelMove = () => {}
    const link: LiveLink = new LiveLink({
      ...{ wire, edge, release, clock, log, keepaliveMs: this.#keepaliveMs },
      ...(this.#isEstranged ? stranger : known()),
      accept: refuseStream,
      welcomed: (welcomed) => void this.#welcomed(welcomed),
      asked: (withinMs) => {
        cancelMove()
        cancelMove = this.#move(link, withinMs)
      },
    })
    const leave = () => link.leave('the edge ends')
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
    const { why, reason, retryAfterMs, keepaliveMs } = await link.ended
    signal.removeEventListener('abort', leave)
    cancelMove()
    if (reason === 'cluster') this.#isEstranged = true
    this.#keepaliveMs = keepaliveMs
    this.#why = why
    this.#current = undefined
    if (retryAfterMs > 0) hubs.leaveAlone(address, retryAfterMs)
    log.info('link.ended', { hub: address, why })
    this.#tell()
  }

  async #welcomed(link: LiveLink): Promise<void> {
    const { hubs, log, admit } = this.#parts
    const address = this.#address
    const why = await admit({ address, cluster: link.welcome?.cluster ?? '' })
    if (why !== undefined) {
      hubs.leaveAlone(address, strangeRetryMs)
      link.leave(why)
      return
    }
    this.#isEstranged = false
    if (!link.isOpen) return
    hubs.lived()
    this.#current = link
    log.info('link.welcomed', { hub: this.#address, name: link.welcome?.hub ?? '' })
    this.#tell()
  }

  /** In the first half of its time, and not all edges at once. */
  #move(link: LiveLink, withinMs: number): () => void {
    const { hubs, clock, log, random = Math.random } = this.#parts
    hubs.moveOn()
    log.info('link.moves', { hub: this.#address, withinMs })
    return clock.setTimer((random() * withinMs) / 2, () => link.leave('it moves to another hub'))
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

const stranger = { cluster: '', epoch: 0 }

/** A hub of another cluster is looked at so often: it may be what the edge is to belong to from now on. */
const strangeRetryMs = 10_000

/** A hub opens nothing yet. */
function refuseStream({ stream }: IncomingStream): void {
  stream.giveUp('unknown', 'nothing is opened at this edge')
}
