/** The parts of a definition's version that name fields by path: scale, printer columns, selectable fields. */

import { field, isObject, type Json, type JsonObject, text } from '../json/json.ts'
import type { FieldError } from '../status.ts'
import { child, duplicateField, invalidField, keyed, requiredField, tooMany } from './errors.ts'
import { followPath } from './fieldpath.ts'
import type { Schema } from './schema.ts'

function simplePath(path: string, at: string): FieldError[] {
  return path.startsWith('.') ? [] : [invalidField(at, path, 'must be a simple json path starting with .')]
}

export function checkScale(version: JsonObject, path: string): FieldError[] {
  const scale = field(version, 'subresources', 'scale')
  if (!isObject(scale)) return []
  const found: FieldError[] = []
  const under = (key: string, roots: readonly string[], detail: string) => {
    const value = text(scale, key)
    const at = child(path, key)
    const wrong = simplePath(value, at)
    if (wrong.length > 0) found.push(...wrong)
    else if (!roots.some((root) => value.startsWith(root))) found.push(invalidField(at, value, detail))
  }
  for (const [key, root] of [
    ['specReplicasPath', '.spec'],
    ['statusReplicasPath', '.status'],
  ] as const) {
    if (text(scale, key) === '') found.push(requiredField(child(path, key)))
    else under(key, [`${root}.`], `should be a json path under ${root}`)
  }
  if (text(scale, 'labelSelectorPath') !== '') {
    under('labelSelectorPath', ['.spec.', '.status.'], 'should be a json path under either .spec or .status')
  }
  return found
}

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string']
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']

export function checkColumns(version: JsonObject, path: string): FieldError[] {
  const found: FieldError[] = []
  for (const [index, column] of listOf(version, 'additionalPrinterColumns').entries()) {
    const at = (key: string) => child(keyed(path, index), key)
    const type = text(column, 'type')
    const format = text(column, 'format')
    const types = `must be one of ${COLUMN_TYPES.join(',')}`
    if (text(column, 'name') === '') found.push(requiredField(at('name')))
    if (type === '') found.push(requiredField(at('type'), types))
    else if (!COLUMN_TYPES.includes(type)) found.push(invalidField(at('type'), type, types))
    if (format !== '' && !COLUMN_FORMATS.includes(format)) {
      found.push(invalidField(at('format'), format, `must be one of ${COLUMN_FORMATS.join(',')}`))
    }
    const jsonPath = text(column, 'jsonPath')
    if (jsonPath === '') found.push(requiredField(at('JSONPath')))
    else found.push(...simplePath(jsonPath, at('JSONPath')))
  }
  return found
}

/** As many as the real server allows: each is kept per object. */
const SELECTABLE_MAX = 8

export function checkSelectable(version: JsonObject, schema: Schema | undefined, path: string): FieldError[] {
  const found: FieldError[] = []
  const seen = new Set<string>()
  for (const [index, selectable] of listOf(version, 'selectableFields').entries()) {
    const at = child(keyed(path, index), 'jsonPath')
    const jsonPath = text(selectable, 'jsonPath')
    if (jsonPath === '') {
      found.push(requiredField(at))
      continue
    }
    const target = followPath(jsonPath, schema ?? {}, false)
    if (typeof target === 'string') {
      found.push(invalidField(at, jsonPath, `is an invalid path: ${target}`))
      continue
    }
    if (target.names[0] === 'metadata') found.push(invalidField(at, jsonPath, 'must not point to fields in metadata'))
    if (!['string', 'boolean', 'integer'].includes(target.schema?.type ?? '')) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
      found.push(invalidField(at, jsonPath, detail))
    }
    const name = target.names.join('.')
    if (seen.has(name)) found.push(duplicateField(at, jsonPath))
    seen.add(name)
  }
  if (seen.size > SELECTABLE_MAX) found.push(tooMany(path, seen.size, SELECTABLE_MAX))
  return found
}

export function listOf(version: JsonObject, key: string): Json[] {
  const list = version.get(key)
  return Array.isArray(list) ? list : []
}
