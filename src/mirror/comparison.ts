/**
 * Compares at leisure what the copy holds with what the API server has, by key, uid and version: whatever was missed without
 * a sign of it, here or on the way, is found, told, counted and healed by a list. Each interest has its turn; the pace is set
 * by what the line is spent on it, and most days it finds nothing.
 */
import { type Clock, sleep } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Cache } from '../cache/cache.ts'
import type { CloudState } from '../cache/cloudstate.ts'
import { isSame } from '../cache/differ.ts'
import type { Item } from '../cache/item.ts'
import { Busy, Expired, type Identities } from '../upstream/follow/follow.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { MirroredInterest } from './mirrored.ts'

/** What all comparisons of an edge may take of the line in a day, where nothing else is said: some 50,000 objects, unnoticed on the weakest one. */
const standardBytesPerDayMax = 5_000_000
const dayMs = 86_400_000
/** The first one after a start, and the next one where there is nothing to compare, comes this much later, with jitter. */
const idleMs = 60_000
/** Looked at one by one in each part: a part that was read a while ago knows what was deleted since, which is little. */
const unclearMax = 20
/** Parts that bring nothing new, in one comparison: kube-apiserver sends none, so more of them is a list without an end. */
const idlePartsMax = 10
/** How long the copy may take to come as far as what it was compared with. */
const reachMsMax = 150_000

/** An interest as far as a comparison is concerned. */
type Compared = Pick<MirroredInterest, 'interest' | 'fed' | 'readable' | 'state' | 'identities' | 'differs'>

type Parts = {
  readonly all: () => Iterable<Compared>
  readonly reachability: Reachability
  readonly clock: Clock
  readonly log: Log
  readonly random?: () => number
  readonly bytesPerDayMax?: number | undefined
}

export class Comparison {
  readonly #parts: Parts
  readonly #random: () => number
  readonly #bytesPerDayMax: number
  /** Those of this round that still wait for their turn. */
  #left: Compared[] = []
  /** Objects that were found to differ without a sign, since the start. */
  found = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#random = parts.random ?? Math.random
    this.#bytesPerDayMax = parts.bytesPerDayMax ?? standardBytesPerDayMax
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, reachability, log } = this.#parts
    while (!signal.aborted) {
      const mirrored = reachability.state === 'reachable' ? this.#next() : undefined
      if (mirrored !== undefined) {
        await this.#compare(mirrored, signal).catch((error: Error) => {
          // An outage or a refusal: the reflector meets it too, and the next round comes by here again.
          if (!signal.aborted) log.debug('mirror.uncompared', { interest: mirrored.interest.name, why: error.message })
        })
      }
      await sleep(clock, mirrored === undefined ? idleMs * (0.5 + this.#random()) : this.#pauseMs(0), signal)
    }
  }

  /** In another order each round: what is always interrupted must not always be the same. */
  #next(): Compared | undefined {
    while (this.#left.length > 0) {
      const [mirrored] = this.#left.splice(Math.floor(this.#random() * this.#left.length), 1)
      if (mirrored !== undefined && isComparable(mirrored)) return mirrored
    }
    this.#left = [...this.#parts.all()].filter(isComparable)
    return undefined
  }

  async #compare(mirrored: Compared, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts
    const { readable } = mirrored
    if (readable === undefined) return
    const { cloud } = readable
    let part = ''
    let after = ''
    let furthest = ''
    let idleParts = 0
    do {
      const found = await identitiesOf(mirrored, part, signal)
      const suspects = suspectsOf(cloud, found, after)
      if (await this.#differs(readable, suspects, found.version)) return mirrored.differs()
      await sleep(clock, this.#pauseMs(found.bytes), signal)
      const { unclear } = suspects
      for (let at = 0; at < Math.min(unclear.length, unclearMax) && !signal.aborted; at++) {
        const one = await mirrored.identities({ key: unclear[at] as string }, signal)
        const again = suspectsOf({ version: cloud.version, peek: (key) => cloud.peek(key), all: () => [] }, one, '')
        if (await this.#differs(readable, again, one.version)) return mirrored.differs()
        await sleep(clock, this.#pauseMs(one.bytes), signal)
      }
      part = found.next
      // The others wait for their turn: it is given up until the next round.
      if (!found.entries.some(({ key }) => key > furthest) && part !== '' && ++idleParts > idlePartsMax)
        throw new Busy(`a list of which ${idleParts} parts bring nothing new`, 0)
      for (const { key } of found.entries) if (key > furthest) furthest = key
      after = found.entries.at(-1)?.key ?? after
    } while (part !== '' && !signal.aborted && mirrored.readable === readable)
  }

  #pauseMs(bytes: number): number {
    return (bytes * dayMs) / this.#bytesPerDayMax
  }

  /** Whether something was missed; `version` is that of what the copy was compared with. */
  async #differs({ interest, cloud }: Cache, { differing }: Suspects, version: number): Promise<boolean> {
    const { clock, log } = this.#parts
    if (differing.size === 0 || !(await cloud.progress.reach(version, reachMsMax, clock))) return false
    // What happened between the two has been told by now: what still stands as it did was missed.
    const [first, ...more] = [...differing].filter(([key, item]) => cloud.peek(key) === item)
    if (first === undefined) return false
    this.found += 1 + more.length
    log.error('mirror.differs', { interest, objects: 1 + more.length, first: first[0] })
    return true
  }
}

/** A part that is too old by the time it is asked for is followed by the one the API server offers instead. */
async function identitiesOf(mirrored: Compared, part: string, signal: AbortSignal): Promise<Identities> {
  try {
    return await mirrored.identities({ part }, signal)
  } catch (error) {
    if (error instanceof Expired && error.continueToken !== '')
      return mirrored.identities({ part: error.continueToken }, signal)
    throw error
  }
}

/** A fed one holds what its wider one does. */
function isComparable({ fed, readable, state }: Compared): boolean {
  return !fed && state.kind === 'synced' && readable?.isDamaged === false
}

/** By key, with what was held under it: what is otherwise at the API server, though it may only be under way. */
type Suspects = {
  readonly differing: ReadonlyMap<string, Item | undefined>
  /** Not held by a copy that is ahead of the part, and may have seen them go. */
  readonly unclear: readonly string[]
}

/** The part holds everything behind `after` up to its last key, or to the end. */
export function suspectsOf(
  held: Pick<CloudState, 'version' | 'peek' | 'all'>,
  { version, entries, next }: Identities,
  after: string,
): Suspects {
  const differing = new Map<string, Item | undefined>()
  const unclear: string[] = []
  const keys = new Set<string>()
  let last = after
  let isOrdered = true
  for (const { key, uid, version: at } of entries) {
    keys.add(key)
    if (key <= last) isOrdered = false
    last = key
    const item = held.peek(key)
    if (item === undefined && held.version > version) unclear.push(key)
    // An object that is newer than the part was changed since.
    else if (item === undefined || (item.version <= version && !isSame(item, uid, at))) differing.set(key, item)
  }
  // Without order nothing tells what is missing.
  for (const item of isOrdered ? held.all() : []) {
    if (item.key <= after || (next !== '' && item.key > last) || keys.has(item.key)) continue
    if (item.version <= version) differing.set(item.key, item)
  }
  return { differing, unclear }
}
