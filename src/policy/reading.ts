/**
 * An EdgePolicy as it was read. The definition's schema and CEL refuse what cannot be meant, but one may have been written before them, or
 * past them: so everything is looked at again, and what is wrong is said in the policy's status.
 */
import { parseTime } from '../kube/table/duration.ts'
import { type NodeChoice, readNodes } from './nodes.ts'
import { asTree, isTree, SpecReading, type SpecTree } from './specreading.ts'

/** Callers whom an edge may speak for. Without `users` every caller who is in one of the groups. */
export type SpokenFor = {
  readonly at: number
  readonly users: readonly string[] | undefined
  readonly groups: readonly string[]
}

/** Without `namespaces` all of them and what is in none; without `names` any. */
export type CollectionRule = {
  readonly at: number
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly namespaces: readonly string[] | undefined
  readonly names: readonly string[] | undefined
}

type Revoked = { readonly at: number; readonly name: string; readonly sinceMs: number }

export type ReadPolicy = {
  readonly name: string
  readonly generation: number
  /** Of the whole spec: equal texts mean the same. */
  readonly text: string
  /** What keeps it from being accepted, each with its place; none: it counts as it stands. */
  readonly faults: readonly string[]
  readonly nodes: NodeChoice
  readonly trusts: boolean
  readonly speakFor: readonly SpokenFor[]
  readonly interests: readonly CollectionRule[]
  readonly neverMirrored: readonly CollectionRule[]
  readonly rates: { readonly edgePerSecond?: number; readonly callerPerSecond?: number }
  readonly offline: { readonly tokenAgeMs?: number; readonly serveAgeMs?: number }
  readonly revoked: readonly Revoked[]
}

/** The group whose members no authorizer is asked about. */
export const masters = 'system:masters'

export function readPolicy(bytes: Buffer | string): ReadPolicy {
  const object = asTree(parsed(bytes.toString()))
  const metadata = asTree(object.metadata)
  const reading = new SpecReading()
  if (object.spec !== undefined && !isTree(object.spec)) reading.fault('', 'has no fields')
  const spec = asTree(object.spec)
  const forbids = {
    nodes: readNodes(spec.nodes, reading),
    neverMirrored: readCollections(reading, spec.neverMirrored, 'neverMirrored', { isForbidding: true }),
    rates: readRates(reading, spec.rates),
    offline: readOffline(reading, spec.offline),
    revoked: readRevoked(reading, spec.revoked),
  }
  const allows = {
    trusts: reading.isTrue(spec.trust, 'trust'),
    speakFor: readSpeakFor(reading, spec.speakFor),
    interests: readCollections(reading, spec.interests, 'interests', { isForbidding: false }),
  }
  const { faults } = reading
  const { name, generation } = metadata
  return {
    ...{ name: typeof name === 'string' ? name : '', generation: typeof generation === 'number' ? generation : 0 },
    ...{ text: JSON.stringify(object.spec ?? null), faults },
    ...forbids,
    ...(faults.length === 0 ? allows : { trusts: false, speakFor: [], interests: [] }),
  }
}

/** Of what forbids, a part that cannot be read narrows nothing. */
function readCollections(
  reading: SpecReading,
  value: unknown,
  place: string,
  { isForbidding }: { readonly isForbidding: boolean },
): CollectionRule[] {
  return reading.entries(value, place).map(([at, entry]) => {
    const here = `${place}[${at}]`
    const [apiGroups = [], resources = []] = (['apiGroups', 'resources'] as const).map((field) => {
      if (entry[field] === undefined) reading.fault(`${here}.${field}`, 'is missing')
      return reading.patterns(entry[field], `${here}.${field}`, 'be a star')
    })
    const before = reading.faults.length
    const namespaces = reading.patterns(entry.namespaces, `${here}.namespaces`)
    const isNarrowed = !isForbidding || reading.faults.length === before
    return {
      ...{ at, apiGroups, resources, namespaces: isNarrowed ? namespaces : undefined },
      names: isForbidding ? undefined : reading.patterns(entry.names, `${here}.names`),
    }
  })
}

function readSpeakFor(reading: SpecReading, value: unknown): SpokenFor[] {
  return reading.entries(value, 'speakFor').map(([at, entry]) => {
    const here = `speakFor[${at}]`
    if (entry.users === undefined && entry.groups === undefined) reading.fault(here, 'names neither users nor groups')
    const users = reading.patterns(entry.users, `${here}.users`)
    const groups = reading.patterns(entry.groups, `${here}.groups`) ?? []
    if (groups.includes(masters)) reading.fault(`${here}.groups`, `has ${masters}, whom nobody speaks for`)
    return { at, users, groups }
  })
}

function readRates(reading: SpecReading, value: unknown): ReadPolicy['rates'] {
  const { edgeRequestsPerSecond, callerRequestsPerSecond } = fieldsOf(reading, value, 'rates')
  return {
    ...named('edgePerSecond', readCount(reading, edgeRequestsPerSecond, 'rates.edgeRequestsPerSecond')),
    ...named('callerPerSecond', readCount(reading, callerRequestsPerSecond, 'rates.callerRequestsPerSecond')),
  }
}

function readOffline(reading: SpecReading, value: unknown): ReadPolicy['offline'] {
  const { tokenAge, serveAge } = fieldsOf(reading, value, 'offline')
  return {
    ...named('tokenAgeMs', readDuration(reading, tokenAge, 'offline.tokenAge')),
    ...named('serveAgeMs', readDuration(reading, serveAge, 'offline.serveAge')),
  }
}

function readRevoked(reading: SpecReading, value: unknown): Revoked[] {
  return reading.entries(value, 'revoked').flatMap(([at, { name, since }]) => {
    if (typeof name !== 'string' || name === '') {
      reading.fault(`revoked[${at}].name`, 'is no name of a node')
      return []
    }
    const sinceMs = typeof since === 'string' ? parseTime(since.toUpperCase()) : undefined
    if (sinceMs === undefined) reading.fault(`revoked[${at}].since`, 'is no time, and counts as for ever')
    // The operator who wrote the name meant to keep that edge out.
    return [{ at, name, sinceMs: sinceMs ?? Number.POSITIVE_INFINITY }]
  })
}

function fieldsOf(reading: SpecReading, value: unknown, place: string): SpecTree {
  if (value !== undefined && !isTree(value)) reading.fault(place, 'has no fields')
  return asTree(value)
}

function readCount(reading: SpecReading, value: unknown, place: string): number | undefined {
  if (value === undefined) return undefined
  const isCount = Number.isSafeInteger(value) && (value as number) > 0
  return isCount ? (value as number) : reading.fault(place, 'is no number above 0')
}

function readDuration(reading: SpecReading, value: unknown, place: string): number | undefined {
  if (value === undefined) return undefined
  const ms = typeof value === 'string' ? durationMs(value) : undefined
  return ms !== undefined && ms > 0 ? ms : reading.fault(place, 'is no duration as 90s, 15m or 24h')
}

function named<Key extends string>(key: Key, value: number | undefined): { [name in Key]?: number } {
  return value === undefined ? {} : ({ [key]: value } as { [name in Key]: number })
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** What Go can write, and so the API server: some 292 years. */
const durationMsMax = 2 ** 63 / 1e6

/** As Go writes them, without the smallest units; in whole milliseconds, since links tell no parts of one, and none would mean that there is no limit. */
function durationMs(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)]
  const ms = parts.reduce((sum, [, number, unit = '']) => sum + Number(number) * (units[unit] ?? 0), 0)
  if (ms > durationMsMax) return undefined
  return ms === 0 ? 0 : Math.max(1, Math.round(ms))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
