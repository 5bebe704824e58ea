/** The field errors of apimachinery, one constructor per type; `path` is a finished field path. */

import type { Json } from '../json/json.ts'
import type { FieldError, FieldReason } from '../status.ts'
import { quote, shown } from './values.ts'

/** How a field path without any element prints. */
export const NO_PATH = '<nil>'

/** Field paths have no leading dot, even where messages name a field of a nameless root. */
export function fieldOf(path: string): string {
  return path === '' ? NO_PATH : path.startsWith('.') ? path.slice(1) : path
}

export function child(path: string, name: string): string {
  return path === '' || path === NO_PATH ? name : `${path}.${name}`
}

export function keyed(path: string, key: string | number): string {
  return path === NO_PATH ? `[${key}]` : `${path}[${key}]`
}

function valued(reason: FieldReason, title: string, path: string, value: Json | undefined, detail: string): FieldError {
  const parts = [value === undefined ? title : `${title}: ${shown(value)}`]
  if (detail !== '') parts.push(detail)
  return { field: path, reason, text: parts.join(': ') }
}

function bare(reason: FieldReason, title: string, path: string, detail: string): FieldError {
  return { field: path, reason, text: detail === '' ? title : `${title}: ${detail}` }
}

/** `value` undefined leaves it out of the text. */
export function invalidField(path: string, value: Json | undefined, detail: string): FieldError {
  return valued('FieldValueInvalid', 'Invalid value', path, value, detail)
}

export function wrongType(path: string, value: Json, detail: string): FieldError {
  return valued('FieldValueTypeInvalid', 'Invalid value', path, value, detail)
}

export function requiredField(path: string, detail = ''): FieldError {
  return bare('FieldValueRequired', 'Required value', path, detail)
}

export function forbiddenField(path: string, detail: string): FieldError {
  return bare('FieldValueForbidden', 'Forbidden', path, detail)
}

export function duplicateField(path: string, value: Json | undefined): FieldError {
  return valued('FieldValueDuplicate', 'Duplicate value', path, value, '')
}

export function unsupportedField(path: string, value: Json, supported: readonly string[]): FieldError {
  const detail = supported.length === 0 ? '' : `supported values: ${supported.map(quote).join(', ')}`
  return valued('FieldValueNotSupported', 'Unsupported value', path, value, detail)
}

export function tooLong(path: string, limit: number): FieldError {
  return bare('FieldValueTooLong', 'Too long', path, `may not be more than ${limit} ${limit === 1 ? 'byte' : 'bytes'}`)
}

export function tooMany(path: string, actual: number, limit: number): FieldError {
  const detail = `must have at most ${limit} ${limit === 1 ? 'item' : 'items'}`
  return valued('FieldValueTooMany', 'Too many', path, actual, detail)
}
