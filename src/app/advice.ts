/** What a person should do about the status of an edge, the most urgent first; nothing where it can be left alone. */
import { humanDuration, parseTime } from '../kube/table/duration.ts'
import { nearEndAtMs } from './nearend.ts'
import type { StatusDocument } from './statusdocument.ts'

/** Names in one sentence: a list of fifty is no advice. */
const namesMax = 6

export function adviceOf(document: StatusDocument, nowMs: number): string[] {
  const { upstream, cluster, store } = document
  const advice: string[] = []
  if (!store.healthy) {
    advice.push(
      'Free space on the disk, mount it writable, or replace it: nothing new is stored until it takes writes.',
    )
  }
  const renewals = (document.credentials ?? []).flatMap((one) => renewal(one, nowMs, isLinked(document)))
  advice.push(...renewals)
  if (renewals.length === 0 && refusedWith(document, 401).length > 0) {
    advice.push("Renew the edge's credential in its kubeconfig: the API server does not accept it (401).")
  }
  if (cluster?.other !== undefined) {
    const where = isLinked(document) ? '--hub' : '--server and --kubeconfig'
    advice.push(`Check ${where}: another cluster answers there than the one that is mirrored.`)
  } else if (upstream.state === 'unreachable') {
    advice.push(
      `See why the API server cannot be reached (${upstream.why}). What is mirrored is served meanwhile; writes are refused.`,
    )
  }
  const forbidden = refusedWith(document, 403)
  if (forbidden.length > 0) advice.push(isLinked(document) ? proof(forbidden) : right(forbidden))
  const large = passed(document, 'tooLarge')
  if (large.length > 0) {
    advice.push(
      `Raise --mirror-bytes, --first-list-max or --first-list-bytes, or have clients ask for less of ${listed(large)}: a namespace, a selector.`,
    )
  }
  const turnedAway = passed(document, 'noRoom')
  if (turnedAway.length > 0) {
    advice.push(
      `Let clients ask for less, or for more at once, of ${listed(turnedAway)}: there is no room for each wish.`,
    )
  }
  if ((store.damage ?? []).length > 0) {
    advice.push('Look at the disk: what is damaged here is fetched again from the API server, and may be again.')
  }
  return advice
}

/** Its way leads through a hub. */
function isLinked({ upstream: { servers } }: StatusDocument): boolean {
  return servers.some(({ url }) => url.startsWith('wss:'))
}

function right(names: readonly string[]): string {
  return `Let the edge get, list and watch ${listed(names)} (deploy/edge-rbac.yaml): without that they are gone when the API server is.`
}

/** A hub gives an edge what its node may read, and what a person behind it has shown to be allowed. */
function proof(names: readonly string[]): string {
  return `Have somebody who may read ${listed(names)} ask this edge for them, or let the group system:nodes: until then they are gone when the API server is.`
}

const ways = {
  edge: 'in its kubeconfig: the file is read again when it changes',
  linked: 'in the file of --credential, which is read again when it changes ("ake join" or "ake hub issue" writes it)',
  caller: 'in the files of --client-credential, which are read again when they change',
  serving: 'by a restart, which makes a new one',
} as const

function renewal(
  one: NonNullable<StatusDocument['credentials']>[number],
  nowMs: number,
  isThroughHub: boolean,
): string[] {
  const { use, name, expires, renewBy } = one
  const whose =
    use === 'caller'
      ? `the credential of ${name}`
      : use === 'edge'
        ? "the edge's credential"
        : 'the serving certificate'
  const endsAtMs = parseTime(expires ?? '')
  const nearAtMs = parseTime(renewBy ?? '') ?? nearEndAtMs({ endsAtMs })
  if (endsAtMs === undefined || nearAtMs === undefined || nowMs < nearAtMs) return []
  const leftMs = endsAtMs - nowMs
  const when = leftMs <= 0 ? `expired ${humanDuration(-leftMs)} ago` : `expires in ${humanDuration(leftMs)}`
  return [`Renew ${whose}, which ${when}, ${ways[use === 'edge' && isThroughHub ? 'linked' : use]}.`]
}

function refusedWith({ interests, passedThrough }: StatusDocument, code: number): string[] {
  return namesOf([...interests, ...passedThrough].filter((one) => one.code === code))
}

function passed({ passedThrough }: StatusDocument, state: string): string[] {
  return namesOf(passedThrough.filter((one) => one.state === state))
}

function namesOf(all: readonly { readonly resource: string; readonly group: string }[]): string[] {
  return [...new Set(all.map(({ resource, group }) => (group === '' ? resource : `${resource}.${group}`)))]
}

function listed(names: readonly string[]): string {
  return names.length > namesMax
    ? `${names.slice(0, namesMax).join(', ')} and ${names.length - namesMax} more`
    : names.join(', ')
}
