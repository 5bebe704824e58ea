/**
 * Connections on their way to a link, from the first byte of TCP on. A handshake costs the hub more than anything an edge does
 * later, so it is begun in its turn: those that show a ticket have a line of their own, and an edge that finds a line too long gets
 * TLS's internal_error, which an edge takes for "later". Of those that say nothing the oldest goes when there are too many. In lines and among
 * the silent ones the source that has the most gives way first (`sourceshares.ts`).
 */
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { type HelloKind, helloKind } from './clienthello.ts'
import { HandshakeLine } from './handshakeline.ts'
import type { HubSocketLimits } from './limits.ts'
import { SourceShares, sourceOf } from './sourceshares.ts'
import { TicketTrust } from './tickettrust.ts'

type Parts = {
  readonly clock: Clock
  readonly limits: HubSocketLimits
  /** It is its turn: TLS may begin. */
  readonly begin: (socket: Socket) => void
}

type ArrivingSocket = {
  readonly socket: Socket
  readonly source: string
  kind: HelloKind
  /** It has begun by a ticket, at the rate of those, and whether that is worth anything is not known yet. */
  isOnTrial: boolean
  leaveLine: () => void
  readonly cancelTimer: () => void
}

/** A fatal alert of TLS 1.2 form, as before any version is agreed on: internal_error, "unrelated to the peer". */
const busyAlert = Buffer.of(21, 3, 3, 0, 2, 2, 80)

export class Arrivals {
  readonly #parts: Parts
  readonly #full: HandshakeLine
  readonly #resumed: HandshakeLine
  /** By the other end's address, which the TLS socket over it has as well. */
  readonly #all = new Map<string, ArrivingSocket>()
  readonly #silent = new SourceShares<ArrivingSocket>()
  readonly #tickets: TicketTrust
  /** Told to come back, since it was made. */
  turnedAway = 0

  constructor(parts: Parts) {
    this.#parts = parts
    const { fullPerSecond, resumedPerSecond, lineMsMax } = parts.limits
    this.#tickets = new TicketTrust(parts.clock, parts.limits)
    this.#full = new HandshakeLine({ perSecond: fullPerSecond, lineMsMax, clock: parts.clock })
    this.#resumed = new HandshakeLine({ perSecond: resumedPerSecond, lineMsMax, clock: parts.clock })
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
      const [oldest] = this.#silent.largest()
      if (oldest === undefined) return void socket.destroy()
      // At once: it closes a moment later, and the next newcomer must find another.
      this.#silent.delete(oldest)
      oldest.socket.destroy()
    }
    const cancelTimer = clock.setTimer(limits.arrivalMsMax, () => socket.destroy())
    const source = sourceOf(socket.remoteAddress)
    const newcomer: ArrivingSocket = {
      ...{ socket, source, kind: 'part', isOnTrial: false },
      leaveLine: () => {},
      cancelTimer,
    }
    const key = keyOf(socket)
    this.#all.set(key, newcomer)
    this.#silent.add(newcomer)
    socket.once('close', () => this.#over(key, newcomer))
    this.#listen(newcomer)
  }

  /** TLS is there; `resumed` as it turned out. */
  secured(socket: Socket, resumed: boolean): void {
    const newcomer = this.#all.get(keyOf(socket))
    if (newcomer === undefined) return
    if (newcomer.isOnTrial && !resumed) this.#full.charge()
    this.#tried(newcomer, resumed)
  }

  /** It is a link from now on, and its time does not count any more. */
  arrived(socket: Socket): void {
    const key = keyOf(socket)
    const newcomer = this.#all.get(key)
    if (newcomer !== undefined) this.#over(key, newcomer)
  }

  end(): void {
    for (const { socket } of this.#all.values()) socket.destroy()
  }

  /** Read until its turn, also in line: so it is heard that an edge has given up. */
  #listen(newcomer: ArrivingSocket): void {
    const { socket } = newcomer
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
      if (newcomer.kind !== 'part') return void socket.destroy() // a client has no more to say before it is answered
      newcomer.kind = helloKind(bytes)
      if (newcomer.kind === 'other') socket.destroy()
      else if (newcomer.kind !== 'part') this.#enter(newcomer, begin)
    }
    socket.on('readable', look)
  }

  #enter(newcomer: ArrivingSocket, begin: () => void): void {
    this.#silent.delete(newcomer)
    const { source, kind } = newcomer
    const inFull = () => this.#waitIn(this.#full, newcomer, begin)
    const tried = () => {
      newcomer.isOnTrial = true
      this.#tickets.begin(source)
      begin()
    }
    if (kind !== 'resuming' || !this.#tickets.trusts(source)) inFull()
    // Others of its source may have been found out when its turn comes.
    else this.#waitIn(this.#resumed, newcomer, () => (this.#tickets.trusts(source) ? tried() : inFull()))
  }

  #waitIn(line: HandshakeLine, newcomer: ArrivingSocket, go: () => void): void {
    const { source, socket } = newcomer
    let isOver = false
    const leave = line.enter({
      source,
      go: () => {
        isOver = true
        go()
      },
      away: () => this.#turnAway(socket),
    })
    // Its turn may have come, and led it into the other line.
    if (!isOver) newcomer.leaveLine = leave
  }

  /** A ticket whose client did not wait for the answer counts against its source, too. */
  #tried(newcomer: ArrivingSocket, resumed: boolean): void {
    if (!newcomer.isOnTrial) return
    newcomer.isOnTrial = false
    this.#tickets.end(newcomer.source, resumed)
  }

  #turnAway(socket: Socket): void {
    this.turnedAway++
    socket.end(busyAlert)
    this.#parts.clock.setTimer(this.#parts.limits.lastWordsMsMax, () => socket.destroy())
  }

  #over(key: string, newcomer: ArrivingSocket): void {
    newcomer.cancelTimer()
    newcomer.leaveLine()
    this.#tried(newcomer, false)
    this.#silent.delete(newcomer)
    if (this.#all.get(key) === newcomer) this.#all.delete(key)
  }
}

function keyOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
