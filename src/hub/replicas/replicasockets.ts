/**
 * Lines between replicas, over the sockets on which edges arrive: WebSocket over TLS 1.3, where both show a certificate of the hubs'
 * own authority that no edge is ever given. Each dials all others that the Service of the hubs has; what else answers there is left.
 */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:tls'
import { WebSocket } from 'ws'
import { type Clock, sleep } from '../../base/clock.ts'
import { reasonOf } from '../../base/fault.ts'
import type { Log } from '../../base/log.ts'
import { webSocketOptions } from '../../link/socket/limits.ts'
import type { EdgePeer } from '../sockets/edgepeer.ts'
import { replicaPath } from '../sockets/replicapeer.ts'
import { authoritiesOf } from '../state/authorities.ts'
import { replicaPair } from '../state/certificates.ts'
import type { HubState } from '../state/state.ts'
import { decodeMessage, encodeMessage } from './messages.ts'
import { type HeldName, type ReplacedEnd, Replicas } from './replicas.ts'

/** As the Service has it. */
export type ReplicaAddress = { readonly host: string; readonly port: number }

type Parts = {
  readonly hub: string
  readonly state: () => HubState
  /** Of all replicas, this one included. */
  readonly addresses: () => readonly ReplicaAddress[]
  /** The link of this edge is replaced by one at another replica. */
  readonly replaced: (edge: EdgePeer, ending: ReplacedEnd) => void
  readonly clock: Clock
  readonly log: Log
}

type LineSocket = { readonly socket: WebSocket; number: number; heardAt: number }

const tickMs = 1_000
const dialEveryMs = 5_000
const dialMsMax = 5_000
/** A line that says nothing for so long is dead: pings come this often by thirds. */
const silentMsMax = 15_000
/** Replicas that there may be: each has a line to each. */
const linesMax = 32
/** What answers there is no other replica: it is looked at again after this. */
const leftMs = 300_000
/** What a replica that does not read may have waiting: all names that a hub can hold. */
const heldBytesMax = 16 * 1024 * 1024

export class ReplicaSockets {
  readonly #parts: Parts
  readonly #replicas: Replicas
  readonly #lines = new Map<number, LineSocket>()
  /** By link number. */
  readonly #edges = new Map<number, EdgePeer>()
  readonly #links = new Map<EdgePeer, number>()
  /** By address: what is dialled, or was left until when. */
  readonly #dialled = new Map<string, WebSocket>()
  readonly #leftUntil = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#replicas = new Replicas({ id: randomUUID(), hub: parts.hub })
  }

  /** The edges that the others hold. */
  get others(): readonly { readonly hub: string; readonly names: readonly HeldName[] }[] {
    return this.#replicas.others
  }

  /** Whether another replica holds an edge of that name. */
  holdsElsewhere(name: string): boolean {
    return this.#replicas.holdsElsewhere(name)
  }

  came(edge: EdgePeer): void {
    const { name, certificate, from } = edge
    const link = this.#replicas.came({ name, from, issuedAtMs: certificate.issuedAtMs }, this.#parts.clock.steady())
    this.#edges.set(link, edge)
    this.#links.set(edge, link)
    this.#act()
  }

  gone(edge: EdgePeer): void {
    const link = this.#links.get(edge)
    if (link === undefined) return
    this.#links.delete(edge)
    this.#edges.delete(link)
    this.#replicas.left(edge.name, link)
    this.#act()
  }

  /** Another replica has dialled, and has shown who it is. */
  accept(socket: WebSocket): void {
    if (this.#lines.size >= linesMax) socket.terminate()
    else this.#begin(socket, false)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    for (let at = Number.NEGATIVE_INFINITY; !signal.aborted; await sleep(clock, tickMs, signal)) {
      this.#replicas.tick(clock.steady())
      this.#act()
      this.#cutSilent()
      if (clock.steady() - at < dialEveryMs) continue
      at = clock.steady()
      for (const address of this.#parts.addresses().slice(0, linesMax)) this.#dial(address)
    }
    for (const { socket } of this.#lines.values()) socket.terminate()
    for (const socket of this.#dialled.values()) socket.terminate()
  }

  #dial({ host, port }: ReplicaAddress): void {
    const { clock, state, log } = this.#parts
    const at = `${host.includes(':') ? `[${host}]` : host}:${port}`
    if (this.#dialled.has(at) || (this.#leftUntil.get(at) ?? 0) > clock.steady()) return
    // By its authority, and not by its name: replicas come and go with their addresses.
    const secured = {
      ...replicaPair(state(), clock.now()),
      ca: authoritiesOf(state()).map(({ pem }) => pem),
      checkServerIdentity: () => undefined,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
    } as const
    const socket = new WebSocket(`wss://${at}${replicaPath}`, {
      ...webSocketOptions,
      handshakeTimeout: dialMsMax,
      createConnection: () => connect({ ...secured, ALPNProtocols: [...secured.ALPNProtocols], host, port }),
    })
    this.#dialled.set(at, socket)
    let why = ''
    socket.on('error', (error) => {
      why = reasonOf(error)
    })
    socket.once('open', () => {
      log.debug('replica.line', { at })
      this.#begin(socket, true, () => this.#leftUntil.set(at, clock.steady() + leftMs))
    })
    socket.once('close', () => {
      this.#dialled.delete(at)
      if (why !== '') log.debug('replica.unreached', { at, why })
    })
  }

  #begin(socket: WebSocket, isAsking: boolean, left: () => void = () => undefined): void {
    const { clock, log } = this.#parts
    const number = this.#replicas.joined(isAsking)
    const line = { socket, number, heardAt: clock.steady() }
    this.#lines.set(number, line)
    const heard = () => {
      line.heardAt = clock.steady()
    }
    socket.on('error', () => undefined)
    socket.on('ping', heard)
    socket.on('pong', heard)
    socket.on('message', (data, isBinary) => {
      heard()
      const message = isBinary ? undefined : decodeMessage((data as Buffer).toString())
      if (message === undefined) {
        log.warn('replica.fault', { why: 'it says what no replica says' })
        left()
        socket.terminate()
        return
      }
      this.#replicas.receive(number, message, clock.steady())
      this.#act(left)
    })
    socket.once('close', () => {
      this.#lines.delete(number)
      this.#replicas.lost(number)
    })
    this.#act(left)
  }

  #act(left: () => void = () => undefined): void {
    for (const effect of this.#replicas.effects()) {
      if (effect.effect === 'send') this.#send(effect.to, encodeMessage(effect.message))
      else if (effect.effect === 'end') this.#end(effect.link, effect)
      else {
        this.#parts.log.debug('replica.left', { why: effect.why })
        left()
        this.#lines.get(effect.line)?.socket.terminate()
      }
    }
  }

  #send(to: number, text: string): void {
    const socket = this.#lines.get(to)?.socket
    if (socket === undefined) return
    if (socket.bufferedAmount > heldBytesMax) socket.terminate()
    else socket.send(text)
  }

  #end(link: number, ending: ReplacedEnd): void {
    const edge = this.#edges.get(link)
    if (edge !== undefined) this.#parts.replaced(edge, ending)
  }

  #cutSilent(): void {
    const now = this.#parts.clock.steady()
    for (const { socket, heardAt } of this.#lines.values()) {
      if (now - heardAt > silentMsMax) socket.terminate()
      else if (now - heardAt > silentMsMax / 3) socket.ping()
    }
  }
}
