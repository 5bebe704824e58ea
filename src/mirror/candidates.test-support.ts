/** Interests as far as their eviction is concerned. */
import type { BudgetLimits, EvictionCandidate } from './eviction.ts'

export const minuteMs = 60_000
export const limits: BudgetLimits = {
  bytesMax: 1_000,
  interestsMax: 30,
  interestsPerCallerMax: 12,
  idleMsMin: 10 * minuteMs,
}

export type Thing = { -readonly [K in keyof EvictionCandidate]: EvictionCandidate[K] }

export function held(name: string, more: Partial<EvictionCandidate> = {}): Thing {
  const plain = {
    isOwn: false,
    isStanding: false,
    isName: false,
    isWatched: false,
    isBack: false,
    unaskedMs: 0,
    askedAtMs: 0,
    bytes: 0,
    shared: [],
  }
  return { name, callers: ['alice'], ...plain, ...more }
}

export const many = (count: number, more: (at: number) => Partial<EvictionCandidate> = () => ({}), of = 'i') =>
  Array.from({ length: count }, (_, at) => held(`${of}${at}`, { askedAtMs: at, ...more(at) }))

export const list = (...callers: string[]) => ({
  isOwn: false,
  isStanding: false,
  isName: false,
  isBack: false,
  callers,
})
export const name = (...callers: string[]) => ({ ...list(...callers), isName: true })
export const node = { ...list('system:node:n1'), isOwn: true }
