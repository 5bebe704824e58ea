/** Lists and maps that say how they are merged: which combinations of list type, keys and item schema make sense. */

import type { FieldError } from '../status.ts'
import { child, forbiddenField, invalidField, keyed, requiredField, unsupportedField } from './errors.ts'
import { propertyOf, type Schema } from './schema.ts'

const LIST_TYPE = 'x-kubernetes-list-type'
const MAP_TYPE = 'x-kubernetes-map-type'
const KEYS = 'x-kubernetes-list-map-keys'

export function checkListType(schema: Schema, path: string): FieldError[] {
  const found: FieldError[] = []
  const type = schema.type ?? ''
  const listType = schema[LIST_TYPE]
  const mapType = schema[MAP_TYPE]
  const mustBe = (wanted: string, extension: string) => {
    const detail = `must be ${wanted} if ${extension} is specified`
    const at = child(path, 'type')
    if (type !== wanted) found.push(type === '' ? requiredField(at, detail) : invalidField(at, type, detail))
  }
  if (mapType !== undefined) {
    mustBe('object', MAP_TYPE)
    if (mapType !== 'atomic' && mapType !== 'granular') {
      found.push(unsupportedField(child(path, MAP_TYPE), mapType, ['atomic', 'granular']))
    }
  }
  if (listType !== undefined) {
    mustBe('array', LIST_TYPE)
    if (listType !== 'atomic' && listType !== 'set' && listType !== 'map') {
      found.push(unsupportedField(child(path, LIST_TYPE), listType, ['atomic', 'set', 'map']))
    }
    if (listType === 'set' && type === 'array') found.push(...setItems(schema, path))
  }
  const keys = schema[KEYS] ?? []
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty'
    const at = child(path, LIST_TYPE)
    found.push(listType === undefined ? requiredField(at, detail) : invalidField(at, listType, detail))
  }
  if (listType === 'map') found.push(...mapItems(schema, keys, path))
  if ((listType === 'map' || listType === 'set') && schema.items?.nullable === true) {
    const at = child(child(path, 'items'), 'nullable')
    found.push(forbiddenField(at, `cannot be nullable when x-kubernetes-list-type is ${listType}`))
  }
  return found
}

function setItems(schema: Schema, path: string): FieldError[] {
  const { items } = schema
  const at = child(path, 'items')
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set'
  if (items?.type === 'array' && items[LIST_TYPE] !== undefined && items[LIST_TYPE] !== 'atomic') {
    return [invalidField(child(at, LIST_TYPE), items[LIST_TYPE], detail)]
  }
  if (items?.type === 'object' && items[MAP_TYPE] !== 'atomic') {
    return [invalidField(child(at, MAP_TYPE), items[LIST_TYPE] ?? null, detail)]
  }
  return []
}

function mapItems(schema: Schema, keys: readonly string[], path: string): FieldError[] {
  const found: FieldError[] = []
  const keysAt = child(path, KEYS)
  const itemsAt = child(path, 'items')
  const { items } = schema
  if (keys.length === 0) {
    found.push(requiredField(keysAt, 'must not be empty if x-kubernetes-list-type is map'))
  }
  if (items === undefined) {
    found.push(requiredField(itemsAt, 'must have a schema if x-kubernetes-list-type is map'))
    return found
  }
  if (items.type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map"
    found.push(invalidField(child(itemsAt, 'type'), items.type ?? '', detail))
    return found
  }
  for (const [index, name] of keys.entries()) {
    const property = propertyOf(items, name)
    const at = keyed(child(itemsAt, 'properties'), name)
    if (property === undefined) {
      found.push(invalidField(keysAt, [...keys], 'entries must all be names of item properties'))
      continue
    }
    if (property.type === 'array' || property.type === 'object') {
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
      found.push(invalidField(child(at, 'type'), items.type, detail))
    }
    if (keys.indexOf(name) !== index) {
      found.push(invalidField(keysAt, [...keys], 'must not contain duplicate entries'))
    }
    const member = 'this property is in x-kubernetes-list-map-keys, so it'
    if (items.required?.includes(name) !== true && property.default === undefined) {
      found.push(requiredField(child(at, 'default'), `${member} must have a default or be a required property`))
    }
    if (property.nullable === true) found.push(forbiddenField(child(at, 'nullable'), `${member} cannot be nullable`))
  }
  return found
}
