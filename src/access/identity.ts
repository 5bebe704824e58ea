/**
 * Who a caller is, as one short text: the same for every credential of the same caller, another for callers that an authorizer
 * could tell apart; and the form in which a caller is written down.
 */
import { hash } from 'node:crypto'
import type { Caller } from '../kube/caller.ts'

/** Names the credential, not its owner: it is another with each rotation. */
const credentialId = 'authentication.kubernetes.io/credential-id'

/** User, uid, groups and extra; a digest, because it is part of the key of every decision. */
export function idOf({ name, uid, groups, extra = {} }: Caller): string {
  const attributes = Object.entries(extra)
    .filter(([key]) => key !== credentialId)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, values]) => [key, ...distinct(values)])
  // An object after the groups, which are texts: no group can be taken for it.
  const rest = attributes.length === 0 ? [] : [{ extra: attributes }]
  return hash('sha256', JSON.stringify([name, uid, ...distinct(groups), ...rest]), 'base64url').slice(0, 22)
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort()
}

export type CallerRecord = {
  readonly caller: Caller
  /** Until when the credential counts. */
  readonly untilMs: number
  readonly keptMs: number
}

export function printCaller({ caller, untilMs, keptMs }: CallerRecord): Buffer {
  return Buffer.from(JSON.stringify({ ...caller, extra: caller.extra ?? {}, untilMs, keptMs }))
}

/** What cannot be read, and what was written before `extra` counted, is as if it had not been there: it is asked again. */
export function parseCaller(value: Buffer): CallerRecord | undefined {
  try {
    const { name, uid, groups, extra, untilMs, keptMs } = JSON.parse(value.toString('utf8')) as Record<string, unknown>
    if (typeof name !== 'string' || typeof uid !== 'string' || !isTexts(groups) || !isExtra(extra)) return undefined
    if (typeof untilMs !== 'number' || typeof keptMs !== 'number') return undefined
    const caller: Caller = { name, uid, groups }
    return { caller: Object.keys(extra).length === 0 ? caller : { ...caller, extra }, untilMs, keptMs }
  } catch {
    return undefined
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function isExtra(value: unknown): value is Record<string, string[]> {
  return typeof value === 'object' && value !== null && Object.values(value).every(isTexts)
}
