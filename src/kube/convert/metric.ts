/**
 * What a horizontal pod autoscaler measures. autoscaling/v2 groups a metric's name and its values in objects of their
 * own; autoscaling/v1, whose metrics live in annotations, has them flat. One table per source serves both directions.
 */

import { field, isObject, type Json, type JsonObject, text } from '../json/json.ts'
import { always, arranged, type Fields, objectOr, type Print } from './fields.ts'
import type { Shape, Struct } from './typed.ts'

type Row = readonly [v1: string, v2: readonly string[], shape: Shape, print: Print]
/** Rows in v1's order; `order` is v2's. */
type MetricSource = { readonly rows: readonly Row[]; readonly order: Fields }
type MetricSources = Readonly<Record<string, MetricSource>>

const reference: Fields = { kind: always(''), name: always(''), apiVersion: 'filled' }
const described: Row = ['target', ['describedObject'], { kind: 'text', name: 'text', apiVersion: 'text' }, 'set']
const metricName: Row = ['metricName', ['metric', 'name'], 'text', always('')]
const named: Row = ['name', ['name'], 'text', always('')]
const container: Row = ['container', ['container'], 'text', always('')]

const selector = (v1 = 'selector'): Row => [v1, ['metric', 'selector'], 'object', 'set']
const amount = (v1: string, group: string, v2: string, print: Print): Row => [v1, [group, v2], 'quantity', print]
const share = (v1: string, group: string): Row => [v1, [group, 'averageUtilization'], 'int32', 'set']

const zero = always('0')
const group = always(new Map())
const metricAnd = (values: string): Fields => ({ metric: group, [values]: group })
const nameAnd = (values: string): Fields => ({ name: always(''), [values]: group, container: 'set' })

const targets = [
  share('targetAverageUtilization', 'target'),
  amount('targetAverageValue', 'target', 'averageValue', 'set'),
]
const specSources: MetricSources = {
  object: {
    rows: [
      described,
      metricName,
      amount('targetValue', 'target', 'value', zero),
      selector(),
      amount('averageValue', 'target', 'averageValue', 'set'),
    ],
    order: { describedObject: group, target: group, metric: group },
  },
  pods: {
    rows: [metricName, amount('targetAverageValue', 'target', 'averageValue', zero), selector()],
    order: metricAnd('target'),
  },
  resource: { rows: [named, ...targets], order: nameAnd('target') },
  containerResource: { rows: [named, ...targets, container], order: nameAnd('target') },
  external: {
    rows: [
      metricName,
      selector('metricSelector'),
      amount('targetValue', 'target', 'value', 'set'),
      amount('targetAverageValue', 'target', 'averageValue', 'set'),
    ],
    order: metricAnd('target'),
  },
}

const currents = [
  share('currentAverageUtilization', 'current'),
  amount('currentAverageValue', 'current', 'averageValue', zero),
]
const statusSources: MetricSources = {
  object: {
    rows: [
      described,
      metricName,
      amount('currentValue', 'current', 'value', zero),
      selector(),
      amount('averageValue', 'current', 'averageValue', 'set'),
    ],
    order: { metric: group, current: group, describedObject: group },
  },
  pods: {
    rows: [metricName, amount('currentAverageValue', 'current', 'averageValue', zero), selector()],
    order: metricAnd('current'),
  },
  resource: { rows: [named, ...currents], order: nameAnd('current') },
  containerResource: { rows: [named, ...currents, container], order: nameAnd('current') },
  external: {
    rows: [
      metricName,
      selector('metricSelector'),
      amount('currentValue', 'current', 'value', zero),
      amount('currentAverageValue', 'current', 'averageValue', 'set'),
    ],
    order: metricAnd('current'),
  },
}

const metricFields: Fields = {
  type: always(''),
  object: 'set',
  pods: 'set',
  resource: 'set',
  containerResource: 'set',
  external: 'set',
}
const values: Fields = { value: 'set', averageValue: 'set', averageUtilization: 'set' }
const parts: Readonly<Record<string, Fields>> = {
  metric: { name: always(''), selector: 'set' },
  target: { type: always(''), ...values },
  current: values,
  describedObject: reference,
}

/** v1's metric and metric status, as the annotations hold them. */
export const v1Metric: Struct = structOf(specSources)
export const v1MetricStatus: Struct = structOf(statusSources)

function structOf(sources: MetricSources): Struct {
  const members = Object.entries(sources).map(([name, { rows }]) => {
    return [name, Object.fromEntries(rows.map(([v1, , shape]) => [v1, shape]))] as const
  })
  return { type: 'text', ...Object.fromEntries(members) }
}

export const metricToV1 = (metric: Json): JsonObject => eachSource(metric, specSources, flat)
export const metricStatusToV1 = (status: Json): JsonObject => eachSource(status, statusSources, flat)
export const metricToV2 = (metric: Json): JsonObject => eachSource(metric, specSources, grouped)
export const metricStatusToV2 = (status: Json): JsonObject => eachSource(status, statusSources, grouped)

type Rewrite = (from: JsonObject, source: MetricSource, name: string) => JsonObject

function eachSource(metric: Json, sources: MetricSources, rewrite: Rewrite): JsonObject {
  const result: JsonObject = new Map(objectOr(metric))
  for (const [name, source] of Object.entries(sources)) {
    const from = result.get(name)
    if (isObject(from)) result.set(name, rewrite(from, source, name))
  }
  return arranged(result, metricFields)
}

function flat(from: JsonObject, { rows, order }: MetricSource): JsonObject {
  const result: JsonObject = new Map()
  for (const [v1, v2] of rows) result.set(v1, field(from, ...v2) ?? null)
  if (result.has('target')) result.set('target', arranged(objectOr(result.get('target')), reference))
  for (const [name, value] of from) if (!Object.hasOwn(order, name)) result.set(name, value)
  return arranged(result, Object.fromEntries(rows.map(([v1, , , print]) => [v1, print])))
}

function grouped(from: JsonObject, { rows, order }: MetricSource, source: string): JsonObject {
  const result: JsonObject = new Map()
  const known = new Set(rows.map(([v1]) => v1))
  for (const [name, value] of from) if (!known.has(name)) result.set(name, value)
  for (const [v1, path, , print] of rows) {
    const value = from.get(v1) ?? (typeof print === 'object' ? print.zero : null)
    const [head = '', member] = path
    if (value === null) continue
    if (member === undefined) result.set(head, value)
    else result.set(head, new Map([...objectOr(result.get(head)), [member, value]]))
  }
  if (Object.hasOwn(order, 'target')) result.set('target', typedTarget(source, objectOr(result.get('target'))))
  for (const [part, fields] of Object.entries(parts)) {
    if (Object.hasOwn(order, part)) result.set(part, arranged(objectOr(result.get(part)), fields))
  }
  return arranged(result, order)
}

/** v1 does not say which of its values is the target: it follows from those that are there. */
function typedTarget(source: string, target: JsonObject): JsonObject {
  const result: JsonObject = new Map(target)
  if (target.has('averageUtilization')) return result.set('type', 'Utilization')
  if (source === 'object' && target.has('averageValue') && isZeroQuantity(target.get('value'))) result.delete('value')
  const first = source === 'object' ? !target.has('averageValue') : target.has('value')
  return result.set('type', first ? 'Value' : 'AverageValue')
}

/** v1 cannot leave this value out, and v2 refuses a zero. */
function isZeroQuantity(value: Json | undefined): boolean {
  return value === 0 || (typeof value === 'string' && /^[+-]?[0.]+([eE].*|[A-Za-z]*)$/.test(value))
}

/** The metric that v1 has a field of its own for. */
export function cpuUtilization(metric: Json, values: 'target' | 'current'): Json | undefined {
  if (text(metric, 'type') !== 'Resource' || text(metric, 'resource', 'name') !== 'cpu') return undefined
  return field(metric, 'resource', values, 'averageUtilization') ?? undefined
}
