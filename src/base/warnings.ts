/**
 * Warnings that others bring about, such as edges by what they ask for: each of them has a share of the log, so that a hostile one cannot fill the
 * disk or hide the rest. What is over it is written at debug and counted; the next line of the same party says how many were left out.
 */
import { hash } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Log, LogFields } from './log.ts'
import { Counter, seriesOf } from './metrics.ts'

type Parts = {
  readonly clock: Clock
  readonly log: Log
  /** Of which things it warns: each is counted from the start on, since an alert asks by how much a figure grew. */
  readonly kinds: readonly string[]
  readonly limits?: Partial<typeof warningLimits>
}

const warningLimits = {
  /** The same of one party: it tries again and again. */
  repeatMs: 60_000,
  /** Lines of one party at once: a thief who looks around is told of in each try. */
  burst: 30,
  /** One more after this time. */
  everyMs: 60_000,
  /** Lines of all together at once, and after that in a second: a fleet that comes back at once fills no disk either. */
  allBurst: 1_000,
  allPerSecond: 10,
  /** What is remembered of one party as told, each by a digest. */
  toldMax: 64,
  /** Parties of which that is remembered; the one that was heard of longest ago is forgotten first. */
  partiesMax: 4_096,
}

type Share = { left: number; at: number; unsaid: number; readonly told: Map<string, number> }

/** Who brought it about, which kind it is, and what is the same in it when it comes again. */
type About = { readonly who: string; readonly kind: string; readonly same: string }

export class Warnings {
  readonly #parts: Parts
  readonly #limits: typeof warningLimits
  readonly #shares = new Map<string, Share>()
  readonly #all: Pick<Share, 'left' | 'at'>
  readonly #counter = new Counter()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#limits = { ...warningLimits, ...parts.limits }
    this.#all = { left: this.#limits.allBurst, at: parts.clock.steady() }
    for (const kind of parts.kinds) this.#counter.add(seriesOf({ kind }), 0)
  }

  warn(event: string, { who, kind, same }: About, fields: LogFields): void {
    const { log } = this.#parts
    this.#counter.add(seriesOf({ kind }))
    const share = this.#shareOf(who)
    const isTold = this.#isNew(share, `${event} ${same}`) && this.#take(share)
    if (!isTold) {
      share.unsaid++
      log.debug(event, fields)
      return
    }
    log.warn(event, share.unsaid === 0 ? fields : { ...fields, unsaid: share.unsaid })
    share.unsaid = 0
  }

  figures(name: string, help: string): string[] {
    return [this.#counter.render(name, help)]
  }

  #shareOf(who: string): Share {
    const share = this.#shares.get(who) ?? {
      ...{ left: this.#limits.burst, at: this.#parts.clock.steady(), unsaid: 0 },
      told: new Map<string, number>(),
    }
    this.#shares.delete(who)
    this.#shares.set(who, share)
    if (this.#shares.size > this.#limits.partiesMax) this.#shares.delete(this.#shares.keys().next().value as string)
    return share
  }

  #isNew({ told }: Share, text: string): boolean {
    const { repeatMs, toldMax } = this.#limits
    const now = this.#parts.clock.steady()
    const key = hash('sha1', text, 'base64url')
    const before = told.get(key)
    if (before !== undefined && now - before < repeatMs) return false
    told.delete(key)
    told.set(key, now)
    if (told.size > toldMax) told.delete(told.keys().next().value as string)
    return true
  }

  /** One's own share first: what it may not say takes nothing from the others. */
  #take(share: Share): boolean {
    const { burst, everyMs, allBurst, allPerSecond } = this.#limits
    const now = this.#parts.clock.steady()
    share.left = Math.min(burst, share.left + (now - share.at) / everyMs)
    share.at = now
    this.#all.left = Math.min(allBurst, this.#all.left + ((now - this.#all.at) * allPerSecond) / 1_000)
    this.#all.at = now
    if (share.left < 1 || this.#all.left < 1) return false
    share.left--
    this.#all.left--
    return true
  }
}
