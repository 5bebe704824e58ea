/**
 * The edge's way to its hubs over time: one link after the other, each as `livelink.ts` drives it, with waits in between that
 * grow until a hub has welcomed it. What is followed over a link ends with that, and is asked for again over the next.
 */
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { sessionLimits } from '../../link/session/limits.ts'
import type { LinkTerms } from '../../link/session/session.ts'
import type { IncomingStream } from '../../tunnel/streams.ts'
import type { Hubs } from './hubs.ts'
import { isIdle } from './idle.ts'
import { type LinkWire, LiveLink } from './livelink.ts'

type HubsOfLink = Pick<Hubs, 'lived' | 'moveOn' | 'leaveAlone' | 'hurry'> & {
  connect(signal: AbortSignal): Promise<LinkWire | undefined>
  beside?(signal: AbortSignal): Promise<LinkWire | undefined>
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
  /** What policies say of this edge, from a hub of the copy's cluster: at each link, and whenever it changes. */
  readonly terms?: (terms: LinkTerms) => void
  readonly clock: Clock
  readonly log: Log
  readonly random?: () => number
}

export class EdgeLink {
  readonly #parts: Parts
  readonly #listeners = new Set<() => void>()
  readonly #signListeners = new Set<() => void>()
  /** The lives of links that were made beside others: one goes on as the link that there is once that before has ended. */
  readonly #besideLives = new Set<Promise<void>>()
  /** One at a time. */
  #isHandingOver = false
  #current: LiveLink | undefined
  #why = 'no hub was reached yet'
  #address = ''
  #keepaliveMs = sessionLimits.keepaliveMsMax
  /** The last hub is of another cluster: which, the next one is asked without saying whose copy this is. */
  #isEstranged = false
  /** Addresses of hubs that were left alone for being of another cluster than the copy. */
  readonly #strange = new Set<string>()

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

  /** Hears what the hub says of its documents; answers how to stop hearing. */
  observeSigns(listener: () => void): () => void {
    this.#signListeners.add(listener)
    return () => void this.#signListeners.delete(listener)
  }

  /** The copy is of another cluster from here on, so that hubs of that need not be left alone: nothing is held until one of them is asked. */
  reconsider(): void {
    for (const address of this.#strange) this.#parts.hubs.hurry(address)
    this.#strange.clear()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { hubs } = this.#parts
    while (!signal.aborted) {
      if (this.#besideLives.size > 0) {
        await Promise.all(this.#besideLives)
        continue
      }
      const wire = await hubs.connect(signal)
      if (wire !== undefined) await this.#live(wire, signal)
    }
  }

  /**
   * Makes another link, with the credential as it is now, and leaves the one there is once that is welcomed and what runs over this has ended: so
   * nothing that is asked meanwhile finds none. False: it did not come about, and all is as it was.
   */
  async handOver(signal: AbortSignal): Promise<boolean> {
    if (this.#isHandingOver) return false
    this.#isHandingOver = true
    const before = this.#current
    const done = () => {
      this.#isHandingOver = false
    }
    const wire = await this.#parts.hubs.beside?.(signal)
    if (wire === undefined || before === undefined || before !== this.#current) {
      wire?.close('done', 'it is not needed any more')
      done()
      return false
    }
    const life = this.#live(wire, signal).finally(() => this.#besideLives.delete(life))
    this.#besideLives.add(life)
    // It is over when one of both has ended: the edge has moved, or the other did not come about.
    void Promise.race([before.ended, life]).then(done)
    return true
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
      termsTold: (of) => this.#tellTerms(of),
      signed: () => this.#toldSigns(),
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
    // Where another is in use what became of this one says nothing of the hub.
    if (this.#current === undefined || this.#current === link) {
      if (reason === 'cluster') this.#isEstranged = true
      this.#keepaliveMs = keepaliveMs
      this.#why = why
      this.#current = undefined
      if (retryAfterMs > 0) hubs.leaveAlone(address, retryAfterMs)
    }
    log.info('link.ended', { hub: address, why })
    this.#tell()
  }

  async #welcomed(link: LiveLink): Promise<void> {
    const { hubs, log, admit, clock } = this.#parts
    const address = this.#address
    const why = await admit({ address, cluster: link.welcome?.cluster ?? '' })
    if (why !== undefined) {
      hubs.leaveAlone(address, strangeRetryMs)
      this.#strange.add(address)
      link.leave(why)
      return
    }
    this.#isEstranged = false
    this.#strange.delete(address)
    if (!link.isOpen) return
    hubs.lived()
    const before = this.#current
    this.#current = link
    if (before !== undefined && before !== link) this.#leaveIdle(before, clock.steady() + besideMsMax)
    this.#tellTerms(link)
    log.info('link.welcomed', { hub: this.#address, name: link.welcome?.hub ?? '' })
    this.#tell()
  }

  /** What it was asked before it was replaced is answered, within the time. */
  #leaveIdle(link: LiveLink, endsAt: number): void {
    const { clock } = this.#parts
    if (isIdle(link) || clock.steady() >= endsAt) link.leave('another link is in its place')
    else clock.setTimer(besideLookMs, () => this.#leaveIdle(link, endsAt))
  }

  /** In the first half of its time, and not all edges at once. */
  #move(link: LiveLink, withinMs: number): () => void {
    const { hubs, clock, log, random = Math.random } = this.#parts
    hubs.moveOn()
    log.info('link.moves', { hub: this.#address, withinMs })
    return clock.setTimer((random() * withinMs) / 2, () => link.leave('it moves to another hub'))
  }

  /** One that is not taken for a hub of this cluster yet says nothing that counts. */
  #tellTerms(link: LiveLink): void {
    if (link === this.#current && link.terms !== undefined) this.#parts.terms?.(link.terms)
  }

  #toldSigns(): void {
    for (const listener of this.#signListeners) listener()
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** A hub closes a link that was replaced by one with a newer certificate after 5 s. */
const besideMsMax = 3_000
const besideLookMs = 20

const stranger = { cluster: '', epoch: 0 }

/** A hub of another cluster is looked at so often: it may be what the edge is to belong to from now on. */
const strangeRetryMs = 10_000

/** A hub opens nothing yet. */
function refuseStream({ stream }: IncomingStream): void {
  stream.giveUp('unknown', 'nothing is opened at this edge')
}
