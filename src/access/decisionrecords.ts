/**
 * Decisions as they are written down, so that a restart without the cloud knows them: what was allowed and what was denied are
 * records of two kinds, so that no older ake, which knows the first alone, takes the one for the other.
 */
import { anonymous } from '../kube/caller.ts'
import type { Decision, Holding, RecordEffect } from './holding.ts'
import { idOf } from './identity.ts'
import type { WriteBehind } from './writebehind.ts'

export const decisionKind = 'decision'
export const denialKind = 'denial'

const reasonCharactersMax = 1_024 // an authorizer may say very much

type StoredRecords = readonly { readonly key: string; readonly value: Buffer }[]

type Parts = {
  readonly behind: WriteBehind
  readonly allowed: StoredRecords
  readonly denied: StoredRecords
}

export class DecisionRecords {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** At a start, by both clocks. */
  load(holding: Holding, now: number, nowMs: number): void {
    const { behind, allowed, denied } = this.#parts
    for (const { key: at, value } of allowed) this.#loadOne(holding, at, { value, allowed: true, now, nowMs })
    for (const { key: at, value } of denied) {
      const [id, key] = partsOf(at)
      const held = holding.get(id, key)
      const recordedMs = readRecord(value)?.recordedMs ?? 0
      // Of both kinds where an older ake was here meanwhile, which leaves denials alone: the newer one counts.
      if (held !== undefined && held.recordedMs > recordedMs) behind.put(denialKind, at, undefined)
      else {
        if (held !== undefined && recordedMs > 0) behind.remove(decisionKind, at)
        this.#loadOne(holding, at, { value, allowed: false, now, nowMs })
      }
    }
  }

  write(
    effect: Exclude<RecordEffect, 'none'>,
    id: string,
    key: string,
    { allowed, reason, recordedMs, agreement }: Decision,
  ): void {
    const at = `${id} ${key}`
    // Clients without a credential could write without end; what was never decided of them is denied all the same.
    if (effect !== 'remove' && (allowed || id !== anonymousId)) {
      const more = allowed ? {} : { reason: reason.slice(0, reasonCharactersMax) }
      const roles = agreement === 'unknown' ? {} : { roles: agreement }
      const value = Buffer.from(JSON.stringify({ at: Math.floor(recordedMs), ...more, ...roles }))
      this.#parts.behind.put(kindOf(allowed), at, value)
    }
    if (effect !== 'record') this.drop(id, key, !allowed)
  }

  /** What was allowed must not be so again after a crash; what was denied only makes room. */
  drop(id: string, key: string, allowed: boolean): void {
    if (allowed) this.#parts.behind.remove(decisionKind, `${id} ${key}`)
    else this.#parts.behind.put(denialKind, `${id} ${key}`, undefined)
  }

  /** It was pushed out: nothing depends on when that is written. */
  evict(id: string, key: string, allowed: boolean): void {
    this.#parts.behind.put(kindOf(allowed), `${id} ${key}`, undefined)
  }

  #loadOne(
    holding: Holding,
    at: string,
    { value, allowed, now, nowMs }: { value: Buffer; allowed: boolean; now: number; nowMs: number },
  ): void {
    const record = readRecord(value)
    const [id, key] = partsOf(at)
    if (record === undefined || id === '') this.#parts.behind.put(kindOf(allowed), at, undefined)
    else holding.load(id, key, { ...record, allowed, usedAt: now - Math.max(1, nowMs - record.recordedMs) })
  }
}

const anonymousId = idOf(anonymous)

function kindOf(allowed: boolean): string {
  return allowed ? decisionKind : denialKind
}

/** The caller, of whose id no part is a space, and the key of the question. */
function partsOf(at: string): [id: string, key: string] {
  const end = Math.max(0, at.indexOf(' '))
  return [at.slice(0, end), at.slice(end + 1)]
}

function readRecord(value: Buffer): Pick<Decision, 'recordedMs' | 'reason' | 'agreement'> | undefined {
  try {
    const { at, reason, roles } = JSON.parse(value.toString('utf8')) as {
      at?: unknown
      reason?: unknown
      roles?: unknown
    }
    if (typeof at !== 'number') return undefined
    const agreement = roles === 'same' || roles === 'other' ? roles : 'unknown'
    return { recordedMs: at, reason: typeof reason === 'string' ? reason : '', agreement }
  } catch {
    return undefined
  }
}
