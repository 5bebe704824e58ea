/**
 * Whether a schema is structural: every field has a type on the main line of the schema, and `allOf`, `anyOf`, `oneOf`
 * and `not` only restrict values. Pruning and defaulting are defined for such schemas alone.
 */

import type { FieldError } from '../status.ts'
import { child, forbiddenField, invalidField, keyed, requiredField } from './errors.ts'
import { goPattern } from './pattern.ts'
import { propertyOf, type Schema, valuesOf } from './schema.ts'

type Level = 'root' | 'item' | 'field'

const NO_TYPE: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

const INT_OR_STRING = 'x-kubernetes-int-or-string'
const PRESERVE = 'x-kubernetes-preserve-unknown-fields'
const EMBEDDED = 'x-kubernetes-embedded-resource'

export function checkStructural(schema: Schema, path: string): FieldError[] {
  return [...invariants(schema, 'root', path), ...completeness(schema, schema, path, path)]
}

function invariants(schema: Schema, level: Level, path: string): FieldError[] {
  const found: FieldError[] = []
  if (schema.type === 'array' && schema.items === undefined) {
    found.push(requiredField(child(path, 'items'), 'must be specified'))
  }
  if (schema.items !== undefined && !Array.isArray(schema.items)) {
    found.push(...invariants(schema.items, 'item', child(path, 'items')))
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    found.push(...invariants(property, 'field', keyed(child(path, 'properties'), name)))
  }
  const additional = child(path, 'additionalProperties')
  if (schema.additionalProperties !== undefined) {
    if (level === 'root') found.push(forbiddenField(additional, 'must not be used at the root'))
    const values = valuesOf(schema)
    if (values !== undefined) found.push(...invariants(values, 'field', additional))
  }
  found.push(...extensions(schema, path))
  found.push(...typeOf(schema, level, path))
  const whole = isIntOrString(schema.anyOf)
  found.push(...junctors(schema, path, whole, isIntOrString(schema.allOf?.[0]?.anyOf)))
  if (schema[EMBEDDED] === true && schema.additionalProperties !== undefined) {
    found.push(forbiddenField(additional, 'must not be used if x-kubernetes-embedded-resource is set'))
  }
  found.push(...metaFields(schema, level, path))
  if (schema[EMBEDDED] === true && schema[PRESERVE] !== true && Object.keys(schema.properties ?? {}).length === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields'
    found.push(requiredField(child(path, 'properties'), detail))
  }
  return found
}

function extensions(schema: Schema, path: string): FieldError[] {
  if (schema[INT_OR_STRING] !== true) return []
  return [PRESERVE, EMBEDDED]
    .filter((name) => schema[name as typeof PRESERVE] === true)
    .map((name) => invalidField(child(path, name), true, 'must be false if x-kubernetes-int-or-string is true'))
}

function typeOf(schema: Schema, level: Level, path: string): FieldError[] {
  const at = child(path, 'type')
  const type = schema.type ?? ''
  if (schema[EMBEDDED] === true && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true'
    return [type === '' ? requiredField(at, detail) : invalidField(at, type, detail)]
  }
  if (type === '' && schema[INT_OR_STRING] !== true && schema[PRESERVE] !== true) {
    return [requiredField(at, NO_TYPE[level])]
  }
  if (level === 'root' && type !== '' && type !== 'object')
    return [invalidField(at, type, 'must be object at the root')]
  return []
}

function metaFields(schema: Schema, level: Level, path: string): FieldError[] {
  const found: FieldError[] = []
  const resource = level === 'root' || schema[EMBEDDED] === true
  for (const name of ['kind', 'apiVersion']) {
    const property = propertyOf(schema, name)
    if (property !== undefined && resource && property.type !== 'string') {
      const at = child(keyed(child(path, 'properties'), name), 'type')
      found.push(invalidField(at, property.type ?? '', 'must be string'))
    }
  }
  const metadata = propertyOf(schema, 'metadata')
  if (metadata === undefined) return found
  const at = keyed(child(path, 'properties'), 'metadata')
  if (resource && metadata.type !== 'object') {
    found.push(invalidField(child(at, 'type'), metadata.type ?? '', 'must be object'))
  }
  if (level === 'root') {
    const restricts = Object.keys(metadata.properties ?? {}).every((name) => name === 'name' || name === 'generateName')
    const other = Object.keys(metadata).filter((key) => !['type', 'properties', 'default', 'description'].includes(key))
    const said = other.length > 0 || (metadata.description ?? '') !== ''
    if (!restricts || said) {
      const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
      found.push(forbiddenField(at, detail))
    }
  }
  return found
}

/** The one place where types may stand inside a junctor. */
function isIntOrString(anyOf: readonly Schema[] | undefined): boolean {
  if (anyOf?.length !== 2) return false
  const only = (schema: Schema | undefined, type: string) =>
    schema !== undefined && Object.keys(schema).length === 1 && schema.type === type
  return only(anyOf[0], 'integer') && only(anyOf[1], 'string')
}

function junctors(schema: Schema, path: string, skipAnyOf: boolean, skipFirstAllOf: boolean): FieldError[] {
  const found: FieldError[] = []
  for (const name of ['anyOf', 'allOf', 'oneOf'] as const) {
    if (name === 'anyOf' && skipAnyOf) continue
    for (const [index, part] of (schema[name] ?? []).entries()) {
      const skip = name === 'allOf' && index === 0 && skipFirstAllOf
      found.push(...nested(part, keyed(child(path, name), index), skip))
    }
  }
  if (schema.not !== undefined) found.push(...nested(schema.not, child(path, 'not'), false))
  if (schema.pattern !== undefined && schema.pattern !== '') {
    try {
      goPattern(schema.pattern)
    } catch (error) {
      const detail = `must be a valid regular expression, but isn't: error parsing regexp: ${(error as Error).message}`
      found.push(invalidField(child(path, 'pattern'), schema.pattern, detail))
    }
  }
  return found
}

const NOT_NESTED: ReadonlyArray<readonly [key: keyof Schema, detail: string]> = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  [PRESERVE, 'must be false to be structural'],
  [EMBEDDED, 'must be false to be structural'],
  [INT_OR_STRING, 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

/** A schema inside a junctor: it may restrict, not describe. */
function nested(schema: Schema, path: string, skipAnyOf: boolean): FieldError[] {
  const found = junctors(schema, path, skipAnyOf, false)
  if (schema.items !== undefined) found.push(...nested(schema.items, child(path, 'items'), false))
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    found.push(...nested(property, keyed(child(path, 'properties'), name), false))
  }
  for (const [key, detail] of NOT_NESTED) {
    const value = schema[key]
    const set = value !== undefined && value !== false && value !== '' && !(Array.isArray(value) && value.length === 0)
    if (set) found.push(forbiddenField(child(path, key), detail))
  }
  if (propertyOf(schema, 'metadata') !== undefined) {
    const at = keyed(child(path, 'properties'), 'metadata')
    found.push(forbiddenField(at, 'must not be specified in a nested context'))
  }
  return found
}

/** What a junctor at the root restricts must be described on the main line. */
function completeness(part: Schema, main: Schema | undefined, mainPath: string, partPath: string): FieldError[] {
  const found: FieldError[] = []
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, inner] of (part[name] ?? []).entries()) {
      found.push(...described(inner, main, mainPath, keyed(child(partPath, name), index)))
    }
  }
  if (part.not !== undefined) found.push(...described(part.not, main, mainPath, child(partPath, 'not')))
  return found
}

function described(part: Schema, main: Schema | undefined, mainPath: string, partPath: string): FieldError[] {
  if (main === undefined) return [requiredField(mainPath, `because it is defined in ${partPath}`)]
  const found = completeness(part, main, mainPath, partPath)
  if (part.items !== undefined) {
    found.push(...described(part.items, main.items, child(mainPath, 'items'), child(partPath, 'items')))
  }
  for (const [name, property] of Object.entries(part.properties ?? {})) {
    const [mainAt, partAt] = [mainPath, partPath].map((path) => keyed(child(path, 'properties'), name)) as [
      string,
      string,
    ]
    found.push(...described(property, propertyOf(main, name), mainAt, partAt))
  }
  return found
}
