/**
 * The status of an edge for people at a terminal of 100 columns: how it stands with its API server, what it mirrors, what it
 * cannot, and what to do next. Ages and sizes are as kubectl shows them.
 */
import { humanDuration, parseTime } from '../kube/table/duration.ts'
import { adviceOf } from './advice.ts'
import type { StatusDocument } from './statusdocument.ts'
import { rebootText } from './survival.ts'
import { aligned, printable, size, wrapped } from './terminal.ts'

type InterestStatus = StatusDocument['interests'][number]

/** `p2` before `p10`. */
const inOrder = new Intl.Collator('en', { numeric: true }).compare
/** Names of one row that are shown; how many there are stands before them. */
const namesMax = 5

export function statusText(document: StatusDocument, nowMs: number): string {
  const { upstream, interests, passedThrough, misconfigured = [] } = document
  const parts = [block(document, nowMs)]
  if (misconfigured.length > 0) {
    parts.push(`To be put right:\n${misconfigured.map((one) => wrapped(`  ${printable(one)}`, 4)).join('')}`)
  }
  if (interests.length === 0) parts.push('Nothing is mirrored yet: nobody has asked, and no --mirror was given.\n')
  else parts.push(interestsTable(interests, upstream.state === 'reachable' ? '' : upstream.why, nowMs))
  if (passedThrough.length > 0) {
    const rows = passedThrough.map((one) => ({ cells: [named(one), one.why] }))
    parts.push(
      `Passed through to the API server${upstream.state === 'reachable' ? '' : ', and so out of reach'}:\n${aligned(['RESOURCE', 'WHY'], rows)}`,
    )
  }
  if (document.refusedWrites !== undefined) parts.push(refusedTable(document.refusedWrites, nowMs))
  const advice = adviceOf(document, nowMs)
  if (advice.length > 0) parts.push(`Next:\n${advice.map((one) => wrapped(`- ${printable(one)}`, 2)).join('')}`)
  return parts.join('\n')
}

function block(
  { upstream, credentials, cluster, store, budget, survival, version }: StatusDocument,
  nowMs: number,
): string {
  const { state, why, servers } = upstream
  const never = upstream.lastContact === null && state !== 'reachable' ? ', and never reached before' : ''
  const rows: string[][] = [
    ['Version:', version],
    ['Upstream:', `${state} for ${ageOf(upstream.since, nowMs)}${never}${why === '' ? '' : `: ${why}`}`],
    ...servers.map(({ url, current, why }, at) => {
      const notes = [...(current ? ['in use'] : []), ...(why === '' ? [] : [why])]
      return [at === 0 ? 'Servers:' : '', notes.length === 0 ? url : `${url} (${notes.join(', ')})`]
    }),
    ...credentialRows(credentials ?? [], nowMs),
    ...(cluster === undefined ? [] : [['Cluster:', clusterText(cluster)]]),
    ['Store:', storeText(store)],
    ...(store.scrub === undefined ? [] : [['Reread:', scrubText(store.scrub)]]),
    ...(budget === undefined ? [] : [['Mirrored:', fullness(budget)]]),
    ...(survival === undefined ? [] : [['Reboot:', rebootText(survival)]]),
    ...(store.damage ?? []).map((one, at) => [at === 0 ? 'Damage:' : '', one]),
  ]
  return aligned(
    undefined,
    rows.map((cells) => ({ cells })),
  )
}

function storeText({ healthy, historyBytes, bytesWritten, seal }: StatusDocument['store']): string {
  const state = healthy ? 'healthy' : 'THE DISK REFUSES WRITES'
  const { sealed, of } = seal?.segments ?? {}
  const sealing = seal?.state === 'sealing' ? `being sealed, ${sealed} of ${of} segments` : seal?.state
  const words = [state, `${size(historyBytes)} of history`, `${size(bytesWritten)} written`]
  return [...words, ...(sealing === undefined ? [] : [sealing])].join(', ')
}

function scrubText({ bytes, of, rounds, damaged, mended }: NonNullable<StatusDocument['store']['scrub']>): string {
  const far = `${size(bytes)} of ${size(of)}`
  const found = damaged === 0 ? '' : `: ${damaged} DAMAGED BY THE DISK, ${mended} written again`
  const round = bytes < of ? rounds + 1 : rounds
  return `${far}${round > 1 ? `, round ${round}` : ''}${found}`
}

const uses = { edge: 'Identity:', caller: 'Callers:', serving: 'Serving:' } as const

function credentialRows(all: NonNullable<StatusDocument['credentials']>, nowMs: number): string[][] {
  return all.map(({ use, name, expires, missing }, at) => {
    const until = expires === undefined ? [] : [expiry(expires, nowMs)]
    const words = [...(name === undefined ? [] : [name]), ...(missing === undefined ? until : [`UNUSABLE: ${missing}`])]
    return [all[at - 1]?.use === use ? '' : uses[use], words.join(', ') || 'a token of unknown expiry']
  })
}

function clusterText({ uid, other, changes }: NonNullable<StatusDocument['cluster']>): string {
  const begun = changes === 0 ? [] : ['the copy was begun anew for it since the start']
  return [uid ?? 'of unknown uid', ...begun, ...(other === undefined ? [] : [other])].join('; ')
}

function fullness({ bytes, bytesMax, interests, interestsMax }: NonNullable<StatusDocument['budget']>): string {
  return `${size(bytes)} of ${size(bytesMax)}, ${interests} of ${interestsMax} interests`
}

/**
 * In the order of their names. Objects that are mirrored by name share a row: an edge has hundreds of them, and JSON has them all.
 * What keeps all of them waiting (`said`) stands above, once.
 */
function interestsTable(interests: StatusDocument['interests'], said: string, nowMs: number): string {
  const rows = new Map<string, InterestStatus[]>()
  for (const one of interests.toSorted((a, b) => inOrder(placeOf(a), placeOf(b)))) {
    const { resource, group, namespace, state, why } = one
    const isNamed = nameOf(one) !== undefined
    const key = isNamed ? [resource, group, namespace, state, why].join('\0') : `\0${rows.size}`
    rows.set(key, [...(rows.get(key) ?? []), one])
  }
  const head = ['RESOURCE', 'NAMESPACE', 'STATE', 'OBJECTS', 'SIZE', 'HEARD', 'ASKED', 'WATCHES']
  return aligned(
    head,
    [...rows.values()].map((all) => rowOf(all, said, nowMs)),
  )
}

function placeOf(one: InterestStatus): string {
  return [named(one), one.namespace, one.labels, one.fields].join(' ')
}

function rowOf(all: readonly InterestStatus[], said: string, nowMs: number): { cells: string[]; details: string[] } {
  const [first] = all as [InterestStatus]
  const sum = (value: (one: InterestStatus) => number) => all.reduce((total, one) => total + value(one), 0)
  const ages = all.map(({ ageSeconds = Number.POSITIVE_INFINITY }) => ageSeconds)
  const oldest = Math.max(...ages)
  const asked = all
    .map((one) => one.asked)
    .sort()
    .at(-1) as string
  const wish = [first.labels, first.fields].filter(Boolean).join(' ')
  const names = all.slice(0, namesMax).map(nameOf)
  const wishes =
    all.length === 1 ? wish : `${all.length} by name: ${names.join(', ')}${all.length > namesMax ? ', …' : ''}`
  return {
    cells: [
      named(first),
      first.namespace || '*',
      first.state,
      String(sum(({ objects }) => objects)),
      size(sum(({ bytes }) => bytes)),
      Number.isFinite(oldest) ? humanDuration(oldest * 1000) : 'never',
      first.standing === true ? 'standing' : ageOf(asked, nowMs),
      String(sum(({ watchers }) => watchers)),
    ],
    details: [wishes, said.startsWith(first.why ?? '') ? '' : (first.why ?? '')].filter((one) => one !== ''),
  }
}

function refusedTable(
  { since, over, total, writes }: NonNullable<StatusDocument['refusedWrites']>,
  nowMs: number,
): string {
  const rows = writes.map((one) => ({
    cells: [
      one.resource === '' ? '(others)' : `${named(one)}${one.subresource && `/${one.subresource}`}`,
      one.caller || (one.resource === '' ? '' : '(unknown)'),
      String(one.count),
    ],
  }))
  const when = over
    ? `in the last cut, which began to refuse ${ageOf(since, nowMs)} ago`
    : `since the cut or the last start, for ${ageOf(since, nowMs)}`
  return `Writes refused ${when} (${total}):\n${aligned(['RESOURCE', 'CALLER', 'COUNT'], rows)}`
}

/** Of an interest in one object. */
function nameOf({ labels, fields }: InterestStatus): string | undefined {
  return labels === undefined ? /^metadata\.name=([^,]+)$/.exec(fields ?? '')?.[1] : undefined
}

/** `gateways.example.com`, as people write it. */
function named({ resource, group }: { readonly resource: string; readonly group: string }): string {
  return group === '' ? resource : `${resource}.${group}`
}

function ageOf(time: string, nowMs: number): string {
  const ms = parseTime(time)
  return ms === undefined ? '-' : humanDuration(nowMs - ms)
}

function expiry(time: string, nowMs: number): string {
  const ms = parseTime(time)
  if (ms === undefined) return 'of unknown expiry'
  return ms < nowMs ? `EXPIRED ${humanDuration(nowMs - ms)} ago` : `expires in ${humanDuration(ms - nowMs)}`
}
