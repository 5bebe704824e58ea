/**
 * The way to a hub that may be at several addresses: tried in turn, from the one that was last good, then a wait that grows. A
 * hub that asks to be left alone is; the others are asked meanwhile.
 */
import { type Backoff, backoff } from '../../base/backoff.ts'
import { Bell } from '../../base/bell.ts'
import type { Log } from '../../base/log.ts'
import type { LinkSocket } from '../../link/socket/linksocket.ts'
import type { HubCredential } from '../../pki/credentialfile.ts'
import { type ForwardProxy, type ProxyVariables, proxyFor } from '../proxychoice.ts'
import { reasonOf } from '../reason.ts'
import { dialHub, type HubDialParts, type HubPeer, HubRefusal } from './hubdial.ts'
import { HubTicketPouch } from './tickets.ts'

type Parts = Omit<HubDialParts, 'address' | 'credential' | 'proxy' | 'tickets' | 'signal'> & {
  /** It may be renewed meanwhile. */
  readonly credential: { readonly current: HubCredential }
  /** At least one. */
  readonly addresses: readonly URL[]
  readonly environment?: ProxyVariables
  readonly log: Log
  readonly wait?: { readonly firstMs: number; readonly maxMs: number }
}

/**
 * The first is short, since most cuts are; but all edges of a hub that ends come back within it. The last counts toward the time after which
 * the cluster gives up a node; those that come together wait in the line of the hub's handshakes.
 */
const standardWait = { firstMs: 1_000, maxMs: 20_000 }

export class Hubs {
  readonly #parts: Parts
  #tickets = new HubTicketPouch()
  /** Of the certificate that was shown when they were given out: an edge resumes a session under the certificate with which it began. */
  #ticketsOf = ''
  readonly #backoff: Backoff
  /** Rings where there is nothing more to wait for. */
  readonly #hurried: Bell
  readonly #proxies: ReadonlyMap<string, ForwardProxy | undefined>
  /** By address, when each may be asked again, by the steady clock. */
  readonly #notBefore = new Map<string, number>()
  #current = 0
  #isFirst = true

  /** Throws a sentence for a variable that names no proxy. */
  constructor(parts: Parts) {
    const { addresses, environment } = parts
    this.#parts = parts
    this.#proxies = new Map(addresses.map((address) => [address.href, proxyFor(address, { environment })]))
    this.#backoff = backoff(parts.wait ?? standardWait)
    this.#hurried = new Bell(parts.clock)
  }

  /** Resolves with a link, however long that takes; undefined at the signal. */
  async connect(signal: AbortSignal): Promise<LinkSocket<HubPeer> | undefined> {
    const { addresses } = this.#parts
    while (!signal.aborted) {
      // Nor at once after a link was lost: every edge of that hub has just lost it.
      if (!this.#isFirst) await this.#hurried.wait(signal, this.#backoff.next())
      this.#isFirst = false
      for (let tried = 0; tried < addresses.length && !signal.aborted; tried++) {
        const link = await this.#try(addresses[this.#current] as URL, signal)
        if (link !== undefined) {
          // What hurried it is fulfilled: the wait after the end of this link is no shorter for it.
          this.#hurried.still()
          return link
        }
        this.#current = (this.#current + 1) % addresses.length
      }
    }
    return undefined
  }

  /** Beside a link that there is: the hub of that is tried once, at once. Undefined: it gives none now. */
  beside(signal: AbortSignal): Promise<LinkSocket<HubPeer> | undefined> {
    return this.#try(this.#parts.addresses[this.#current] as URL, signal)
  }

  /** The link was of use: the next wait is the first again. A hub that takes links and drops them does not get there. */
  lived(): void {
    this.#backoff.reset()
  }

  /** This hub asks its edges to move: the next one is tried first. */
  moveOn(): void {
    this.#current = (this.#current + 1) % this.#parts.addresses.length
  }

  /** What answers at this address asks for that; the others may be tried meanwhile. */
  leaveAlone(address: string, ms: number): void {
    this.#notBefore.set(address, this.#parts.clock.steady() + ms)
  }

  /** What it was left alone for is no reason any more: it is tried at once. */
  hurry(address: string): void {
    this.#notBefore.delete(address)
    this.#backoff.reset()
    this.#hurried.ring()
  }

  async #try(address: URL, signal: AbortSignal): Promise<LinkSocket<HubPeer> | undefined> {
    const { clock, log } = this.#parts
    if ((this.#notBefore.get(address.href) ?? 0) > clock.steady()) return undefined
    try {
      const proxy = this.#proxies.get(address.href)
      const credential = this.#parts.credential.current
      const { fingerprint256 } = credential.certificate
      if (fingerprint256 !== this.#ticketsOf) this.#tickets = new HubTicketPouch()
      this.#ticketsOf = fingerprint256
      return await dialHub({ ...this.#parts, credential, address, proxy, tickets: this.#tickets, signal })
    } catch (error) {
      if (signal.aborted) return undefined
      const isRefusal = error instanceof HubRefusal
      if (isRefusal) this.leaveAlone(address.href, error.retryAfterMs)
      log.info('hub.unreached', { address: address.href, why: isRefusal ? error.message : reasonOf(error) })
      return undefined
    }
  }
}
