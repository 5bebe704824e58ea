/**
 * Something scarce, divided among the callers that ask for it: places for lists, memory for bodies. There is no fixed number for
 * each, since how many will come is not known: a caller that holds less than what is still free may take more. A greedy one
 * ends up with half of it, the next with half of the rest, and the caller that comes then finds something, too.
 */
import type { Peer, Request } from './endpoint.ts'
import { type Holder, strangers } from './holder.ts'

/** Who it is that shows no certificate: a name that is the same for all that one caller asks for. */
export interface Whose {
  /** As far as that is known without asking. */
  held(request: Request): string | undefined
  /** Asks the API server, as long as a read may wait. */
  ask(request: Request): Promise<string | undefined>
}

/** The caller that a connection's certificate names. */
export function certified({ certificate }: Peer): Holder | undefined {
  if (certificate === undefined) return undefined
  const { issuedBy, name, organizations } = certificate
  return { standing: issuedBy === 'own' ? 'own' : 'known', name: `certificate ${name} ${organizations.join(' ')}` }
}

/** Out of whose share a request lives. */
export function holderOf({ holder, peer }: Request): Holder {
  return holder?.() ?? certified(peer) ?? strangers
}

/** Strangers have a ninth of everything, all together: a new caller gets through, and a crowd of them takes nothing else. */
const strangersDivisor = 8
/** What only the machine's administrator may take: one part of so many. */
const reserveDivisor = 16

/** Up to here a URL goes with its request's one place. */
const plainUrlCharacters = 1_024
/** What is kept of a selector while its request or watch goes on, for each character of the URL: `!ab1,` takes some 240. */
const keptBytesPerCharacter = 50

/** How many places a request takes where each stands for so many bytes: a selector may be as long as a URL. */
export function placesOf(url: string, placeBytes: number): number {
  const characters = url.length - plainUrlCharacters
  return characters <= 0 ? 1 : 1 + Math.ceil((characters * keptBytesPerCharacter) / placeBytes)
}

/** Holders that are remembered while they hold nothing: most come again at once, and forgetting them costs more than they do. */
const idleMax = 64

export class Shares {
  readonly #max: number
  readonly #held = new Map<string, number>()
  #taken = 0

  constructor(max: number) {
    this.#max = max
  }

  /** False, and nothing is taken, where that would be more than its holder's share. */
  take(holder: Holder, amount = 1): boolean {
    const held = this.#held.get(holder.name) ?? 0
    if (held + amount > this.#shareOf(holder)) return false
    this.#held.set(holder.name, held + amount)
    this.#taken += amount
    return true
  }

  /** Back, by the same holder. */
  give({ name }: Holder, amount = 1): void {
    const left = (this.#held.get(name) ?? 0) - amount
    if (left > 0 || this.#held.size <= idleMax) this.#held.set(name, left)
    else this.#held.delete(name)
    this.#taken -= amount
  }

  #shareOf({ standing }: Holder): number {
    const free = this.#max - this.#taken
    if (standing === 'own') return free
    if (standing === 'known') return free - Math.floor(this.#max / reserveDivisor)
    return Math.floor(free / strangersDivisor)
  }
}
