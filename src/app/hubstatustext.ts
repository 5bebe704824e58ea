/** The status of a hub for people at a terminal of 100 columns. */
import { humanDuration, parseTime } from '../kube/table/duration.ts'
import type { HubEdgeStatus, HubResourceStatus, HubStatusDocument } from './hubstatus.ts'
import { aligned, size } from './terminal.ts'

/** `node-2` before `node-10`. */
const inOrder = new Intl.Collator('en', { numeric: true }).compare
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
  const { hub, version, open, why, upstream, cluster, trustsEdges, edges, history } = document
  const rows: [string, string][] = [
    ['Hub:', `${hub}, ake ${version}`],
    ['Edges:', open ? `${edges.length} here` : `${edges.length} here, none is let in: ${why ?? ''}`],
    ['Upstream:', `${upstream.state} for ${ageOf(upstream.since, nowMs)}, ${upstream.why}`],
  ]
  if (cluster !== undefined) {
    const lost = cluster.lost > 0 ? `, versions up to ${cluster.lost} are lost` : ''
    rows.push(['Cluster:', `${cluster.uid}, epoch ${cluster.epoch}${lost}`])
  }
  if (trustsEdges) rows.push(['Trust:', '--trust-edges: every edge may read what this hub may'])
  rows.push(['History:', `${size(history.bytes)} of ${size(history.bytesMax)}`])
  return aligned(
    undefined,
    rows.map((cells) => ({ cells })),
  )
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
      String(edge.interests),
      String(edge.behind),
      size(edge.queuedBytes),
      size(edge.sentBytes),
      size(edge.receivedBytes),
    ],
  }))
  const head = ['EDGE', 'FROM', 'RELEASE', 'STATE', 'FOR', 'INTERESTS', 'BEHIND', 'QUEUED', 'SENT', 'RECEIVED']
  const more = isCut ? `and ${edges.length - edgesMax} more, which are less behind: see --output json\n` : ''
  return `${aligned(head, rows)}${more}`
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

function ageOf(time: string, nowMs: number): string {
  const ms = parseTime(time)
  return ms === undefined ? '-' : humanDuration(nowMs - ms)
}
