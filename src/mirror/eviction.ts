/**
 * Which interests go and which may come, as a function of what is known of each: who asked, how long ago, what it weighs.
 * No clock, disk or network here. What several hold goes with the last of them, and each has its share of it until then (`weights`).
 *
 * The node's own (its kubelet's, what an option names) stay. The others rank among those of their caller: lists and watches
 * before names, then the more recently asked. First goes what was not asked for lately; then the last of the caller who holds
 * the most, so that a flood displaces its own. A newcomer never displaces an equal that is in use.
 */
import { type Weighed, Weights } from './weights.ts'

export type EvictionCandidate = Weighed & {
  readonly name: string
  /** Asked for by the node's own callers, or named by an option: never evicted. */
  readonly isOwn: boolean
  /** Named by an option: it comes on top of the number of interests. */
  readonly isStanding: boolean
  /** One object by its name, and never watched. */
  readonly isName: boolean
  readonly isWatched: boolean
  /** Evicted lately: it comes back for no equal that is in use, so that nothing goes to and fro. */
  readonly isBack: boolean
  /** Every caller who asked; one that several asked for ranks where it ranks highest. */
  readonly callers: readonly string[]
  readonly unaskedMs: number
  readonly askedAtMs: number
}

export type Newcomer = Pick<EvictionCandidate, 'isOwn' | 'isStanding' | 'isName' | 'isBack'> & {
  /** Of one that is here already, its name: it makes no room for itself. */
  readonly name?: string
  readonly callers: readonly string[]
}

export type BudgetLimits = {
  readonly bytesMax: number
  readonly interestsMax: number
  readonly interestsPerCallerMax: number
  /** What was not asked for during this time may go for a newcomer of equal worth. */
  readonly idleMsMin: number
}

/** One in so many of those that are left goes before all of them are ranked again: hundreds may have to go. */
const perRanking = 32

/** In what the callers' holdings are measured. */
type Measure = (held: EvictionCandidate) => number
const one: Measure = () => 1

/** What its callers hold before it, the least of them counting. */
type Ranked<H extends EvictionCandidate> = { readonly held: H; readonly before: number; readonly isIdle: boolean }

export type Admission<H extends EvictionCandidate> =
  | { readonly kind: 'admitted'; readonly evicted: readonly H[] }
  | { readonly kind: 'full'; readonly of: 'caller' | 'all' }

/** Whether there is room for one more interest, and which one goes for it. */
export function admit<H extends EvictionCandidate>(
  all: readonly H[],
  newcomer: Newcomer,
  limits: BudgetLimits,
): Admission<H> {
  if (newcomer.isStanding) return { kind: 'admitted', evicted: [] }
  const counted = all.filter(({ isStanding }) => !isStanding)
  const evicted: H[] = []
  if (!newcomer.isOwn && newcomer.callers.some((caller) => holds(counted, caller) >= limits.interestsPerCallerMax)) {
    // What another caller asked for as well is not the flooding caller's to give.
    const isSole = ({ callers }: H) => callers.length === 1 && newcomer.callers.includes(callers[0] as string)
    const victim = displaced(counted, newcomer, limits, one, 1).find(isSole)
    if (victim === undefined) return { kind: 'full', of: 'caller' }
    evicted.push(victim)
  }
  if (counted.length - evicted.length < limits.interestsMax) return { kind: 'admitted', evicted }
  const [victim] = displaced(counted, newcomer, limits, one, 1)
  return victim === undefined ? { kind: 'full', of: 'all' } : { kind: 'admitted', evicted: [victim] }
}

/** How many bytes a newcomer may bring: what is free, and what goes for so many. */
export function roomFor(
  all: readonly EvictionCandidate[],
  newcomer: Newcomer,
  limits: BudgetLimits,
  heldBytes: number,
): number {
  const weights = new Weights()
  const before = holdsBefore(all, newcomer, weights.shareOf)
  let room = limits.bytesMax - heldBytes
  const giving = leavingOrder(without(all, newcomer), limits, weights.shareOf)
    .map((ranked) => ({ atMost: mayComeFor(ranked, newcomer, before), held: ranked.held }))
    .sort((a, b) => (a.atMost === b.atMost ? 0 : b.atMost - a.atMost))
  for (const { atMost, held } of giving) if (atMost > room) room = Math.min(atMost, room + weights.end(held))
  return Math.max(0, room)
}

/**
 * What goes because all of it together weighs too much: for a newcomer what was to go for it or, where that is not enough,
 * itself. It goes on until the rest fits, if anything can bring that about; what others hold all of then stays.
 */
export function overweight<H extends EvictionCandidate>(
  all: readonly H[],
  limits: BudgetLimits,
  heldBytes: number,
  newcomer?: H,
): H[] {
  const weights = new Weights()
  const evicted = new Set<H>()
  let excess = heldBytes - limits.bytesMax
  if (excess <= 0) return []
  const end = (held: H) => {
    evicted.add(held)
    excess -= weights.end(held)
  }
  const holding = all.filter(({ bytes, shared }) => bytes > 0 || shared.length > 0)
  for (const held of firstFor(holding, newcomer, limits, excess)) if (excess > 0) end(held)
  while (excess > 0) {
    const left = holding.filter((held) => !evicted.has(held))
    const order = leavingOrder(left, limits, weights.shareOf)
    if (order.length === 0) break
    // What goes leaves its share to those who hold the same.
    for (const { held } of order.slice(0, Math.ceil(order.length / perRanking))) if (excess > 0) end(held)
  }
  for (const held of [...evicted].reverse()) {
    if (weights.broughtBy(held) > 0) continue
    weights.keep(held)
    evicted.delete(held)
  }
  return [...evicted]
}

function firstFor<H extends EvictionCandidate>(
  all: readonly H[],
  newcomer: H | undefined,
  limits: BudgetLimits,
  excess: number,
): readonly H[] {
  if (newcomer === undefined) return []
  // As it was when its room was promised.
  const before = new Weights()
  const brought = before.end(newcomer)
  const first = displaced(all, newcomer, limits, before.shareOf, brought)
  const weights = new Weights()
  const isEnough = first.reduce((sum, held) => sum + weights.end(held), 0) >= excess
  return isEnough || newcomer.isOwn ? first : [newcomer]
}

/** Those that go for a newcomer of this size, the first to go first. */
function displaced<H extends EvictionCandidate>(
  all: readonly H[],
  newcomer: Newcomer,
  limits: BudgetLimits,
  measure: Measure,
  size: number,
): H[] {
  const before = holdsBefore(all, newcomer, measure)
  return leavingOrder(without(all, newcomer), limits, measure)
    .filter((ranked) => mayComeFor(ranked, newcomer, before) >= size)
    .map(({ held }) => held)
}

/**
 * How large a newcomer may be that this one goes for. Of callers in use the one who gives holds no less than the one who gets,
 * even afterwards: what has gone does not come back for what came.
 */
function mayComeFor(
  { held, before, isIdle }: Ranked<EvictionCandidate>,
  newcomer: Newcomer,
  newcomersBefore: number,
): number {
  if (newcomer.isOwn) return Number.POSITIVE_INFINITY
  if (newcomer.isName && !held.isName) return 0
  if (isIdle) return Number.POSITIVE_INFINITY
  if (held.isName && !newcomer.isName && before >= newcomersBefore) return Number.POSITIVE_INFINITY
  return newcomer.isBack ? 0 : before - newcomersBefore
}

/** What its caller has of at least its worth: it comes behind that. */
function holdsBefore(all: readonly EvictionCandidate[], newcomer: Newcomer, measure: Measure): number {
  const worthier = without(all, newcomer).filter(({ isName }) => newcomer.isName || !isName)
  return Math.min(...newcomer.callers.map((caller) => holds(worthier, caller, measure)), Number.POSITIVE_INFINITY)
}

function without<H extends EvictionCandidate>(all: readonly H[], { name }: Newcomer): readonly H[] {
  return name === undefined ? all : all.filter((held) => held.name !== name)
}

/** What may go at all, the first to go first. */
function leavingOrder<H extends EvictionCandidate>(
  all: readonly H[],
  { idleMsMin }: BudgetLimits,
  measure: Measure,
): Ranked<H>[] {
  const holding = new Map<string, number>()
  const ranked: Ranked<H>[] = []
  for (const held of all.filter(({ isOwn }) => !isOwn).sort(byWorth)) {
    const callers = held.callers.length === 0 ? [''] : held.callers
    ranked.push({
      held,
      before: Math.min(...callers.map((caller) => holding.get(caller) ?? 0)),
      isIdle: !held.isWatched && held.unaskedMs >= idleMsMin,
    })
    for (const caller of callers) holding.set(caller, (holding.get(caller) ?? 0) + measure(held))
  }
  return ranked.sort((a, b) => {
    if (a.isIdle !== b.isIdle) return a.isIdle ? -1 : 1
    return (a.isIdle ? 0 : b.before - a.before) || byWorth(b.held, a.held)
  })
}

/** The worthier first. */
function byWorth(a: EvictionCandidate, b: EvictionCandidate): number {
  if (a.isName !== b.isName) return a.isName ? 1 : -1
  if (a.isWatched !== b.isWatched) return a.isWatched ? -1 : 1
  return a.unaskedMs - b.unaskedMs || b.askedAtMs - a.askedAtMs || (a.name < b.name ? -1 : 1)
}

function holds(all: readonly EvictionCandidate[], caller: string, measure: Measure = one): number {
  let sum = 0
  for (const held of all) if (!held.isOwn && held.callers.includes(caller)) sum += measure(held)
  return sum
}
