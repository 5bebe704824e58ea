/**
 * The line between an edge and its API server, as a TCP proxy on loopback that can be cut in every way lines are cut in the
 * field: refused, reset, silent, silent in one direction, slow. It counts what goes over it.
 */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { type Clock, systemClock } from '../src/base/clock.ts'
import { Flow, type Pace } from './flow.ts'
import { freePorts } from './ports.ts'

/** Of one direction, shared by all connections as a real line is. */
export type Line = { readonly bytesPerSecond?: number; readonly delayMs?: number }

/** `up` is from the client to the server, `down` the other direction. */
export type Mode =
  | { readonly kind: 'up' }
  /** Nobody listens; what was open ends in order (`fin`, the default) or is destroyed. */
  | { readonly kind: 'refuse'; readonly end?: 'fin' | 'destroy' }
  /** What is open and what comes is answered by RST. */
  | { readonly kind: 'reset' }
  /** Connections are taken and stay silent, also those that were open. With `resume` they go on when the hole heals, as
   * TCP does; without it (a NAT that forgot them) they stay silent for good. */
  | { readonly kind: 'blackhole'; readonly resume?: boolean }
  /** Only the direction `lost` (`down` unless told) is silent. */
  | { readonly kind: 'halfopen'; readonly lost?: 'up' | 'down'; readonly resume?: boolean }
  | { readonly kind: 'slow'; readonly up?: Line; readonly down?: Line }

/** `connections` were taken; `open` are open now, the silent ones included. */
export type Stats = {
  readonly connections: number
  readonly open: number
  readonly bytesUp: number
  readonly bytesDown: number
}

export type Link = {
  readonly url: string
  readonly port: number
  readonly mode: Mode
  /** Resolves when the mode holds for every connection. */
  set(mode: Mode | Mode['kind']): Promise<void>
  /** Another server stands at its end for whatever connects from here on: of several, each in turn. */
  lead(...targets: Target[]): void
  stats(): Stats
  resetStats(): void
  close(): Promise<void>
}

type Paces = { readonly up?: Pace; readonly down?: Pace }

/** How long an orderly end may take before it becomes a disorderly one. */
const finMsMax = 1_000

export type Target = { readonly host: string; readonly port: number }

type Options = {
  readonly target: Target
  /** Loopback unless told. */
  readonly host?: string
  /** Unless told, one that stays free while nobody listens on it. */
  readonly port?: number
  readonly clock?: Clock
}

export async function startLink(options: Options): Promise<Link> {
  const { target, host = '127.0.0.1', port: wanted, clock = systemClock } = options
  const port = wanted ?? (await freePorts(1))[0]!
  const pairs = new Set<Pair>()
  let targets = [target]
  const counted = { connections: 0, bytesUp: 0, bytesDown: 0 }
  let mode: Mode = { kind: 'up' }
  let paces: Paces = {}
  let server: Server | undefined

  const take = (client: Socket) => {
    counted.connections++
    if (mode.kind === 'reset') {
      client.on('error', () => {}).resetAndDestroy()
      return
    }
    const pair = new Pair({
      client,
      target: targets[counted.connections % targets.length] as Target,
      clock,
      countUp: (bytes) => (counted.bytesUp += bytes),
      countDown: (bytes) => (counted.bytesDown += bytes),
      gone: () => pairs.delete(pair),
    })
    pairs.add(pair)
    pair.apply(mode, paces)
  }
  const listen = async () => {
    if (server !== undefined) return
    server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, take)
    await once(server.listen(port, host), 'listening')
  }
  const endListening = async () => {
    const ended = server === undefined ? undefined : once(server, 'close')
    server?.close()
    server = undefined
    return ended
  }

  await listen()
  return {
    url: `https://${host}:${port}`,
    port,
    get mode() {
      return mode
    },
    async set(wish) {
      const before = mode
      mode = typeof wish === 'string' ? { kind: wish } : wish
      paces = mode.kind === 'slow' ? { up: paceOf(mode.up ?? {}, clock), down: paceOf(mode.down ?? {}, clock) } : {}
      const over = mode.kind === 'refuse' ? endListening() : undefined
      for (const pair of pairs) {
        if (isForGood(before)) pair.forget()
        pair.apply(mode, paces)
      }
      // The server is closed when its last connection is: those that end in order may still take a moment.
      if (mode.kind !== 'refuse') await listen()
      else if (mode.end === 'destroy') await over
    },
    lead: (...next) => {
      targets = next
    },
    stats: () => ({ ...counted, open: pairs.size }),
    resetStats: () => {
      counted.connections = counted.bytesUp = counted.bytesDown = 0
    },
    close: async () => {
      const over = endListening()
      for (const pair of pairs) pair.destroy()
      await over
    },
  }
}

function isForGood(mode: Mode): boolean {
  return (mode.kind === 'blackhole' || mode.kind === 'halfopen') && mode.resume !== true
}

/** Pieces leave one after the other at the line's rate, then travel for the delay. */
function paceOf({ bytesPerSecond = Number.POSITIVE_INFINITY, delayMs = 0 }: Line, clock: Clock): Pace {
  let busyUntilMs = 0
  return (bytes) => {
    busyUntilMs = Math.max(busyUntilMs, clock.steady()) + (bytes * 1_000) / bytesPerSecond
    return busyUntilMs + delayMs
  }
}

type PairParts = {
  readonly client: Socket
  readonly target: Options['target']
  readonly clock: Clock
  readonly countUp: (bytes: number) => void
  readonly countDown: (bytes: number) => void
  readonly gone: () => void
}

/** A client's connection and, from the first moment it may speak, the one to the server that belongs to it. */
class Pair {
  readonly #parts: PairParts
  #server: Socket | undefined
  #up: Flow | undefined
  #down: Flow | undefined
  /** What happens to the server's connection is not told to the client across a silent line. */
  #downSilent = false
  #forGood = false
  #cancelTimer: (() => void) | undefined

  constructor(parts: PairParts) {
    this.#parts = parts
    parts.client.on('error', () => {}).on('close', () => this.#clientClosed())
  }

  apply(mode: Mode, paces: Paces): void {
    if (mode.kind === 'refuse') this.#end(mode.end ?? 'fin')
    else if (mode.kind === 'reset') this.#reset()
    else if (this.#forGood) return
    else if (mode.kind === 'blackhole') this.#carry({ up: false, down: false, paces })
    else {
      this.#open()
      const lost = mode.kind === 'halfopen' ? (mode.lost ?? 'down') : undefined
      this.#carry({ up: lost !== 'up', down: lost !== 'down', paces })
    }
  }

  /** The line healed, but it does not know this connection any more. */
  forget(): void {
    this.#forGood = true
    this.#loseAll()
    // A client that gave up is the only thing still to wait for.
    if (this.#parts.client.readableEnded) this.destroy()
    else this.#parts.client.on('end', () => this.destroy())
  }

  destroy(): void {
    this.#parts.client.destroy()
  }

  #open(): void {
    if (this.#server !== undefined) return
    const { client, target, clock, countUp, countDown } = this.#parts
    const server = connect({ ...target, allowHalfOpen: true, noDelay: true })
    this.#server = server
    server.on('error', () => {}).on('close', () => this.#serverClosed())
    this.#up = new Flow({ from: client, to: server, clock, count: countUp })
    this.#down = new Flow({ from: server, to: client, clock, count: countDown })
  }

  #carry({ up, down, paces }: { up: boolean; down: boolean; paces: Paces }): void {
    this.#downSilent = !down
    if (up) this.#up?.open(paces.up)
    else this.#up?.hold()
    if (down) this.#down?.open(paces.down)
    else this.#down?.hold()
    if (this.#server?.destroyed) this.#serverClosed()
  }

  #end(how: 'fin' | 'destroy'): void {
    if (how === 'destroy' || this.#forGood) {
      this.destroy()
      return
    }
    this.#loseAll()
    this.#parts.client.end()
    this.#server?.end()
    this.#cancelTimer ??= this.#parts.clock.setTimer(finMsMax, () => this.destroy())
  }

  #reset(): void {
    this.#server?.resetAndDestroy()
    this.#parts.client.resetAndDestroy()
  }

  #loseAll(): void {
    this.#up?.lose()
    this.#down?.lose()
    this.#parts.client.resume()
  }

  /** A client that is gone needs its pair no more, whatever its server was told before. */
  #clientClosed(): void {
    this.#cancelTimer?.()
    this.#up?.stop()
    this.#down?.stop()
    this.#server?.destroy()
    this.#parts.gone()
  }

  #serverClosed(): void {
    const { client } = this.#parts
    if (this.#downSilent || this.#forGood || client.destroyed) return
    // RST unless all was sent and ended: nobody can tell how much of it was lost.
    if (client.writableEnded) client.destroySoon()
    else client.resetAndDestroy()
  }
}
