/**
 * The rules of single callers, as a hub tells them: what a caller may do where the edge does not mirror the roles of the whole cluster. They lie
 * on disk too, so that questions that were never asked are judged without the cloud after a restart as before it. What is
 * told replaces what was known; a caller of whom no more is told keeps what was told last, as roles that are mirrored would be kept.
 */
import type { Clock } from '../base/clock.ts'
import type { Caller } from '../kube/caller.ts'
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

type KnownSubject = {
  readonly text: string
  /** Of the caller's rules, made when it is first judged by. */
  rbac: Rbac | undefined
  isBroken: boolean
  /** How to tell when they were last known to be current. */
  heardAt: () => number
  usedAt: number
}

type Parts = {
  readonly clock: Clock
  readonly behind: WriteBehind
  readonly stored: readonly { readonly key: string; readonly value: Buffer }[]
}

const never = () => Number.NEGATIVE_INFINITY

export class KnownRules implements RulesOfCallers {
  readonly #parts: Parts
  readonly #subjects = new Map<string, KnownSubject>()
  readonly #keys = new WeakMap<Caller, string>()
  readonly #listeners = new Set<() => void>()
  #bytes = 0

  constructor(parts: Parts) {
    this.#parts = parts
    const { clock, behind, stored } = parts
    for (const { key, value } of stored) {
      const kept = readKept(value)
      if (kept === undefined || clock.now() - kept.at > keptMs) behind.put(rulesKind, key, undefined)
      else this.#hold(key, kept.rules, never)
    }
    this.#makeRoom()
  }

  get size(): number {
    return this.#subjects.size
  }

  /** Hears that the rules of a caller have become other ones. */
  observe(changed: () => void): void {
    this.#listeners.add(changed)
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

  /** What a hub tells; undefined: nothing is told of this caller, and what was does not count any more. */
  told(caller: Pick<Caller, 'name' | 'groups'>, text: string | undefined, heardAt: () => number): void {
    const key = subjectKey(caller)
    const before = this.#subjects.get(key)
    if (before !== undefined && before.text === text) {
      before.heardAt = heardAt
      return
    }
    if (text === undefined) this.#drop(key)
    else {
      this.#hold(key, text, heardAt)
      this.#write(key, text)
      this.#makeRoom()
    }
    if (before !== undefined || text !== undefined) for (const changed of this.#listeners) changed()
  }

  #find(caller: Caller): KnownSubject | undefined {
    if (this.#subjects.size === 0) return undefined
    const key = this.#keys.get(caller) ?? subjectKey(caller)
    this.#keys.set(caller, key)
    return this.#subjects.get(key)
  }

  #hold(key: string, text: string, heardAt: () => number): void {
    this.#bytes += text.length - (this.#subjects.get(key)?.text.length ?? 0)
    this.#subjects.set(key, { text, rbac: undefined, isBroken: false, heardAt, usedAt: this.#parts.clock.steady() })
  }

  /** What was withdrawn must not count again after a crash: rules that were replaced go to the disk at once. */
  #write(key: string, text: string): void {
    const value = Buffer.from(JSON.stringify({ at: this.#parts.clock.now(), rules: text }))
    this.#parts.behind.put(rulesKind, key, value)
    void this.#parts.behind.flush()
  }

  #drop(key: string): void {
    const known = this.#subjects.get(key)
    if (known === undefined) return
    this.#bytes -= known.text.length
    this.#subjects.delete(key)
    this.#parts.behind.remove(rulesKind, key)
  }

  #makeRoom(): void {
    evictOldest(this.#subjects, callersMax, (key, { text }) => {
      this.#bytes -= text.length
      this.#parts.behind.put(rulesKind, key, undefined)
    })
    while (this.#bytes > bytesMax) {
      const [oldest] = [...this.#subjects].sort(([, a], [, b]) => a.usedAt - b.usedAt)
      if (oldest === undefined) return
      this.#drop(oldest[0])
    }
  }
}

function readKept(value: Buffer): { readonly at: number; readonly rules: string } | undefined {
  try {
    const { at, rules } = JSON.parse(value.toString('utf8')) as { at?: unknown; rules?: unknown }
    return typeof at === 'number' && typeof rules === 'string' ? { at, rules } : undefined
  } catch {
    return undefined
  }
}
