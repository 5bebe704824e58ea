/**
 * Horizontal pod autoscalers: kept as autoscaling/v2. Of what v1 has no field for, metrics, conditions and behavior are
 * carried in annotations there, so that a v1 client which reads, changes and writes an object loses nothing.
 */

import { bytewise } from '../json/goformat.ts'
import { field, isObject, type Json, type JsonObject, printJson } from '../json/json.ts'
import { behaviorFromAnnotation, behaviorToAnnotation } from './behavior.ts'
import { always, arranged, type Fields, objectOr } from './fields.ts'
import {
  cpuUtilization,
  metricStatusToV1,
  metricStatusToV2,
  metricToV1,
  metricToV2,
  v1Metric,
  v1MetricStatus,
} from './metric.ts'
import { readTyped, type Struct } from './typed.ts'

const prefix = 'autoscaling.alpha.kubernetes.io/'
const metricsKey = `${prefix}metrics`
const currentMetricsKey = `${prefix}current-metrics`
const conditionsKey = `${prefix}conditions`
const behaviorKey = `${prefix}behavior`
/** The last two are reserved in the same way, but nothing is carried in them. */
const carrying = [
  metricsKey,
  currentMetricsKey,
  conditionsKey,
  behaviorKey,
  `${prefix}scale-down-tolerance`,
  `${prefix}scale-up-tolerance`,
]

const objectFields: Fields = {
  kind: 'filled',
  apiVersion: 'filled',
  metadata: always(new Map()),
  spec: always(new Map()),
  status: always(new Map()),
}
const scaleFields: Fields = { scaleTargetRef: 'set', minReplicas: 'set', maxReplicas: 'set' }
const v1OnlySpec: Fields = { targetCPUUtilizationPercentage: 'set' }
const v2OnlySpec: Fields = { metrics: 'filled', behavior: 'set' }
const observed: Fields = { observedGeneration: 'set', lastScaleTime: 'set' }
const v1OnlyStatus: Fields = { currentCPUUtilizationPercentage: 'set' }
const v2OnlyStatus: Fields = { currentMetrics: always(null), conditions: 'filled' }
const v1Spec: Fields = { ...scaleFields, ...v1OnlySpec }
const v2Spec: Fields = { ...scaleFields, ...v2OnlySpec }
const v1Status: Fields = { ...observed, currentReplicas: always(0), desiredReplicas: always(0), ...v1OnlyStatus }
const v2Status: Fields = { ...observed, currentReplicas: 'filled', desiredReplicas: always(0), ...v2OnlyStatus }

const conditionShape: Struct = {
  type: 'text',
  status: 'text',
  lastTransitionTime: 'time',
  reason: 'text',
  message: 'text',
}
const conditionFields: Fields = {
  type: always(''),
  status: always(''),
  lastTransitionTime: always(null),
  reason: 'filled',
  message: 'filled',
}

/** From the stored form to autoscaling/v1. */
export function hpaFromStored(stored: JsonObject): JsonObject {
  const spec = objectOr(stored.get('spec'))
  const status = objectOr(stored.get('status'))
  const metrics = listAt(spec, 'metrics')
  const others = metrics.filter((metric) => cpuUtilization(metric, 'target') === undefined)
  const current = listAt(status, 'currentMetrics')
  const conditions = listAt(status, 'conditions')
  const behavior = spec.get('behavior')
  const carried = new Map<string, Json>()
  if (others.length > 0) carried.set(metricsKey, others.map(metricToV1))
  if (current.length > 0) carried.set(currentMetricsKey, current.map(metricStatusToV1))
  if (isObject(behavior)) carried.set(behaviorKey, behaviorToAnnotation(behavior))
  if (conditions.length > 0) carried.set(conditionsKey, conditions.map(condition))
  const percentages = (list: readonly Json[], values: 'target' | 'current') =>
    list.map((metric) => cpuUtilization(metric, values)).filter((share) => share !== undefined)
  return withParts(stored, {
    carried,
    // Of several, the first is the target and the last the current value: so the real server reads them.
    spec: arranged(set(spec, 'targetCPUUtilizationPercentage', percentages(metrics, 'target')[0]), v1Spec, v2OnlySpec),
    status: arranged(
      set(status, 'currentCPUUtilizationPercentage', percentages(current, 'current').at(-1)),
      v1Status,
      v2OnlyStatus,
    ),
  })
}

/** From autoscaling/v1 to the stored form. */
export function hpaToStored(object: JsonObject): JsonObject {
  const spec = objectOr(object.get('spec'))
  const status = objectOr(object.get('status'))
  const carried = (key: string): string | undefined => {
    const value = field(object, 'metadata', 'annotations', key)
    return typeof value === 'string' ? value : undefined
  }
  return withParts(object, {
    carried: new Map(),
    spec: arranged(
      set(set(spec, 'metrics', metricsOf(spec, carried(metricsKey))), 'behavior', behaviorOf(carried(behaviorKey))),
      v2Spec,
      v1OnlySpec,
    ),
    status: arranged(
      set(
        set(status, 'currentMetrics', currentOf(status, carried(currentMetricsKey))),
        'conditions',
        carriedList(carried(conditionsKey), conditionShape)?.map(condition),
      ),
      v2Status,
      v1OnlyStatus,
    ),
  })
}

/** The stored form itself never has the annotations that carry fields of v1; a client's are dropped. */
export function withoutCarried(object: JsonObject): JsonObject {
  const annotations = field(object, 'metadata', 'annotations')
  if (!isObject(annotations) || !carrying.some((key) => annotations.has(key))) return object
  return new Map(object).set('metadata', withAnnotations(objectOr(object.get('metadata')), new Map()))
}

/** Used when the object does not say what to measure: v1 has no other place for this default. */
const defaultUtilization = 80

function metricsOf(spec: JsonObject, annotation: string | undefined): Json {
  const others = carriedList(annotation, v1Metric)?.map(metricToV2) ?? []
  const share = spec.get('targetCPUUtilizationPercentage') ?? (others.length === 0 ? defaultUtilization : null)
  return share === null ? others : [...others, cpuMetric('target', [['type', 'Utilization']], share)]
}

/** The annotation holds more than the percentage, which is one of its values. */
function currentOf(status: JsonObject, annotation: string | undefined): Json | undefined {
  const carried = carriedList(annotation, v1MetricStatus)?.map(metricStatusToV2)
  const share = status.get('currentCPUUtilizationPercentage') ?? null
  return carried ?? (share === null ? undefined : [cpuMetric('current', [], share)])
}

function cpuMetric(values: string, more: readonly (readonly [string, Json])[], share: Json): JsonObject {
  const resource: JsonObject = new Map<string, Json>([
    ['name', 'cpu'],
    [values, new Map([...more, ['averageUtilization', share]])],
  ])
  return new Map<string, Json>([
    ['type', 'Resource'],
    ['resource', resource],
  ])
}

function behaviorOf(annotation: string | undefined): Json | undefined {
  return annotation === undefined ? undefined : behaviorFromAnnotation(annotation)
}

function carriedList(annotation: string | undefined, element: Struct): Json[] | undefined {
  const list = annotation === undefined ? undefined : readTyped(annotation, [element])
  return Array.isArray(list) ? list : undefined
}

function condition(value: Json): JsonObject {
  return arranged(objectOr(value), conditionFields)
}

function listAt(object: JsonObject, name: string): readonly Json[] {
  const value = object.get(name)
  return Array.isArray(value) ? value : []
}

/** A copy with this member, or without it. */
function set(object: JsonObject, name: string, value: Json | undefined): JsonObject {
  const copy: JsonObject = new Map(object)
  if (value === undefined) copy.delete(name)
  else copy.set(name, value)
  return copy
}

type Parts = { readonly carried: ReadonlyMap<string, Json>; readonly spec: JsonObject; readonly status: JsonObject }

function withParts(object: JsonObject, { carried, spec, status }: Parts): JsonObject {
  const metadata = withAnnotations(objectOr(object.get('metadata')), carried)
  return arranged(
    new Map<string, Json>([...object, ['metadata', metadata], ['spec', spec], ['status', status]]),
    objectFields,
  )
}

/** What Go prints behind annotations. */
const behindAnnotations: ReadonlySet<string> = new Set(['ownerReferences', 'finalizers', 'managedFields'])

/** Metadata whose annotations carry exactly this; where they change they come sorted, as Go prints maps. */
function withAnnotations(metadata: JsonObject, carried: ReadonlyMap<string, Json>): JsonObject {
  const before = objectOr(metadata.get('annotations'))
  if (carried.size === 0 && !carrying.some((key) => before.has(key))) return metadata
  const kept = [...before].filter(([key]) => !carrying.includes(key))
  const texts = [...carried].map(([key, value]) => [key, printJson(value)] as const)
  const annotations: JsonObject = new Map([...kept, ...texts].sort(([a], [b]) => bytewise(a, b)))
  const others = [...metadata].filter(([name]) => name !== 'annotations')
  const head = others.filter(([name]) => !behindAnnotations.has(name))
  const tail = others.filter(([name]) => behindAnnotations.has(name))
  return new Map<string, Json>([
    ...head,
    ...(annotations.size > 0 ? [['annotations', annotations] as const] : []),
    ...tail,
  ])
}
