/**
 * A value against its schema: types, formats, bounds, combinations. What it finds, in which words and at which path
 * follows kube-openapi's validators, including how `anyOf` and `oneOf` pick the failure worth showing, and ratcheting:
 * what an update leaves as it was is not held against it.
 */

import { equalJson, fromPlain, isNumber, isObject, type Json, type JsonObject } from '../json/json.ts'
import type { FieldError } from '../status.ts'
import {
  child,
  fieldOf,
  invalidField,
  NO_PATH,
  requiredField,
  tooLong,
  tooMany,
  unsupportedField,
  wrongType,
} from './errors.ts'
import { effectiveFormat, stringFormat } from './formats.ts'
import { oldItems } from './listtype.ts'
import { checkNumber } from './numeric.ts'
import { matches } from './pattern.ts'
import { propertyOf, type Schema, valuesOf } from './schema.ts'
import { floatOf, type Kind, kindOf, lengthOf, marshal, quote } from './values.ts'

/** Errors of one object that are reported: an object of 3 MB can have a million, and its writer would get all of them. */
const ERRORS_MAX = 10_000

/** What was found so far; `matched` counts checks that held, by which the nearest alternative is chosen. */
type Findings = { readonly errors: FieldError[]; matched: number }

/** `old` is the value this one replaces, where the two can be told to be the same thing; undefined elsewhere. */
type Old = Json | undefined

/** Whether a text matches a pattern; undefined where that would take too long to find out. */
type Matches = (pattern: string, text: string) => boolean | undefined

type Options = { readonly old?: Old; readonly base?: string; readonly matches?: Matches }

/**
 * Validates `value`, which sits at `base` of its object ('' is the root). With `old`, a part that equals its former self
 * is not complained about.
 */
export function validate(
  value: Json,
  schema: Schema,
  { old, base = '', matches: test = matches }: Options = {},
): FieldError[] {
  const findings = visit(value, schema, '', old, test)
  if (old !== undefined && findings.errors.length > 0 && equalJson(value, old)) return []
  const errors = distinct(findings.errors)
  if (base === '') return errors
  return errors.map((error) => ({
    ...error,
    field: error.field === NO_PATH ? base : child(base, error.field),
  }))
}

function distinct(errors: readonly FieldError[]): FieldError[] {
  const seen = new Set<string>()
  return errors.filter(({ field, text }) => seen.size < seen.add(`${field}\n${text}`).size)
}

function none(): Findings {
  return { errors: [], matched: 0 }
}

function merge(into: Findings, from: Findings): void {
  for (const error of from.errors) add(into, error)
  into.matched += from.matched
}

function add(into: Findings, error: FieldError | undefined): void {
  if (error !== undefined && into.errors.length < ERRORS_MAX) into.errors.push(error)
}

/** An error without a field of its own: it names the path in its text. */
function loose(text: string): FieldError {
  return invalidField(NO_PATH, '', text)
}

function visit(value: Json, schema: Schema, path: string, old: Old, matches: Matches): Findings {
  const findings = none()
  const kind = kindOf(value)
  const types = schema['x-kubernetes-int-or-string'] === true ? ['integer', 'string'] : schema.type ? [schema.type] : []
  const format = effectiveFormat(types.length === 2 ? '' : schema.type, schema.format)

  if (kind === 'null') {
    if (types.length > 0 && schema.nullable !== true) add(findings, typeError(path, types.join(','), 'null'))
    else findings.matched++
    add(findings, checkEnum(value, schema, path))
    return findings
  }
  if (types.length > 0 || format !== '') {
    const error = checkType(value, kind, types, format, path)
    if (error === undefined) findings.matched++
    add(findings, error)
    findings.matched++
  }
  merge(findings, combine(value, schema, path, old, matches))
  findings.matched++
  if (typeof value === 'string') {
    add(findings, checkString(value, schema, path, matches))
    findings.matched++
    const check = format === '' ? undefined : stringFormat(format)
    if (check !== undefined) {
      if (!check(value)) add(findings, typeError(path, format, value))
      findings.matched++
    }
  } else if (isNumber(value)) {
    for (const error of checkNumber(value, types.length === 1 ? schema : { ...schema, type: '' }, format, path)) {
      add(findings, error)
    }
    findings.matched += 2
  } else if (Array.isArray(value)) {
    merge(findings, checkItems(value, schema, path, old, matches))
    findings.matched += 2
  }
  add(findings, checkEnum(value, schema, path))
  findings.matched++
  if (isObject(value)) {
    merge(findings, checkFields(value, schema, path, old, matches))
    findings.matched++
  }
  findings.matched++
  return findings
}

function typeError(path: string, expected: string, actual: string): FieldError {
  return wrongType(fieldOf(path), actual, `${path} in body must be of type ${expected}: ${quote(actual)}`)
}

/** The format a bare value has in Go's eyes, which is what a message about the wrong format names. */
const NATURAL_FORMAT: Partial<Record<Kind, string>> = { integer: 'int64', number: 'float64' }

function checkType(
  value: Json,
  kind: Kind,
  types: readonly string[],
  format: string,
  path: string,
): FieldError | undefined {
  const whole = isNumber(value) && kind === 'number' && isWhole(floatOf(value)) && types.includes('integer')
  const fits = types.includes(kind) || whole || (kind === 'integer' && types.includes('number'))
  const texts = kind === 'string' || kind === 'array'
  const natural = NATURAL_FORMAT[kind] ?? ''
  if (!texts && format !== '' && !fits && natural !== format) return typeError(path, format, natural)
  if (texts && format !== '' && !types.includes('number') && !types.includes('integer')) return undefined
  return fits ? undefined : typeError(path, types.join(','), kind)
}

function isWhole(value: number): boolean {
  return Number.isSafeInteger(value)
}

function checkEnum(value: Json, schema: Schema, path: string): FieldError | undefined {
  const allowed = schema.enum
  if (allowed === undefined || allowed.length === 0) return undefined
  const values = valuesAllowed(allowed)
  for (const candidate of values) {
    if (value === null || candidate === null) continue
    if (isNumber(value) && isNumber(candidate) ? floatOf(value) === floatOf(candidate) : equalJson(value, candidate)) {
      return undefined
    }
  }
  const names = values.map((candidate) => (typeof candidate === 'string' ? candidate : marshal(candidate)))
  return unsupportedField(fieldOf(path), value, names)
}

const allowedValues = new WeakMap<readonly unknown[], readonly Json[]>()

function valuesAllowed(allowed: readonly unknown[]): readonly Json[] {
  let values = allowedValues.get(allowed)
  if (values === undefined) {
    values = allowed.map(fromPlain)
    allowedValues.set(allowed, values)
  }
  return values
}

function checkString(value: string, schema: Schema, path: string, matches: Matches): FieldError | undefined {
  const { maxLength, minLength, pattern } = schema
  if (maxLength !== undefined || minLength !== undefined) {
    const length = lengthOf(value)
    if (maxLength !== undefined && length > maxLength) return tooLong(fieldOf(path), maxLength)
    if (minLength !== undefined && length < minLength) {
      return invalidField(fieldOf(path), value, `${path} in body should be at least ${minLength} chars long`)
    }
  }
  if (pattern !== undefined && pattern !== '') {
    let found: boolean | undefined
    try {
      found = matches(pattern, value)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      const why = `${pattern}, but pattern is invalid: ${error.message}`
      return invalidField(fieldOf(path), value, `${path} in body should match '${why}'`)
    }
    const more = found === undefined ? ', which is more than can be found out of a text of this length' : ''
    if (!found) return invalidField(fieldOf(path), value, `${path} in body should match '${pattern}'${more}`)
  }
  return undefined
}

function checkItems(value: Json[], schema: Schema, path: string, old: Old, matches: Matches): Findings {
  const findings = none()
  const { items, minItems, maxItems } = schema
  if (items !== undefined) {
    const former = oldItems(schema, old)
    for (const [index, item] of value.entries()) {
      merge(findings, inner(item, items, `${path}[${index}]`, former(item), matches))
    }
  }
  const size = value.length
  if (minItems !== undefined && size < minItems) {
    add(findings, invalidField(fieldOf(path), size, `${path} in body should have at least ${minItems} items`))
  }
  if (maxItems !== undefined && size > maxItems) add(findings, tooMany(fieldOf(path), size, maxItems))
  if (schema.uniqueItems === true && hasDuplicates(value)) {
    add(findings, invalidField(fieldOf(path), '', `${path} in body shouldn't contain duplicates`))
  }
  return findings
}

function hasDuplicates(values: readonly Json[]): boolean {
  return new Set(values.map(marshal)).size < values.length
}

/** A part of a value: left alone where an update did not change it. */
function inner(value: Json, schema: Schema, path: string, old: Old, matches: Matches): Findings {
  const findings = visit(value, schema, path, old, matches)
  if (findings.errors.length === 0 || old === undefined || !equalJson(value, old)) return findings
  return { errors: [], matched: findings.matched }
}

function checkFields(value: JsonObject, schema: Schema, path: string, old: Old, matches: Matches): Findings {
  const findings = none()
  const { minProperties, maxProperties } = schema
  if (minProperties !== undefined && value.size < minProperties) {
    const detail = `${path} in body should have at least ${minProperties} properties`
    add(findings, invalidField(fieldOf(path), value.size, detail))
  }
  if (maxProperties !== undefined && value.size > maxProperties) {
    add(findings, tooMany(fieldOf(path), value.size, maxProperties))
  }
  const values = valuesOf(schema)
  const former = isObject(old) ? old : undefined
  for (const [key, item] of value) {
    const property = propertyOf(schema, key)
    if (property !== undefined) {
      const correlated = path === '' && (key === 'kind' || key === 'apiVersion') ? undefined : former?.get(key)
      merge(findings, inner(item, property, path === '' ? key : `${path}.${key}`, correlated, matches))
    } else if (values !== undefined) {
      merge(findings, inner(item, values, `${path}.${key}`, former?.get(key), matches))
    } else if (schema.additionalProperties === false) {
      add(findings, invalidField(fieldOf(path), key, `${path}.${key} in body is a forbidden property`))
    }
  }
  for (const name of schema.required ?? []) {
    if (!value.has(name)) add(findings, requiredField(fieldOf(`${path}.${name}`)))
  }
  return findings
}

function combine(value: Json, schema: Schema, path: string, old: Old, matches: Matches): Findings {
  const findings = none()
  if (schema.anyOf !== undefined && schema.anyOf.length > 0) {
    const results = schema.anyOf.map((alternative) => visit(value, alternative, path, old, matches))
    const valid = results.find((result) => result.errors.length === 0)
    if (valid === undefined) add(findings, loose(`${quote(path)} must validate at least one schema (anyOf)`))
    merge(findings, valid ?? nearest(results))
  }
  if (schema.oneOf !== undefined && schema.oneOf.length > 0) {
    const results = schema.oneOf.map((alternative) => visit(value, alternative, path, old, matches))
    const valid = results.filter((result) => result.errors.length === 0)
    if (valid.length === 1) merge(findings, valid[0] as Findings)
    else {
      const found = valid.length === 0 ? 'Found none valid' : `Found ${valid.length} valid alternatives`
      add(findings, loose(`${quote(path)} must validate one and only one schema (oneOf). ${found}`))
      if (valid.length === 0) merge(findings, nearest(results))
    }
  }
  if (schema.allOf !== undefined && schema.allOf.length > 0) {
    const results = schema.allOf.map((part) => visit(value, part, path, old, matches))
    for (const result of results) merge(findings, result)
    const valid = results.filter((result) => result.errors.length === 0).length
    if (valid < results.length) {
      const tail = valid === 0 ? '. None validated' : ''
      add(findings, loose(`${quote(path)} must validate all the schemas (allOf)${tail}`))
    }
  }
  if (schema.not !== undefined && visit(value, schema.not, path, old, matches).errors.length === 0) {
    add(findings, loose(`${quote(path)} must not validate the schema (not)`))
  }
  findings.matched++
  return findings
}

/** The failed alternative that held longest; the first of equals. */
function nearest(results: readonly Findings[]): Findings {
  let best = results[0] as Findings
  for (const result of results) if (result.matched > best.matched) best = result
  return best
}
