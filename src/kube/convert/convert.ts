/**
 * Two versions of one built-in resource whose objects have different shapes: autoscaling/v1 beside the stored v2, and
 * events.k8s.io/v1 beside the stored core form. Everything else is stored as it is served. Trees are never changed;
 * what stays as it is, is shared between the given one and the result.
 */

import { type JsonObject, parseJson, printJson } from '../json/json.ts'
import { apiVersion, type Resource } from '../resource.ts'
import { eventFromStored, eventToStored } from './event.ts'
import { hpaFromStored, hpaToStored, withoutCarried } from './hpa.ts'

type Conversion = {
  readonly storageVersion: string
  readonly toStored: (object: JsonObject) => JsonObject
  readonly fromStored?: (stored: JsonObject) => JsonObject
}

const conversions: Readonly<Record<string, Conversion>> = {
  'autoscaling/v1/horizontalpodautoscalers': {
    storageVersion: 'autoscaling/v2',
    toStored: hpaToStored,
    fromStored: hpaFromStored,
  },
  'autoscaling/v2/horizontalpodautoscalers': { storageVersion: 'autoscaling/v2', toStored: withoutCarried },
  'events.k8s.io/v1/events': { storageVersion: 'v1', toStored: eventToStored, fromStored: eventFromStored },
}

function conversionOf(resource: Resource): Conversion | undefined {
  return resource.custom ? undefined : conversions[`${apiVersion(resource)}/${resource.resource}`]
}

/** From a stored list item to the same of this version; undefined where they are the same bytes. */
export function readConverter(resource: Resource): ((stored: Buffer) => Buffer) | undefined {
  const convert = conversionOf(resource)?.fromStored
  if (convert === undefined) return undefined
  return (stored) => Buffer.from(printJson(convert(parseJson(stored) as JsonObject)))
}

/** The object as it is stored; an apiVersion that it names becomes that of the stored form. */
export function toStored(resource: Resource, object: JsonObject): JsonObject {
  const conversion = conversionOf(resource)
  return conversion === undefined ? object : versioned(conversion.toStored(object), conversion.storageVersion)
}

/** The stored object as this version serves it; an apiVersion that it names becomes this version's. */
export function fromStored(resource: Resource, stored: JsonObject): JsonObject {
  const convert = conversionOf(resource)?.fromStored
  return convert === undefined ? stored : versioned(convert(stored), apiVersion(resource))
}

function versioned(object: JsonObject, version: string): JsonObject {
  const named = object.get('apiVersion')
  return named === undefined || named === version ? object : new Map(object).set('apiVersion', version)
}
