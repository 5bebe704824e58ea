/**
 * The rules of single callers, as a hub tells them: what a caller may do where the edge does not mirror the roles of the whole cluster. They lie
 * on disk too, so that questions that were never asked are judged without the cloud after a restart as before it. What is
 * told replaces what was known; a caller of whom no more is told keeps what was told last. Whether that allows anything without the
 * cloud depends on its standing: only rules whose changes were heard of up to the cut do.
 */
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
import type { Reachability } from '../upstream/upstream.ts'
import type { RulesOfCallers } from './evaluation.ts'
import { evictOldest } from './evict.ts'
import type { Rbac } from './rbac/rbac.ts'
import { readSubjectRules, subjectKey } from './rbac/subjectrules.ts'
import type { WriteBehind } from './writebehind.ts'

export const rulesKind = 'rules'

/** More callers than a node has, those of the past month included. */
const callersMax = 256
/** Of all rules together: 30 KB of each, and some with very many. Those used longest ago go. */
const bytesMax = 8 * 1024 * 1024
/** A caller that has not been seen for this long is not expected back without its cloud. */
const keptMs = 30 * 86_400_000
/**
 * Within this time the edge knows whether a hub that hears of no changes has lost the API server, or its watches alone: it takes the
 * link 30 s to doubt such a hub, up to 30 s to its next probe, and a probe.
 */
const doubtMsMax = 90_000

/**
 * `current`: changes were heard of for as long as the API server could be asked. `doubted`: the hub says that it hears of none, and it is not
 * known yet whether the API server is away. `past`: they may have changed unheard.
 */
type RulesStanding = 'current' | 'doubted' | 'past'

/** What has become of the stream over which a caller's rules are told; `ended`: its link was there still, or is again. */
type RulesNews = 'heard' | 'unheard' | 'ended' | 'cut'

type KnownSubject = {
  readonly text: string
  /** Of the caller's rules, made when it is first judged by. */
  rbac: Rbac | undefined
  isBroken: boolean
  /** How to tell when they were last known to be current. */
  heardAt: () => number
  usedAt: number
  standing: RulesStanding
  cancelDoubt: () => void
}

type RulesListener = {
  /** The rules of a caller have become other ones. */
  readonly changed: () => void
  /** Those of a caller are heard of from now on. */
  readonly current: () => void
}

type RuledCaller = Pick<Caller, 'name' | 'groups'>

type Parts = {
  readonly clock: Clock
  readonly behind: WriteBehind
  readonly reachability: Pick<Reachability, 'state' | 'observe'>
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
}

const never = () => Number.NEGATIVE_INFINITY

export class KnownRules implements RulesOfCallers {
  readonly #parts: Parts
  readonly #subjects = new Map<string, KnownSubject>()
  readonly #keys = new WeakMap<Caller, string>()
  readonly #listeners = new Set<RulesListener>()
  #bytes = 0

  constructor(parts: Parts) {
    this.#parts = parts
    const { clock, behind, stored } = parts
    const marks = new Set(stored.map(({ key }) => key).filter((key) => key.startsWith(markPrefix)))
    for (const { key, value } of stored) {
      if (key.startsWith(markPrefix)) continue
      const isMarked = marks.delete(markOf(key))
      const kept = readKept(value)
      // What was current at the cut is of a caller that was seen then, however long ago its rules changed last.
      const isKept = kept !== undefined && (isMarked || clock.now() - kept.at <= keptMs)
      if (isKept) this.#hold(key, kept.rules, never, isMarked ? 'current' : 'past')
      else this.#makeRoomOf(key)
    }
    for (const mark of marks) behind.put(rulesKind, mark, undefined)
    this.#makeRoom()
  }

  get size(): number {
    return this.#subjects.size
  }

  observe(listener: RulesListener): void {
    this.#listeners.add(listener)
  }

  /** Until the signal: whatever is not heard of while the API server can be asked is of the past from then on. */
  async run(signal: AbortSignal): Promise<void> {
    const { reachability } = this.#parts
    this.#look()
    const deaf = reachability.observe(() => this.#look())
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    deaf()
    for (const { cancelDoubt } of this.#subjects.values()) cancelDoubt()
  }

  of(caller: Caller): Rbac | undefined {
    const known = this.#find(caller)
    if (known === undefined || known.isBroken) return undefined
    known.usedAt = this.#parts.clock.steady()
    known.rbac ??= readSubjectRules(known.text)
    known.isBroken = known.rbac === undefined
    return known.rbac
  }

  heardAt(caller: Caller): number {
    return this.#find(caller)?.heardAt() ?? Number.NEGATIVE_INFINITY
  }

  isPast(caller: Caller): boolean {
    return this.#find(caller)?.standing === 'past'
  }

  /** What a hub tells; undefined: nothing is told of this caller, and what was does not count any more. */
  told(caller: RuledCaller, text: string | undefined, heardAt: () => number): void {
    const key = subjectKey(caller)
    const before = this.#subjects.get(key)
    if (before !== undefined && before.text === text) {
      before.heardAt = heardAt
      if (isLive(before)) this.#stand(key, before, 'current')
      return
    }
    if (text === undefined) this.#drop(key)
    else {
      before?.cancelDoubt()
      const known = this.#hold(key, text, heardAt, before?.standing ?? 'past')
      this.#write(key, text, before !== undefined)
      // Others than those that were current at the cut, from a hub that hears of no changes: the edge cannot tell which are newer.
      this.#stand(key, known, isLive(known) ? 'current' : 'past')
      this.#makeRoom()
    }
    if (before !== undefined || text !== undefined) for (const { changed } of this.#listeners) changed()
  }

  /** Resolves once it is written that they do not count as current any more, where they do not. */
  async stands(caller: RuledCaller, news: RulesNews): Promise<void> {
    const key = subjectKey(caller)
    const known = this.#subjects.get(key)
    if (known === undefined) return
    const { state } = this.#parts.reachability
    const isDoubted = known.standing === 'doubted'
    if (isLive(known)) this.#stand(key, known, 'current')
    else if (news === 'unheard' && known.standing === 'current' && state !== 'unreachable') this.#doubt(key, known)
    else if (isDoubted && news !== 'unheard') this.#stand(key, known, 'past')
    // What ends while the API server is away was current up to the cut all the same; `#look` sees to it when that is back.
    else if (news === 'ended' && state === 'reachable') this.#stand(key, known, 'past')
    if (known.standing !== 'current') await this.#parts.behind.flush()
  }

  #look(): void {
    if (this.#parts.reachability.state !== 'reachable') return
    for (const [key, known] of this.#subjects) if (!isLive(known)) this.#stand(key, known, 'past')
  }

  /** On the disk it is not current meanwhile: a crash must not settle it. */
  #doubt(key: string, known: KnownSubject): void {
    const { clock, reachability } = this.#parts
    this.#stand(key, known, 'doubted')
    known.cancelDoubt = clock.setTimer(doubtMsMax, () => {
      // Away by now: the hub stopped hearing because the API server went, and what it had told was current then.
      this.#stand(key, known, reachability.state === 'unreachable' ? 'current' : 'past')
    })
  }

  /** That they are current may be written a moment later; that they are not goes to the disk at once. */
  #stand(key: string, known: KnownSubject, standing: RulesStanding): void {
    const { behind } = this.#parts
    const before = known.standing
    if (before === standing) return
    known.standing = standing
    known.cancelDoubt()
    known.cancelDoubt = () => {}
    if (standing === 'current') {
      behind.put(rulesKind, markOf(key), mark)
      for (const { current } of this.#listeners) current()
    } else if (before === 'current') behind.remove(rulesKind, markOf(key))
  }

  #find(caller: Caller): KnownSubject | undefined {
    if (this.#subjects.size === 0) return undefined
    const key = this.#keys.get(caller) ?? subjectKey(caller)
    this.#keys.set(caller, key)
    return this.#subjects.get(key)
  }

  #hold(key: string, text: string, heardAt: () => number, standing: RulesStanding): KnownSubject {
    this.#bytes += text.length - (this.#subjects.get(key)?.text.length ?? 0)
    const usedAt = this.#parts.clock.steady()
    const known = { text, rbac: undefined, isBroken: false, heardAt, usedAt, standing, cancelDoubt: () => {} }
    this.#subjects.set(key, known)
    return known
  }

  /** What was withdrawn must not count again after a crash: rules that were replaced go to the disk at once. */
  #write(key: string, text: string, isReplaced: boolean): void {
    const { clock, behind } = this.#parts
    const value = Buffer.from(JSON.stringify({ at: clock.now(), rules: text }))
    if (isReplaced) behind.replace(rulesKind, key, value)
    else {
      behind.put(rulesKind, key, value)
      void behind.flush()
    }
  }

  #drop(key: string): void {
    const known = this.#subjects.get(key)
    if (known === undefined) return
    known.cancelDoubt()
    this.#bytes -= known.text.length
    this.#subjects.delete(key)
    this.#parts.behind.remove(rulesKind, key)
    this.#parts.behind.remove(rulesKind, markOf(key))
  }

  #makeRoom(): void {
    evictOldest(this.#subjects, callersMax, (key, { text, cancelDoubt }) => {
      cancelDoubt()
      this.#bytes -= text.length
      this.#makeRoomOf(key)
    })
    while (this.#bytes > bytesMax) {
      const [oldest] = [...this.#subjects].sort(([, a], [, b]) => a.usedAt - b.usedAt)
      if (oldest === undefined) return
      this.#drop(oldest[0])
    }
  }

  /** With its mark: what is told of that caller later must not find one. */
  #makeRoomOf(key: string): void {
    for (const one of [key, markOf(key)]) this.#parts.behind.put(rulesKind, one, undefined)
  }
}

function isLive({ heardAt }: KnownSubject): boolean {
  return heardAt() !== Number.NEGATIVE_INFINITY
}

/**
 * That rules are current is a record beside theirs, of the same kind, which makes no rules: an older ake, which would not take it
 * away in time, drops it when it starts.
 */
const markPrefix = 'current '
const markOf = (key: string) => `${markPrefix}${key}`
const mark = Buffer.from('{"current":true}')

function readKept(value: Buffer): { readonly at: number; readonly rules: string } | undefined {
  try {
    const { at, rules } = JSON.parse(value.toString('utf8')) as { at?: unknown; rules?: unknown }
    return typeof at === 'number' && typeof rules === 'string' ? { at, rules } : undefined
  } catch {
    return undefined
  }
}
