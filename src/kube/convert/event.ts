/** Events: kept in the core group's spelling; events.k8s.io/v1 has other names for some fields, and prints others. */

import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { always, arranged, type Fields } from './fields.ts'

const eventNames: readonly (readonly [core: string, events: string])[] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
  ['reportingComponent', 'reportingController'],
]
const toEvents: ReadonlyMap<string, string> = new Map(eventNames)
const toCore: ReadonlyMap<string, string> = new Map(eventNames.map(([core, events]) => [events, core]))

const noTime = always(null)
const empty = always(new Map())
const head: Fields = { kind: 'filled', apiVersion: 'filled', metadata: empty }

const coreFields: Fields = {
  ...head,
  involvedObject: empty,
  reason: 'filled',
  message: 'filled',
  source: empty,
  firstTimestamp: noTime,
  lastTimestamp: noTime,
  count: 'filled',
  type: 'filled',
  eventTime: noTime,
  series: 'set',
  action: 'filled',
  related: 'set',
  reportingComponent: always(''),
  reportingInstance: always(''),
}

const eventsFields: Fields = {
  ...head,
  eventTime: noTime,
  series: 'set',
  reportingController: 'filled',
  reportingInstance: 'filled',
  action: 'filled',
  reason: 'filled',
  regarding: empty,
  related: 'set',
  note: 'filled',
  type: 'filled',
  deprecatedSource: empty,
  deprecatedFirstTimestamp: noTime,
  deprecatedLastTimestamp: noTime,
  deprecatedCount: 'filled',
}

const coreSeries: Fields = { count: 'filled', lastObservedTime: noTime }
const eventsSeries: Fields = { count: always(0), lastObservedTime: noTime }

/** From events.k8s.io/v1 to the stored form. */
export function eventToStored(event: JsonObject): JsonObject {
  return arranged(renamed(event, toCore, coreSeries), coreFields)
}

/** From the stored form to events.k8s.io/v1. */
export function eventFromStored(stored: JsonObject): JsonObject {
  return arranged(renamed(stored, toEvents, eventsSeries), eventsFields)
}

/** A member that already has a name of the other version means nothing in its own: it must not hide the renamed one. */
function renamed(event: JsonObject, names: ReadonlyMap<string, string>, series: Fields): JsonObject {
  const taken = new Set(names.values())
  const result: JsonObject = new Map()
  for (const [name, value] of event) {
    if (!taken.has(name)) result.set(names.get(name) ?? name, name === 'series' ? seriesAs(value, series) : value)
  }
  return result
}

function seriesAs(value: Json, fields: Fields): Json {
  return isObject(value) ? arranged(value, fields) : value
}
