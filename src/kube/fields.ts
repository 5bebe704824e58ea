/**
 * Which fields of a resource a field selector may name, and where their values stand in the stored object, so that a
 * scanner can fetch just those. Built-ins have a fixed list each, custom resources name theirs in the CRD.
 */

import { FieldSelector } from './fieldselector.ts'
import { quoted } from './json/gotext.ts'
import { apiVersion, type Resource } from './resource.ts'
import { badRequest, qualified } from './status.ts'

export type FieldPath = {
  /** Dotted; '' for a field that is accepted and always empty. */
  readonly path: string
  /** Read instead where `path` is absent or empty. */
  readonly otherwise?: string
  /** The value where the object is silent; '' if not given. */
  readonly default?: string
}

export type SelectableFields = {
  /** What a client may write, aliases included. */
  readonly supported: readonly string[]
  /** By canonical name: the names a resolved selector uses. */
  readonly paths: Readonly<Record<string, FieldPath>>
  /** The selector over canonical names; refuses fields that this resource does not offer, in kube-apiserver's words. */
  resolve(selector: FieldSelector): FieldSelector
  /** The value of a canonical field in a plain object. */
  read(object: unknown, field: string): string
}

type KindFields = {
  readonly fields: Readonly<Record<string, FieldPath>>
  /** Client's name to canonical name, where they differ. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Canonical names that a client may not write. */
  readonly hidden?: readonly string[]
  readonly refusal?: (field: string, of: Resource) => string
}

const at = (path: string, fallback?: string): FieldPath =>
  fallback === undefined ? { path } : { path, default: fallback }

const named = { 'metadata.name': at('metadata.name') }
const placed = { ...named, 'metadata.namespace': at('metadata.namespace') }

/** Both groups' events are stored in the core form. */
const event = {
  ...placed,
  'involvedObject.kind': at('involvedObject.kind'),
  'involvedObject.namespace': at('involvedObject.namespace'),
  'involvedObject.name': at('involvedObject.name'),
  'involvedObject.uid': at('involvedObject.uid'),
  'involvedObject.apiVersion': at('involvedObject.apiVersion'),
  'involvedObject.resourceVersion': at('involvedObject.resourceVersion'),
  'involvedObject.fieldPath': at('involvedObject.fieldPath'),
  reason: at('reason'),
  reportingComponent: at('reportingComponent'),
  type: at('type'),
}

/** By `resource.group`. Defaults are those the API server would have stored. */
const builtin: Readonly<Record<string, KindFields>> = {
  pods: {
    fields: {
      ...placed,
      'spec.nodeName': at('spec.nodeName'),
      'spec.restartPolicy': at('spec.restartPolicy', 'Always'),
      'spec.schedulerName': at('spec.schedulerName', 'default-scheduler'),
      'spec.serviceAccountName': at('spec.serviceAccountName'),
      'spec.hostNetwork': at('spec.hostNetwork', 'false'),
      'status.phase': at('status.phase', 'Pending'),
      'status.podIP': at('status.podIP'),
      'status.podIPs': at(''),
      'status.nominatedNodeName': at('status.nominatedNodeName'),
    },
    aliases: { 'spec.host': 'spec.nodeName' },
  },
  nodes: { fields: { ...named, 'spec.unschedulable': at('spec.unschedulable', 'false') } },
  services: {
    fields: { ...placed, 'spec.clusterIP': at('spec.clusterIP'), 'spec.type': at('spec.type', 'ClusterIP') },
  },
  namespaces: { fields: { ...named, 'status.phase': at('status.phase', 'Active') } },
  secrets: { fields: { ...placed, type: at('type', 'Opaque') } },
  replicationcontrollers: { fields: { ...placed, 'status.replicas': at('status.replicas', '0') } },
  'jobs.batch': {
    fields: { ...placed, 'status.successful': at('status.succeeded', '0') },
    refusal: (field) => `field label ${quoted(field)} not supported for Job`,
  },
  events: { fields: { ...event, source: { path: 'source.component', otherwise: 'reportingComponent' } } },
  'events.events.k8s.io': {
    fields: event,
    aliases: {
      'regarding.kind': 'involvedObject.kind',
      'regarding.namespace': 'involvedObject.namespace',
      'regarding.name': 'involvedObject.name',
      'regarding.uid': 'involvedObject.uid',
      'regarding.apiVersion': 'involvedObject.apiVersion',
      'regarding.resourceVersion': 'involvedObject.resourceVersion',
      'regarding.fieldPath': 'involvedObject.fieldPath',
      reportingController: 'reportingComponent',
    },
    hidden: [...Object.keys(event).filter((field) => field.startsWith('involvedObject.')), 'reportingComponent'],
  },
  'certificatesigningrequests.certificates.k8s.io': {
    fields: { ...named, 'spec.signerName': at('spec.signerName') },
  },
  'clustertrustbundles.certificates.k8s.io': { fields: { ...named, 'spec.signerName': at('spec.signerName') } },
  'podcertificaterequests.certificates.k8s.io': {
    fields: {
      ...named,
      'spec.signerName': at('spec.signerName'),
      'spec.podName': at('spec.podName'),
      'spec.nodeName': at('spec.nodeName'),
    },
  },
  'resourceslices.resource.k8s.io': {
    fields: { ...named, 'spec.nodeName': at('spec.nodeName'), 'spec.driver': at('spec.driver') },
    refusal: (field, of) => `field label not supported for ${apiVersion(of)}, Kind=${of.kind}: ${field}`,
  },
}

/** Every other built-in: name and namespace, the latter empty on what has none. */
const ordinary: KindFields = {
  fields: placed,
  refusal: (field) => `${quoted(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
}

/** `custom` are the jsonPaths of the CRD version's selectableFields, like `.spec.color`. */
export function selectableFields(resource: Resource, custom: readonly string[] = []): SelectableFields {
  const { fields, aliases = {}, hidden = [], refusal = plainRefusal } = entryOf(resource, custom)
  const own = Object.keys(fields).filter((field) => !hidden.includes(field))
  const canonical = new Map([...own.map((field) => [field, field] as const), ...Object.entries(aliases)])
  const segments = new Map(
    Object.entries(fields).map(([field, { path }]) => [field, path === '' ? [] : path.split('.')]),
  )
  const rename = (field: string): string => {
    const name = canonical.get(field)
    if (name === undefined) throw badRequest(refusal(field, resource))
    return name
  }
  return {
    supported: [...canonical.keys()],
    paths: fields,
    resolve: (selector) => (selector.empty ? selector : selector.renamed(rename)),
    read: (object, field) => {
      const found = valueAt(object, segments.get(field) ?? [])
      if (found !== '') return found
      const { otherwise, default: fallback = '' } = fields[field] ?? at('')
      return (otherwise === undefined ? '' : valueAt(object, otherwise.split('.'))) || fallback
    },
  }
}

/** The selector of a request whose path names one object, as the old `/watch/…/name` form does. */
export function narrowedTo(name: string, selector: FieldSelector): FieldSelector {
  if (selector.empty) return new FieldSelector([{ field: 'metadata.name', operator: '=', value: name }])
  if (selector.required('metadata.name') === name) return selector
  throw badRequest("fieldSelector metadata.name doesn't match requested name")
}

function plainRefusal(field: string): string {
  return `field label not supported: ${field}`
}

function entryOf(resource: Resource, custom: readonly string[]): KindFields {
  if (resource.custom) {
    const names = custom.map((path) => (path.startsWith('.') ? path.slice(1) : path))
    const base = resource.namespaced ? placed : named
    return { fields: { ...base, ...Object.fromEntries(names.map((name) => [name, at(name)])) } }
  }
  const key = qualified(resource)
  return Object.hasOwn(builtin, key) ? (builtin[key] as KindFields) : ordinary
}

/** Text, numbers and booleans as Go prints them; anything else is no value. */
function valueAt(object: unknown, segments: readonly string[]): string {
  let value = object
  for (const segment of segments) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return ''
    value = (value as Record<string, unknown>)[segment]
  }
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
}
