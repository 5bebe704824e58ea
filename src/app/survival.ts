/**
 * Whether this node would come back from a reboot without the cloud, as a function of what is known: a list of checks, each with
 * what was found and what to do about it. No clock, disk or network here.
 */

import { humanDuration } from '../kube/table/duration.ts'
import { type EdgeSubject, granting } from './granting.ts'
import { nearEndAtMs } from './nearend.ts'

export type RebootCheck = {
  readonly name: string
  /** `warning`: it would come back, but soon not, or not as it was. `unknown`: that cannot be told. */
  readonly state: 'ok' | 'warning' | 'failed' | 'unknown'
  readonly what: string
  /** What a person should do, if anything. */
  readonly todo?: string
  /** What does it, to be pasted into a shell. */
  readonly commands?: readonly string[]
}

export type Survival = {
  /** `no` if any check failed, `unknown` if one could not be made. */
  readonly survives: 'yes' | 'no' | 'unknown'
  readonly checks: readonly RebootCheck[]
}

/** An interest that stands: what the node needs, or what an option names. */
export type Need = {
  readonly for: 'node' | 'pods' | 'services' | 'option'
  readonly group: string
  readonly resource: string
  readonly namespace: string
  /** '' for all of them. */
  readonly name: string
  /** `behind`: held, but the API server, which is there, is not heard of it. */
  readonly state: 'held' | 'behind' | 'missing' | 'denied'
  readonly why: string
}

/** A certificate or token: the edge's own, that of callers (by its common name), or what the edge shows its clients. */
export type CredentialFact = {
  readonly use: 'edge' | 'caller' | 'serving'
  readonly name?: string
  readonly beganAtMs?: number
  readonly endsAtMs?: number
  /** Why there is none, in a sentence. */
  readonly missing?: string
}

export type SurvivalFacts = {
  readonly nowMs: number
  readonly isReachable: boolean
  /** Undefined: this edge was not told which node it runs on. */
  readonly node: string | undefined
  readonly needs: readonly Need[]
  /** Of each pod that mounts a token of its account: when the one that is kept for it ends; undefined where there is none. */
  readonly tokens: readonly { readonly pod: string; readonly endsMs: number | undefined }[]
  readonly credentials: readonly CredentialFact[]
  /** Undefined until the API server has said it. */
  readonly subject: EdgeSubject | undefined
  /** Whether discovery was ever read. */
  readonly isCatalogKnown: boolean
  /** What is configured so that it cannot work, a sentence each with what to do: callers that count as anonymous, for example. */
  readonly misconfigured: readonly string[]
  readonly disk: {
    readonly isHealthy: boolean
    readonly damage: readonly string[]
    /** Undefined until it was looked at. */
    readonly freeBytes: number | undefined
  }
  /** By how much the machine's clock is behind the newest time that is known for sure. */
  readonly clockBehindMs: number
}

/** A start writes into a new segment of the log (32 MiB); twice that. */
const freeBytesMin = 64 * 1024 * 1024
/** A day of a busy edge. */
const freeBytesLow = 512 * 1024 * 1024
/** Clocks that are a few minutes apart are usual. */
const clockMsMax = 300_000
/** So many are named in a sentence. */
const namesMax = 3

export function survivalOf(facts: SurvivalFacts): Survival {
  const { node, needs } = facts
  const of = (use: Need['for']) => needs.filter((one) => one.for === use)
  const checks: RebootCheck[] = [
    nodeCheck(node),
    ...(node === undefined
      ? []
      : [
          heldCheck('pods', of('node'), 'its Node, its pods and what every node reads', facts),
          heldCheck('names', of('pods'), 'what its pods name', facts),
          heldCheck('services', of('services'), 'services and endpoint slices', facts),
          tokensCheck(facts),
        ]),
    rightsCheck(facts),
    optionsCheck(of('option'), facts),
    discoveryCheck(facts),
    credentialsCheck(facts),
    diskCheck(facts),
    clockCheck(facts),
  ]
  const has = (state: RebootCheck['state']) => checks.some((one) => one.state === state)
  return { survives: has('failed') ? 'no' : has('unknown') ? 'unknown' : 'yes', checks }
}

/** One line of `ake status`. */
export function rebootText({ survives, checks }: Survival): string {
  if (survives === 'yes') return 'would be survived without the API server'
  const open = checks
    .filter(({ state }) => state === (survives === 'no' ? 'failed' : 'unknown'))
    .map(({ name }) => name)
  const said =
    survives === 'no' ? 'WOULD NOT BE SURVIVED without the API server' : 'not known whether it would be survived'
  return `${said} (${open.join(', ')}): see "ake check"`
}

function nodeCheck(node: string | undefined): RebootCheck {
  if (node !== undefined) return { name: 'node', state: 'ok', what: `this is node ${node}` }
  const what = 'which node this is, and so what it needs, is not known'
  return { name: 'node', state: 'unknown', what, todo: 'start "ake edge" with --node NAME' }
}

function heldCheck(name: string, needs: readonly Need[], what: string, { isReachable }: SurvivalFacts): RebootCheck {
  const lacking = needs.filter(({ state }) => state === 'missing' || state === 'denied')
  if (lacking.length > 0) {
    const why = lacking.find((one) => one.state === 'missing')?.why ?? 'the edge may not read it'
    const found = `not held: ${listed(lacking.map(nameOf))} (${why})`
    const todo = isReachable
      ? 'see "ake status" for what keeps it from being mirrored'
      : 'it can be mirrored when the API server is back'
    return { name, state: 'failed', what: found, ...(lacking.every((one) => one.state === 'denied') ? {} : { todo }) }
  }
  const behind = needs.filter(({ state }) => state === 'behind')
  if (behind.length > 0) {
    const found = `held, but not fresh: ${listed(behind.map(nameOf))} (${behind[0]?.why})`
    return { name, state: 'warning', what: found, todo: 'see "ake status" for what its watch waits for' }
  }
  const as = isReachable ? '' : ', as of before the API server went away'
  return { name, state: 'ok', what: `${what}: ${needs.length} held${as}` }
}

function tokensCheck({ tokens, nowMs }: SurvivalFacts): RebootCheck {
  const name = 'tokens'
  const none = tokens.filter(({ endsMs }) => endsMs === undefined)
  if (none.length > 0) {
    const what = `no token is kept for ${listed(none.map(({ pod }) => pod))}: the kubelet has not asked for it through this edge`
    return {
      name,
      state: 'failed',
      what,
      todo: "point the kubelet's kubeconfig at this edge, then restart those pods or wait for its next renewal",
    }
  }
  const over = tokens.filter(({ endsMs }) => (endsMs as number) <= nowMs)
  if (over.length > 0) {
    const what = `expired, and given out with a warning: ${listed(over.map(({ pod }) => pod))}`
    return { name, state: 'warning', what, todo: 'they are renewed when the API server is back' }
  }
  const first = Math.min(...tokens.map(({ endsMs }) => endsMs as number))
  const ends = tokens.length === 0 ? '' : `, the first ends in ${humanDuration(first - nowMs)}`
  return { name, state: 'ok', what: `kept for ${tokens.length} pods${ends}` }
}

function rightsCheck({ needs, subject, credentials }: SurvivalFacts): RebootCheck {
  const denied = needs.filter(({ state }) => state === 'denied')
  if (denied.length === 0) return { name: 'rights', state: 'ok', what: 'the edge may read what it needs' }
  const what = `the edge may not read ${listed(denied.map(nameOf))}`
  // Before the API server has said who the edge is, its certificate or token does: its groups are not needed.
  const name = credentials.find(({ use }) => use === 'edge')?.name
  const who = subject ?? (name === undefined ? undefined : { name, groups: [] })
  const state = 'failed'
  if (who === undefined) {
    const todo = 'the command that grants it is shown here once the API server has said who the edge is'
    return { name: 'rights', state, what, todo }
  }
  const commands = [...new Set(denied.map((one) => granting(one, who)))]
  return { name: 'rights', state, what, todo: 'an administrator of the cluster can grant it:', commands }
}

function optionsCheck(needs: readonly Need[], { misconfigured }: SurvivalFacts): RebootCheck {
  const name = 'options'
  const lacking = needs
    .filter(({ state }) => state === 'missing')
    .map((one) => `${nameOf(one)} is not held: ${one.why}`)
  const wrong = [...misconfigured, ...lacking]
  if (wrong.length === 0)
    return { name, state: 'ok', what: `do what they say; ${needs.length} resources named are held` }
  return { name, state: 'warning', what: `${wrong.length} to be put right`, todo: wrong.join('\n') }
}

function discoveryCheck({ isCatalogKnown }: SurvivalFacts): RebootCheck {
  if (isCatalogKnown) return { name: 'discovery', state: 'ok', what: 'which resources exist is known' }
  const todo = 'let it reach the API server once'
  return { name: 'discovery', state: 'failed', what: 'which resources exist was never read', todo }
}

function credentialsCheck({ credentials, nowMs }: SurvivalFacts): RebootCheck {
  const name = 'credentials'
  const lasting = credentials.map((one) => ({
    ...one,
    leftMs: one.missing === undefined ? (one.endsAtMs ?? Infinity) - nowMs : 0,
    isDue: one.missing !== undefined || (nearEndAtMs(one) ?? Infinity) <= nowMs,
  }))
  // The one that is served with is made anew at the start that this is about.
  const due = lasting.filter(({ use, isDue }) => use !== 'serving' && isDue)
  const ending = lasting.filter(({ leftMs }) => leftMs !== Infinity).sort((a, b) => a.leftMs - b.leftMs)
  const what = ending.map(lifeText).join(', ') || 'none has an end that is known'
  if (due.length === 0) return { name, state: 'ok', what }
  const todo = `renew ${due.map(whose).join(', ')}: files are read again when they change`
  // Without its own the edge mirrors nothing more; without theirs callers are refused.
  const isRefused = due.some(({ use, leftMs }) => use === 'caller' && leftMs <= 0)
  return { name, state: isRefused ? 'failed' : 'warning', what, todo }
}

function lifeText(life: CredentialFact & { leftMs: number }): string {
  const { missing, leftMs } = life
  if (missing !== undefined) return missing
  return leftMs > 0
    ? `${whose(life)} ends in ${humanDuration(leftMs)}`
    : `${whose(life)} EXPIRED ${humanDuration(-leftMs)} ago`
}

function whose({ use, name }: CredentialFact): string {
  if (use === 'caller') return `the certificate of ${name}`
  return use === 'edge' ? "the edge's own" : 'the serving certificate'
}

function diskCheck({ disk: { isHealthy, damage, freeBytes } }: SurvivalFacts): RebootCheck {
  const name = 'disk'
  const space = freeBytes === undefined ? 'free space not looked at yet' : `${Math.floor(freeBytes / 2 ** 20)}Mi free`
  if (!isHealthy)
    return { name, state: 'failed', what: `the disk refuses writes, ${space}`, todo: 'make room, or replace the disk' }
  if (freeBytes !== undefined && freeBytes < freeBytesMin)
    return { name, state: 'failed', what: space, todo: 'make room' }
  if (damage.length > 0)
    return {
      name,
      state: 'warning',
      what: damage.join('; '),
      todo: 'what is damaged is fetched again from the API server',
    }
  if (freeBytes !== undefined && freeBytes < freeBytesLow)
    return { name, state: 'warning', what: space, todo: 'make room' }
  return { name, state: freeBytes === undefined ? 'unknown' : 'ok', what: `takes writes, ${space}` }
}

function clockCheck({ clockBehindMs }: SurvivalFacts): RebootCheck {
  const name = 'clock'
  if (clockBehindMs <= clockMsMax) return { name, state: 'ok', what: 'not behind the newest time known' }
  const what = `${humanDuration(clockBehindMs)} behind the newest time known: clients may find certificates not valid yet`
  return { name, state: 'warning', what, todo: 'set the clock, and keep it over a reboot' }
}

function nameOf({ resource, namespace, name }: Need): string {
  return `${resource}${namespace === '' && name === '' ? '' : ` ${namespace === '' ? '' : `${namespace}/`}${name || '*'}`}`
}

function listed(names: readonly string[]): string {
  const more = names.length - namesMax
  return more > 0 ? `${names.slice(0, namesMax).join(', ')} and ${more} more` : names.join(', ')
}
