/**
 * Connections on their way to a link, from the first byte of TCP on. A handshake costs the hub more than anything an edge does
 * later, so it is begun in its turn: those that show a ticket have a line of their own, and who finds a line too long gets
 * TLS's internal_error, which an edge takes for "later". Of those that say nothing the oldest goes when there are too many.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { Admission } from './admission.ts'
import { type HelloKind, helloKind } from './clienthello.ts'
import type { HubSocketLimits } from './limits.ts'

type Parts = {
  readonly clock: Clock
  readonly limits: HubSocketLimits
  /** It is its turn: TLS may begin. */
  readonly begin: (socket: Socket) => void
}

type Arrival = {
  readonly socket: Socket
  kind: HelloKind
  leaveLine: () => void
  readonly cancelTimer: () => void
}

/** A fatal alert of TLS 1.2 form, as before any version is agreed on: internal_error, "unrelated to the peer". */
const busyAlert = Buffer.of(21, 3, 3, 0, 2, 2, 80)

export class Arrivals {
  readonly #parts: Parts
  readonly #full: Admission
  readonly #resumed: Admission
  /** By the other end's address, which the TLS socket over it has as well. */
  readonly #all = new Map<string, Arrival>()
  readonly #silent = new Set<Arrival>()
  /** Told to come back, since it was made. */
  turnedAway = 0

  constructor(parts: Parts) {
    this.#parts = parts
    const { fullPerSecond, resumedPerSecond, lineMsMax } = parts.limits
    this.#full = new Admission({ perSecond: fullPerSecond, lineMsMax, clock: parts.clock })
    this.#resumed = new Admission({ perSecond: resumedPerSecond, lineMsMax, clock: parts.clock })
  }

  get size(): number {
    return this.#all.size
  }

  get waiting(): number {
    return this.#full.waiting + this.#resumed.waiting
  }

  add(socket: Socket): void {
    const { clock, limits } = this.#parts
    socket.on('error', () => {})
    if (this.#all.size >= limits.arrivalsMax) {
      const [oldest] = this.#silent
      if (oldest === undefined) return void socket.destroy()
      oldest.socket.destroy()
    }
    const cancelTimer = clock.setTimer(limits.arrivalMsMax, () => socket.destroy())
    const arrival: Arrival = { socket, kind: 'part', leaveLine: () => {}, cancelTimer }
    const key = keyOf(socket)
    this.#all.set(key, arrival)
    this.#silent.add(arrival)
    socket.once('close', () => this.#over(key, arrival))
    this.#listen(arrival)
  }

  /** TLS is there; `resumed` as it turned out. */
  secured(socket: Socket, resumed: boolean): void {
    const arrival = this.#all.get(keyOf(socket))
    if (arrival?.kind === 'resuming' && !resumed) this.#full.charge()
  }

  /** It is a link from now on, and its time does not count any more. */
  arrived(socket: Socket): void {
    const key = keyOf(socket)
    const arrival = this.#all.get(key)
    if (arrival !== undefined) this.#over(key, arrival)
  }

  end(): void {
    for (const { socket } of this.#all.values()) socket.destroy()
  }

  /** Read until its turn, also in line: so it is heard that an edge has given up. */
  #listen(arrival: Arrival): void {
    const { socket } = arrival
    let bytes: Buffer = Buffer.alloc(0)
    const begin = () => {
      socket.off('readable', look)
      // TLS reads it from there.
      socket.unshift(bytes)
      this.#parts.begin(socket)
    }
    const look = () => {
      const chunk = socket.read() as Buffer | null
      if (chunk === null) return
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
      if (arrival.kind !== 'part') return void socket.destroy() // a client has no more to say before it is answered
      arrival.kind = helloKind(bytes)
      if (arrival.kind === 'other') socket.destroy()
      else if (arrival.kind !== 'part') this.#enter(arrival, begin)
    }
    socket.on('readable', look)
  }

  #enter(arrival: Arrival, begin: () => void): void {
    this.#silent.delete(arrival)
    const line = arrival.kind === 'resuming' ? this.#resumed : this.#full
    const leave = line.enter(begin)
    if (leave !== undefined) arrival.leaveLine = leave
    else this.#turnAway(arrival.socket)
  }

  #turnAway(socket: Socket): void {
    this.turnedAway++
    socket.end(busyAlert)
    this.#parts.clock.setTimer(this.#parts.limits.lastWordsMsMax, () => socket.destroy())
  }

  #over(key: string, arrival: Arrival): void {
    arrival.cancelTimer()
    arrival.leaveLine()
    this.#silent.delete(arrival)
    if (this.#all.get(key) === arrival) this.#all.delete(key)
  }
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
