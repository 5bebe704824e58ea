/** Resources inside resources (`x-kubernetes-embedded-resource`): they need a kind and an apiVersion of their own. */

import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { dns1035LabelFaults } from '../names.ts'
import type { FieldError } from '../status.ts'
import { child, invalidField, keyed, NO_PATH, requiredField } from './errors.ts'
import { propertyOf, type Schema, valuesOf } from './schema.ts'

export function checkEmbedded(value: Json, schema: Schema | undefined): FieldError[] {
  const found: FieldError[] = []
  visit(value, schema, NO_PATH, found)
  return found
}

function visit(value: Json, schema: Schema | undefined, path: string, found: FieldError[]): void {
  if (schema === undefined) return
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const item = value[index]!
      // No path is made for what holds nothing, of which there may be very much.
      if (typeof item === 'object' && item !== null) visit(item, schema.items, keyed(path, index), found)
    }
  } else if (isObject(value)) {
    if (schema['x-kubernetes-embedded-resource'] === true) found.push(...checkOne(value, path))
    for (const [key, item] of value) {
      if (typeof item !== 'object') continue
      const property = propertyOf(schema, key)
      if (property !== undefined) visit(item, property, child(path, key), found)
      else visit(item, valuesOf(schema), keyed(path, key), found)
    }
  }
}

function checkOne(value: JsonObject, path: string): FieldError[] {
  const found: FieldError[] = []
  for (const name of ['apiVersion', 'kind']) {
    const item = value.get(name)
    const at = child(path, name)
    if (item === undefined) found.push(requiredField(at))
    else if (typeof item !== 'string') found.push(invalidField(at, item, 'must be a string'))
    else if (item === '') found.push(invalidField(at, item, 'must not be empty'))
    else if (name === 'apiVersion' && item.split('/').length > 2) {
      found.push(invalidField(at, item, `unexpected GroupVersion string: ${item}`))
    } else if (name === 'kind') {
      const wrong = dns1035LabelFaults(item.toLowerCase())
      const detail = `may have mixed case, but should otherwise match: ${wrong.join(',')}`
      if (wrong.length > 0) found.push(invalidField(at, item, detail))
    }
  }
  const metadata = value.get('metadata')
  if (metadata !== undefined && metadata !== null && !isObject(metadata)) {
    found.push(invalidField(child(path, 'metadata'), metadata, 'must be an object'))
  }
  return found
}
