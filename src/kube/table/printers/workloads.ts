/** Rows of what runs pods: controllers, jobs, templates, autoscalers and disruption budgets. */

import { ageOf, humanDuration, setTime } from '../duration.ts'
import { printPod } from './pods.ts'
import {
  age,
  type Cell,
  condition,
  count,
  deleting,
  field,
  formatLabels,
  formatSelector,
  list,
  nameOf,
  type Printers,
  record,
  selectorText,
  shortened,
  text,
  textOr,
  type View,
} from './read.ts'

export const workloadPrinters: Printers = {
  pods: printPod,
  podtemplates: (object) => [
    nameOf(object),
    ...containersOf(field(object, 'template')),
    formatLabels(record(object, 'template', 'metadata', 'labels')),
  ],
  replicationcontrollers: (object, nowMs) => [
    ...replicaCells(object, nowMs),
    ...containersOf(field(object, 'spec', 'template')),
    formatLabels(record(object, 'spec', 'selector')),
  ],
  'replicasets.apps': (object, nowMs) => [
    ...replicaCells(object, nowMs),
    ...containersOf(field(object, 'spec', 'template')),
    formatSelector(field(object, 'spec', 'selector')),
  ],
  'deployments.apps': (object, nowMs) => [
    nameOf(object),
    readyOf(object),
    count(object, 'status', 'updatedReplicas'),
    count(object, 'status', 'availableReplicas'),
    age(object, nowMs),
    ...containersOf(field(object, 'spec', 'template')),
    selectorText(field(object, 'spec', 'selector')) ?? '<invalid>',
  ],
  'scales.autoscaling': (object, nowMs) => [
    nameOf(object),
    count(object, 'spec', 'replicas'),
    count(object, 'status', 'replicas'),
    age(object, nowMs),
  ],
  'statefulsets.apps': (object, nowMs) => [
    nameOf(object),
    readyOf(object),
    age(object, nowMs),
    ...containersOf(field(object, 'spec', 'template')),
  ],
  'daemonsets.apps': (object, nowMs) => [
    nameOf(object),
    count(object, 'status', 'desiredNumberScheduled'),
    count(object, 'status', 'currentNumberScheduled'),
    count(object, 'status', 'numberReady'),
    count(object, 'status', 'updatedNumberScheduled'),
    count(object, 'status', 'numberAvailable'),
    formatLabels(record(object, 'spec', 'template', 'spec', 'nodeSelector')),
    age(object, nowMs),
    ...containersOf(field(object, 'spec', 'template')),
    formatSelector(field(object, 'spec', 'selector')),
  ],
  'controllerrevisions.apps': (object, nowMs) => [
    nameOf(object),
    controllerOf(object),
    count(object, 'revision'),
    age(object, nowMs),
  ],
  'jobs.batch': (object, nowMs) => [
    nameOf(object),
    jobStatus(object),
    jobCompletions(object),
    jobDuration(object, nowMs),
    age(object, nowMs),
    ...containersOf(field(object, 'spec', 'template')),
    formatSelector(field(object, 'spec', 'selector')),
  ],
  'cronjobs.batch': (object, nowMs) => [
    nameOf(object),
    text(object, 'spec', 'schedule'),
    textOr('<none>', object, 'spec', 'timeZone'),
    suspended(field(object, 'spec', 'suspend')),
    list(object, 'status', 'active').length,
    lastSchedule(field(object, 'status', 'lastScheduleTime'), nowMs),
    age(object, nowMs),
    ...containersOf(field(object, 'spec', 'jobTemplate', 'spec', 'template')),
    formatSelector(field(object, 'spec', 'jobTemplate', 'spec', 'selector')),
  ],
  'horizontalpodautoscalers.autoscaling': (object, nowMs) => [
    nameOf(object),
    `${text(object, 'spec', 'scaleTargetRef', 'kind')}/${text(object, 'spec', 'scaleTargetRef', 'name')}`,
    metricsOf(object),
    textOr('<unset>', object, 'spec', 'minReplicas'),
    count(object, 'spec', 'maxReplicas'),
    count(object, 'status', 'currentReplicas'),
    age(object, nowMs),
  ],
  'poddisruptionbudgets.policy': (object, nowMs) => [
    nameOf(object),
    textOr('N/A', object, 'spec', 'minAvailable'),
    textOr('N/A', object, 'spec', 'maxUnavailable'),
    count(object, 'status', 'disruptionsAllowed'),
    age(object, nowMs),
  ],
}

function replicaCells(object: View, nowMs: number): readonly Cell[] {
  return [
    nameOf(object),
    count(object, 'spec', 'replicas'),
    count(object, 'status', 'replicas'),
    count(object, 'status', 'readyReplicas'),
    age(object, nowMs),
  ]
}

function readyOf(object: View): string {
  return `${count(object, 'status', 'readyReplicas')}/${count(object, 'spec', 'replicas')}`
}

/** Names and images of a pod template's containers, in one cell each. */
function containersOf(template: unknown): readonly [names: string, images: string] {
  const containers = list(template, 'spec', 'containers')
  return [containers.map((one) => text(one, 'name')).join(','), containers.map((one) => text(one, 'image')).join(',')]
}

function controllerOf(object: View): string {
  const owner = list(object, 'metadata', 'ownerReferences').find((entry) => field(entry, 'controller') === true)
  if (owner === undefined) return '<none>'
  const version = text(owner, 'apiVersion')
  const group = version.includes('/') ? `.${version.slice(0, version.indexOf('/'))}` : ''
  return `${(text(owner, 'kind') + group).toLowerCase()}/${text(owner, 'name')}`
}

/** In the order that decides when several conditions hold. */
function jobStatus(object: View): string {
  const holds = (type: string): boolean => text(condition(object, type), 'status') === 'True'
  for (const type of ['Complete', 'Failed']) if (holds(type)) return type
  if (deleting(object)) return 'Terminating'
  for (const type of ['Suspended', 'FailureTarget', 'SuccessCriteriaMet']) if (holds(type)) return type
  return 'Running'
}

function jobCompletions(object: View): string {
  const succeeded = count(object, 'status', 'succeeded')
  if (field(object, 'spec', 'completions') !== undefined) return `${succeeded}/${count(object, 'spec', 'completions')}`
  const parallelism = count(object, 'spec', 'parallelism')
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function jobDuration(object: View, nowMs: number): string {
  const start = setTime(field(object, 'status', 'startTime'))
  if (start === undefined) return ''
  return humanDuration((setTime(field(object, 'status', 'completionTime')) ?? nowMs) - start)
}

function suspended(value: unknown): string {
  if (value === undefined) return '<unset>'
  return value === true ? 'True' : 'False'
}

function lastSchedule(value: unknown, nowMs: number): string {
  return value === undefined ? '<none>' : ageOf(value, nowMs)
}

/** More metrics than this are only counted. */
const SHOWN_METRICS = 2

function metricsOf(object: View): string {
  const specs = list(object, 'spec', 'metrics')
  const statuses = list(object, 'status', 'currentMetrics')
  if (specs.length > 0) {
    return shortened(
      specs.map((spec, index) => metricText(spec, statuses[index])),
      SHOWN_METRICS,
      ', ',
    )
  }
  // autoscaling/v1 knows one metric only, under a name of its own.
  if (field(object, 'spec', 'targetCPUUtilizationPercentage') === undefined) return '<none>'
  const current = field(object, 'status', 'currentCPUUtilizationPercentage')
  return `cpu: ${percent(current, '<unknown>')}/${percent(field(object, 'spec', 'targetCPUUtilizationPercentage'), '')}`
}

function percent(value: unknown, absent: string): string {
  return typeof value === 'number' ? `${value}%` : absent
}

/** `current/target` of one metric; which quantity is compared depends on the kind of metric and of target. */
function metricText(spec: unknown, status: unknown): string {
  const sources: Readonly<Record<string, string>> = {
    External: 'external',
    Pods: 'pods',
    Object: 'object',
    Resource: 'resource',
    ContainerResource: 'containerResource',
  }
  const source = sources[text(spec, 'type')]
  if (source === undefined) return '<unknown type>'
  const target = field(spec, source, 'target')
  const current = field(status, source, 'current')
  const average = field(target, 'averageValue') !== undefined
  if (source === 'pods') return `${quantity(current, 'averageValue')}/${textOr('<nil>', target, 'averageValue')}`
  if (source === 'external' || source === 'object') {
    if (!average) return `${quantity(current, 'value')}/${textOr('<nil>', target, 'value')}`
    return `${text(current, 'averageValue') || '<unknown>'}/${text(target, 'averageValue')} (avg)`
  }
  const name = text(spec, source, 'name')
  if (average) return `${name}: ${quantity(current, 'averageValue')}/${text(target, 'averageValue')}`
  const used = percent(field(current, 'averageUtilization'), '<unknown>')
  return `${name}: ${used}/${percent(field(target, 'averageUtilization'), '<auto>')}`
}

/** A quantity that was measured; the last word is Go's for a measurement that left it out. */
function quantity(current: unknown, name: string): string {
  return current === undefined ? '<unknown>' : textOr('<nil>', current, name)
}
