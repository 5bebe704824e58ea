/** Rows of the core group's own kinds: nodes, namespaces, configuration, events, quotas; and leases. */

import { ageOf, setTime } from '../duration.ts'
import {
  age,
  type Cell,
  count,
  field,
  flag,
  list,
  nameOf,
  type Printer,
  type Printers,
  record,
  text,
  type View,
} from './read.ts'

const printEvent: Printer = (event, nowMs) =>
  eventCells(event, nowMs, {
    object: field(event, 'involvedObject'),
    source: field(event, 'source'),
    message: text(event, 'message'),
    count: count(event, 'count'),
    first: field(event, 'firstTimestamp'),
    last: field(event, 'lastTimestamp'),
    controller: text(event, 'reportingComponent'),
  })

const printNewEvent: Printer = (event, nowMs) =>
  eventCells(event, nowMs, {
    object: field(event, 'regarding'),
    source: field(event, 'deprecatedSource'),
    message: text(event, 'note'),
    count: count(event, 'deprecatedCount'),
    first: field(event, 'deprecatedFirstTimestamp'),
    last: field(event, 'deprecatedLastTimestamp'),
    controller: text(event, 'reportingController'),
  })

export const corePrinters: Printers = {
  namespaces: (object, nowMs) => [nameOf(object), text(object, 'status', 'phase'), age(object, nowMs)],
  nodes: (node, nowMs) => [
    nameOf(node),
    nodeStatus(node),
    nodeRoles(node),
    age(node, nowMs),
    text(node, 'status', 'nodeInfo', 'kubeletVersion'),
    nodeAddress(node, 'InternalIP'),
    nodeAddress(node, 'ExternalIP'),
    text(node, 'status', 'nodeInfo', 'osImage') || '<unknown>',
    nodeKernel(node),
    text(node, 'status', 'nodeInfo', 'containerRuntimeVersion') || '<unknown>',
  ],
  configmaps: (object, nowMs) => [
    nameOf(object),
    size(object, 'data') + size(object, 'binaryData'),
    age(object, nowMs),
  ],
  secrets: (object, nowMs) => [nameOf(object), text(object, 'type'), size(object, 'data'), age(object, nowMs)],
  events: printEvent,
  'events.events.k8s.io': printNewEvent,
  resourcequotas: (object, nowMs) => [nameOf(object), ...quotaCells(object), age(object, nowMs)],
  componentstatuses: (object) => {
    const healthy = list(object, 'conditions').find((entry) => text(entry, 'type') === 'Healthy')
    if (healthy === undefined) return [nameOf(object), 'Unknown', '', '']
    const status = text(healthy, 'status') === 'True' ? 'Healthy' : 'Unhealthy'
    return [nameOf(object), status, text(healthy, 'message'), text(healthy, 'error')]
  },
  'leases.coordination.k8s.io': (object, nowMs) => [
    nameOf(object),
    text(object, 'spec', 'holderIdentity'),
    age(object, nowMs),
  ],
  'runtimeclasses.node.k8s.io': (object, nowMs) => [nameOf(object), text(object, 'handler'), age(object, nowMs)],
  'priorityclasses.scheduling.k8s.io': (object, nowMs) => [
    nameOf(object),
    count(object, 'value'),
    flag(object, 'globalDefault'),
    age(object, nowMs),
    text(object, 'preemptionPolicy'),
  ],
}

function size(object: View, name: string): number {
  return Object.keys(record(object, name)).length
}

function nodeStatus(node: View): string {
  // The last condition of a type counts here.
  const ready = list(node, 'status', 'conditions').findLast((entry) => text(entry, 'type') === 'Ready')
  const known = text(ready, 'status') === 'True' ? 'Ready' : 'NotReady'
  const status = ready === undefined ? 'Unknown' : known
  return flag(node, 'spec', 'unschedulable') ? `${status},SchedulingDisabled` : status
}

const ROLE_PREFIX = 'node-role.kubernetes.io/'
const ROLE_LABEL = 'kubernetes.io/role'

function nodeRoles(node: View): string {
  const roles = new Set<string>()
  for (const [key, value] of Object.entries(record(node, 'metadata', 'labels'))) {
    if (key.startsWith(ROLE_PREFIX)) roles.add(key.slice(ROLE_PREFIX.length))
    else if (key === ROLE_LABEL) roles.add(String(value))
  }
  roles.delete('')
  return [...roles].sort().join(',') || '<none>'
}

function nodeAddress(node: View, type: string): string {
  const address = list(node, 'status', 'addresses').find((entry) => text(entry, 'type') === type)
  return address === undefined ? '<none>' : text(address, 'address')
}

function nodeKernel(node: View): string {
  const kernel = text(node, 'status', 'nodeInfo', 'kernelVersion') || '<unknown>'
  const architecture = text(node, 'status', 'nodeInfo', 'architecture')
  return architecture === '' ? kernel : `${kernel} (${architecture})`
}

/** What the two event APIs name differently. */
type EventParts = {
  readonly object: unknown
  readonly source: unknown
  readonly message: string
  readonly count: number
  readonly first: unknown
  readonly last: unknown
  readonly controller: string
}

function eventCells(event: View, nowMs: number, parts: EventParts): readonly Cell[] {
  const first = ageOf(setTime(parts.first) === undefined ? field(event, 'eventTime') : parts.first, nowMs)
  const series = field(event, 'series')
  let last = setTime(parts.last) === undefined ? first : ageOf(parts.last, nowMs)
  if (series !== undefined) last = ageOf(field(series, 'lastObservedTime'), nowMs)
  const kind = text(parts.object, 'kind').toLowerCase()
  const name = text(parts.object, 'name')
  const component = text(parts.source, 'component') || parts.controller
  const host = text(parts.source, 'host') || text(event, 'reportingInstance')
  return [
    last,
    text(event, 'type'),
    text(event, 'reason'),
    name === '' ? kind : `${kind}/${name}`,
    text(parts.object, 'fieldPath'),
    host === '' ? component : `${component}, ${host}`,
    parts.message.trim(),
    first,
    // An event of the new API that happened once has no count.
    series === undefined ? parts.count || 1 : count(series, 'count'),
    nameOf(event),
  ]
}

/** Used and hard amounts; `limits.*` have a column of their own. */
function quotaCells(object: View): readonly [requests: string, limits: string] {
  const used = record(object, 'status', 'used')
  const requests: string[] = []
  const limits: string[] = []
  for (const [name, hard] of Object.entries(record(object, 'status', 'hard')).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const column = name.startsWith('limits.') ? limits : requests
    column.push(`${name}: ${text(used, name) || '0'}/${String(hard)}`)
  }
  return [requests.join(', '), limits.join(', ')]
}
