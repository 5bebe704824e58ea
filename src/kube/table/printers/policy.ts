/** Rows of what decides about requests: roles' bindings, certificates, admission, flow control, API services; and devices. */

import { humanDuration } from '../duration.ts'
import {
  age,
  type Cell,
  condition,
  count,
  deleting,
  field,
  list,
  nameOf,
  type Printer,
  type Printers,
  record,
  text,
  textOr,
  texts,
  type View,
} from './read.ts'

const printBinding: Printer = (object, nowMs) => {
  const subjects = list(object, 'subjects')
  const named = (kind: string): readonly unknown[] => subjects.filter((subject) => text(subject, 'kind') === kind)
  const accounts = named('ServiceAccount').map((subject) => `${text(subject, 'namespace')}/${text(subject, 'name')}`)
  return [
    nameOf(object),
    `${text(object, 'roleRef', 'kind')}/${text(object, 'roleRef', 'name')}`,
    age(object, nowMs),
    named('User').map(subjectName).join(', '),
    named('Group').map(subjectName).join(', '),
    accounts.join(', '),
  ]
}

const printWebhooks: Printer = (object, nowMs) => [nameOf(object), list(object, 'webhooks').length, age(object, nowMs)]

const printPolicyBinding: Printer = (object, nowMs) => [
  nameOf(object),
  text(object, 'spec', 'policyName'),
  parameterOf(field(object, 'spec', 'paramRef')),
  age(object, nowMs),
]

export const policyPrinters: Printers = {
  'rolebindings.rbac.authorization.k8s.io': printBinding,
  'clusterrolebindings.rbac.authorization.k8s.io': printBinding,
  'certificatesigningrequests.certificates.k8s.io': (object, nowMs) => [
    nameOf(object),
    age(object, nowMs),
    text(object, 'spec', 'signerName') || '<none>',
    text(object, 'spec', 'username'),
    field(object, 'spec', 'expirationSeconds') === undefined
      ? '<none>'
      : humanDuration(count(object, 'spec', 'expirationSeconds') * 1000),
    requestStatus(object),
  ],
  'validatingwebhookconfigurations.admissionregistration.k8s.io': printWebhooks,
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': printWebhooks,
  'validatingadmissionpolicies.admissionregistration.k8s.io': (object, nowMs) =>
    policyCells(object, 'validations', nowMs),
  'mutatingadmissionpolicies.admissionregistration.k8s.io': (object, nowMs) => policyCells(object, 'mutations', nowMs),
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': printPolicyBinding,
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': printPolicyBinding,
  'flowschemas.flowcontrol.apiserver.k8s.io': (object, nowMs) => [
    nameOf(object),
    text(object, 'spec', 'priorityLevelConfiguration', 'name'),
    count(object, 'spec', 'matchingPrecedence'),
    textOr('<none>', object, 'spec', 'distinguisherMethod', 'type'),
    age(object, nowMs),
    textOr('?', condition(object, 'Dangling'), 'status'),
  ],
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io': (object, nowMs) => {
    const limited = field(object, 'spec', 'limited')
    const queuing = field(limited, 'limitResponse', 'queuing')
    const amount = (of: unknown, name: string): Cell => (of === undefined ? '<none>' : count(of, name))
    return [
      nameOf(object),
      text(object, 'spec', 'type'),
      amount(limited, 'nominalConcurrencyShares'),
      amount(queuing, 'queues'),
      amount(queuing, 'handSize'),
      amount(queuing, 'queueLengthLimit'),
      age(object, nowMs),
    ]
  },
  'apiservices.apiregistration.k8s.io': (object, nowMs) => [
    nameOf(object),
    serviceOf(field(object, 'spec', 'service')),
    availability(condition(object, 'Available')),
    age(object, nowMs),
  ],
  'resourceclaims.resource.k8s.io': (object, nowMs) => [nameOf(object), claimState(object), age(object, nowMs)],
  'resourceslices.resource.k8s.io': (object, nowMs) => [
    nameOf(object),
    text(object, 'spec', 'nodeName'),
    text(object, 'spec', 'driver'),
    text(object, 'spec', 'pool', 'name'),
    age(object, nowMs),
  ],
}

function subjectName(subject: unknown): string {
  return text(subject, 'name')
}

function requestStatus(object: View): string {
  const decided = condition(object, 'Approved') === undefined ? 'Pending' : 'Approved'
  const parts = [condition(object, 'Denied') === undefined ? decided : 'Denied']
  if (condition(object, 'Failed') !== undefined) parts.push('Failed')
  if (text(object, 'status', 'certificate') !== '') parts.push('Issued')
  return parts.join(',')
}

function policyCells(object: View, rules: string, nowMs: number): readonly Cell[] {
  const kind = field(object, 'spec', 'paramKind')
  return [
    nameOf(object),
    list(object, 'spec', rules).length,
    kind === undefined ? '<unset>' : `${text(kind, 'apiVersion')}/${text(kind, 'kind')}`,
    age(object, nowMs),
  ]
}

function parameterOf(reference: unknown): string {
  const name = text(reference, 'name')
  // Whether the parameter's kind is namespaced cannot be told from here.
  if (name !== '') return `${text(reference, 'namespace') || '*'}/${name}`
  const selector = field(reference, 'selector')
  return selector === undefined ? '<unset>' : spelledSelector(selector)
}

/** A selector in the form Go prints the struct, which is what this column really holds. */
function spelledSelector(selector: unknown): string {
  const labels = Object.entries(record(selector, 'matchLabels')).sort(([a], [b]) => (a < b ? -1 : 1))
  const pairs = labels.map(([key, value]) => `${key}: ${String(value)},`).join('')
  const expressions = list(selector, 'matchExpressions').map((entry) => {
    const values = texts(entry, 'values').join(' ')
    return `LabelSelectorRequirement{Key:${text(entry, 'key')},Operator:${text(entry, 'operator')},Values:[${values}],},`
  })
  const spelled = `[]LabelSelectorRequirement{${expressions.join('')}}`
  return `&LabelSelector{MatchLabels:map[string]string{${pairs}},MatchExpressions:${spelled},}`
}

function serviceOf(service: unknown): string {
  return service === undefined ? 'Local' : `${text(service, 'namespace')}/${text(service, 'name')}`
}

function availability(available: unknown): string {
  const status = textOr('Unknown', available, 'status')
  const reason = text(available, 'reason')
  return status === 'True' || reason === '' ? status : `${status} (${reason})`
}

function claimState(object: View): string {
  const states = deleting(object) ? ['deleted'] : []
  if (field(object, 'status', 'allocation') !== undefined) {
    states.push('allocated')
    if (list(object, 'status', 'reservedFor').length > 0) states.push('reserved')
  } else if (!deleting(object)) states.push('pending')
  return states.join(',')
}
