/** The status of a hub for people at a terminal of 100 columns. */
import { humanDuration, parseTime } from '../../kube/table/duration.ts'
import { aligned, size } from '../terminal.ts'
import type { HubEdgeStatus, HubResourceStatus, HubStatusDocument } from './status.ts'

/** `node-2` before `node-10`. */
const inOrder = new Intl.Collator('en', { numeric: true }).compare
/** Of those whose certificates end soon. */
const namedMax = 5
/** Rows of edges that are shown; those that are furthest behind first where there are more. */
const edgesMax = 100

export function hubStatusText(document: HubStatusDocument, nowMs: number): string {
  const { edges, resources } = document
  const parts = [block(document, nowMs)]
  if (edges.length > 0) parts.push(edgesTable(edges, nowMs))
  if (resources.length > 0) parts.push(resourcesTable(resources))
  return parts.join('\n')
}

function block(document: HubStatusDocument, nowMs: number): string {
  const { hub, version, open, why, upstream, cluster, trustsEdges, edges, history, authorities, others } = document
  const rows: [string, string][] = [
    ['Hub:', `${hub}, ake ${version}`],
    ['Edges:', open ? `${edges.length} here` : `${edges.length} here, none is let in: ${why ?? ''}`],
    ['Upstream:', `${upstream.state} for ${ageOf(upstream.since, nowMs)}, ${upstream.why}`],
  ]
  if (cluster !== undefined) {
    const lost = cluster.lost > 0 ? `, versions up to ${cluster.lost} are lost` : ''
    rows.push(['Cluster:', `${cluster.uid}, epoch ${cluster.epoch}${lost}`])
  }
  for (const { role, hash, until } of authorities ?? [])
    rows.push(['Authority:', `${role}, ${hash.slice(0, 23)}…, ends in ${leftOf(until, nowMs)}`])
  const ending = edges.filter(({ certificate }) => (parseTime(certificate.renewBy ?? certificate.until) ?? 0) <= nowMs)
  if (ending.length > 0) {
    const named = ending.slice(0, namedMax).map(({ name }) => name)
    const more = ending.length > namedMax ? ` and ${ending.length - namedMax} more` : ''
    rows.push(['Certificates:', `${ending.length} end soon and should have been renewed: ${named.join(', ')}${more}`])
  }
  rows.push(...policyRows(document))
  for (const { hub: other, edges: there } of others ?? []) rows.push(['Replica:', `${other}, ${there.length} edges`])
  if (trustsEdges) rows.push(['Trust:', '--trust-edges: every edge may read what this hub may'])
  rows.push(['History:', `${size(history.bytes)} of ${size(history.bytesMax)}`])
  return aligned(
    undefined,
    rows.map((cells) => ({ cells })),
  )
}

/** How many there are and for whom most of them are, in one line; then each that cannot be read whole. */
function policyRows({ policies, policiesUnknown }: HubStatusDocument): [string, string][] {
  if (policiesUnknown !== undefined) return [['Policies:', `not known: ${policiesUnknown}`]]
  if (policies === undefined) return []
  const ranked = [...policies].sort((a, b) => b.edges - a.edges || inOrder(a.name, b.name))
  const named = ranked.slice(0, namedMax).map(({ name, edges }) => `${name} (${edges})`)
  const more = ranked.length > namedMax ? ` and ${ranked.length - namedMax} more` : ''
  const wrong = ranked.filter(({ faults }) => faults.length > 0)
  return [
    ['Policies:', ranked.length === 0 ? 'none' : `for edges here: ${named.join(', ')}${more}`],
    ...wrong.slice(0, namedMax).map(({ name, faults: [first = ''] }): [string, string] => {
      return ['Policies:', `${name} allows nothing, it cannot be read whole: ${first}`]
    }),
  ]
}

/** For `ake hub edges`: every edge that is known, where it is, and by which certificate. */
export function hubEdgesText({ hub, edges, others = [] }: HubStatusDocument, nowMs: number): string {
  const here = edges.map(({ name, from, release, since, certificate, policies }) => {
    const signed = [leftOf(certificate.until, nowMs), certificate.by]
    return [name, hub, from, release, ageOf(since, nowMs), ...signed, policies.join(',') || '-']
  })
  const there = others.flatMap((other) =>
    other.edges.map(({ name, from }) => [name, other.hub, from, '-', '-', '-', '-', '-']),
  )
  const rows = [...here, ...there].sort(([a = ''], [b = '']) => inOrder(a, b)).map((cells) => ({ cells }))
  if (rows.length === 0) return 'no edge has a link\n'
  return aligned(['EDGE', 'HUB', 'FROM', 'RELEASE', 'FOR', 'ENDS IN', 'SIGNED BY', 'POLICIES'], rows)
}

function edgesTable(edges: readonly HubEdgeStatus[], nowMs: number): string {
  const isCut = edges.length > edgesMax
  const ranked = isCut ? [...edges].sort((a, b) => b.behind - a.behind || b.queuedBytes - a.queuedBytes) : edges
  const shown = ranked.slice(0, edgesMax).sort((a, b) => inOrder(a.name, b.name))
  const rows = shown.map((edge) => ({
    cells: [
      edge.name,
      edge.from,
      edge.release,
      edge.state,
      ageOf(edge.since, nowMs),
      liveOf(edge),
      String(edge.version),
      String(edge.behind),
      size(edge.queuedBytes),
      size(edge.sentBytes),
      size(edge.receivedBytes),
    ],
  }))
  const head = ['EDGE', 'FROM', 'RELEASE', 'STATE', 'FOR', 'LIVE', 'VERSION', 'BEHIND', 'QUEUED', 'SENT', 'RECEIVED']
  const more = isCut ? `and ${edges.length - edgesMax} more, which are less behind: see --output json\n` : ''
  return `${aligned(head, rows)}${more}`
}

/** Of all its interests those that it is told each change of. */
function liveOf({ interests, unlive: { waiting, comparing, syncing } }: HubEdgeStatus): string {
  return `${interests - waiting - comparing - syncing}/${interests}`
}

function resourcesTable(resources: readonly HubResourceStatus[]): string {
  const rows = [...resources]
    .sort((a, b) => inOrder(a.name, b.name))
    .map(({ name, state, why, readers, views, objects, bytes, resourceVersion, historyFrom }) => ({
      cells: [
        readable(name),
        state,
        String(readers),
        String(views),
        String(objects),
        size(bytes),
        String(resourceVersion),
        String(historyFrom),
      ],
      ...(why === undefined ? {} : { details: [why] }),
    }))
  const head = ['RESOURCE', 'STATE', 'READERS', 'VIEWS', 'OBJECTS', 'SIZE', 'VERSION', 'SINCE']
  return aligned(head, rows)
}

/** `configmaps@default`, `roles.rbac.authorization.k8s.io`: what tells them apart stands first. */
function readable(name: string): string {
  const [place = '', namespace] = name.split('@')
  const [resource = '', , group] = place.split('/').reverse()
  return `${resource}${namespace === undefined ? '' : `@${namespace}`}${group === undefined ? '' : `.${group}`}`
}

function leftOf(time: string, nowMs: number): string {
  const ms = parseTime(time)
  return ms === undefined ? '-' : humanDuration(Math.max(0, ms - nowMs))
}

function ageOf(time: string, nowMs: number): string {
  const ms = parseTime(time)
  return ms === undefined ? '-' : humanDuration(nowMs - ms)
}
