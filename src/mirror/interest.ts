/**
 * An interest: what a caller wants mirrored. Resource, namespace and both selectors, normalised, so that two spellings of
 * one wish are the same interest. Which interest covers which read is decided here, conservatively: every requirement of
 * the interest must stand in the request.
 */
import { narrowedTo } from '../kube/fields.ts'
import { parseFieldSelector } from '../kube/fieldselector.ts'
import type { Scope } from '../kube/scope.ts'
import { parseLabelSelector } from '../kube/selector.ts'

export type Interest = Scope & {
  /** Its name in the store, the log and `ake status`. */
  readonly name: string
}

const noLabels = parseLabelSelector('')
const noFields = parseFieldSelector('')

export function interestOf(scope: Omit<Scope, 'labels' | 'fields'> & Partial<Scope>): Interest {
  const { group, version, resource, namespace, labels = noLabels, fields = noFields } = scope
  return { group, version, resource, namespace, labels, fields, name: nameOf({ ...scope, labels, fields }) }
}

/** The scope of one object, '' for all: what a GET asks for, and what a write concerns. */
export function scopeOfName(of: Omit<Scope, 'labels' | 'fields'>, name: string): Scope {
  const { group, version, resource, namespace } = of
  const fields = name === '' ? noFields : narrowedTo(name, noFields)
  return { group, version, resource, namespace, labels: noLabels, fields }
}

/** `apps/v1/deployments@shop?app=web&metadata.name=x`: readable, and one text for one wish. */
function nameOf({ group, version, resource, namespace, labels, fields }: Scope): string {
  // A caller may write anything where a namespace stands: it must not be taken for the selectors that follow.
  const place = namespace === '' ? '' : `@${encodeURIComponent(namespace)}`
  const wishes = labels.empty && fields.empty ? '' : `?${labels}&${fields}`
  return `${resourceName(group, version, resource)}${place}${wishes}`
}

/** `apps/v1/deployments`, `v1/pods`. */
export function resourceName(group: string, version: string, resource: string): string {
  return group === '' ? `${version}/${resource}` : `${group}/${version}/${resource}`
}

/** The same of an interest's name. */
export function resourceOfName(interest: string): string {
  return interest.split(/[@?]/, 1)[0] as string
}

/** Of an interest's name, for figures: its resource, and how much of that it is. No object is named, so there are few. */
export function kindOfName(name: string) {
  const [place = '', ...wishes] = name.split('?')
  const [resource = '', , group = ''] = resourceOfName(place).split('/').reverse()
  const [, fields = ''] = wishes.join('?').split('&')
  const isNamed = fields.split(',').some((one) => one.startsWith('metadata.name='))
  const interest = isNamed ? 'name' : wishes.length > 0 ? 'selector' : place.includes('@') ? 'namespace' : 'all'
  return { group, resource, interest }
}

/** Whether every object that the scope can match is in the interest. */
export function covers(interest: Scope, scope: Scope): boolean {
  if (interest.resource !== scope.resource || interest.version !== scope.version || interest.group !== scope.group) {
    return false
  }
  if (interest.namespace !== '' && interest.namespace !== placeOf(scope)) return false
  return scope.labels.includes(interest.labels) && includesFields(scope, interest)
}

/** A namespace may be asked for by the path or by a field selector. */
function placeOf({ namespace, fields }: Scope): string {
  return namespace === '' ? (fields.required('metadata.namespace') ?? '') : namespace
}

function includesFields(scope: Scope, { fields }: Scope): boolean {
  return fields.requirements.every((wanted) => {
    if (wanted.field === 'metadata.namespace' && wanted.operator === '=' && placeOf(scope) === wanted.value) return true
    return scope.fields.has(wanted)
  })
}

/** How the interest is written down. */
export function printInterest({
  group,
  version,
  resource,
  namespace,
  labels,
  fields,
}: Interest): Record<string, string> {
  return { group, version, resource, namespace, labels: labels.toString(), fields: fields.toString() }
}

export function parseInterest(printed: Record<string, unknown>): Interest {
  const text = (name: string) => String(printed[name] ?? '')
  return interestOf({
    group: text('group'),
    version: text('version'),
    resource: text('resource'),
    namespace: text('namespace'),
    labels: parseLabelSelector(text('labels')),
    fields: parseFieldSelector(text('fields')),
  })
}
