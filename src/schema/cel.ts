/**
 * `x-kubernetes-validations`: rules in CEL, evaluated where they stand in the schema. The engine is loaded when the
 * first rule is met. A rule it cannot compile or evaluate for want of a function is reported as a warning and passes:
 * refusing what a real API server accepts would be worse, and silence worse still.
 */

import { createRequire } from 'node:module'
import type * as Cel from '@marcbachmann/cel-js'
import type * as Evaluator from '@marcbachmann/cel-js/evaluator'
import { equalJson, isObject, type Json } from '../json/json.ts'
import type { FieldError } from '../kube/status.ts'
import { registerLibrary } from './cellibrary.ts'
import { celValue, type DurationOf } from './celvalue.ts'
import { child, duplicateField, forbiddenField, invalidField, keyed, NO_PATH, requiredField } from './errors.ts'
import { oldItems } from './listtype.ts'
import { propertyOf, type Rule, type Schema, valuesOf } from './schema.ts'
import { quote } from './values.ts'

type Program = (context: { self: unknown; oldSelf?: unknown }) => unknown

type Compiled = {
  readonly rule: Rule
  readonly usesOld: boolean
  readonly program: Program | undefined
  readonly message: Program | undefined
  /** Why there is no program. */
  readonly problem: string
}

type Engine = {
  readonly plain: Cel.Environment
  /** Where `oldSelf` may be missing. */
  readonly optionalOld: Cel.Environment
  readonly optional: typeof Cel.Optional
  readonly durationOf: DurationOf
}

/** Longest message an expression may make, as in Kubernetes. */
const MESSAGE_MAX_BYTES = 5 * 1024

let engine: Engine | undefined

function load(): Engine {
  if (engine === undefined) {
    const require = createRequire(import.meta.url)
    const cel = require('@marcbachmann/cel-js') as typeof Cel
    const environment = new cel.Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false })
    registerLibrary(environment.registerVariable('self', 'dyn'), cel)
    const { Duration } = require('@marcbachmann/cel-js/evaluator') as typeof Evaluator
    const durationOf = (ns: number) => new Duration(Math.trunc(ns / 1e9), ns % 1e9)
    engine = {
      plain: environment.clone().registerVariable('oldSelf', 'dyn'),
      optionalOld: environment.clone().registerVariable('oldSelf', 'optional<dyn>'),
      optional: cel.Optional,
      durationOf,
    }
  }
  return engine
}

const compiledRules = new WeakMap<Schema, readonly Compiled[]>()

function compile(schema: Schema): readonly Compiled[] {
  const rules = schema['x-kubernetes-validations'] ?? []
  if (rules.length === 0) return []
  let compiled = compiledRules.get(schema)
  if (compiled === undefined) {
    compiled = rules.map((rule) => {
      const usesOld = usesOldSelf(rule)
      try {
        const message = rule.messageExpression ? programOf(rule.messageExpression, rule) : undefined
        return { rule, usesOld, program: programOf(rule.rule, rule), message, problem: '' }
      } catch (error) {
        return { rule, usesOld, program: undefined, message: undefined, problem: summary(error) }
      }
    })
    compiledRules.set(schema, compiled)
  }
  return compiled
}

function environmentOf(rule: Rule): Cel.Environment {
  const { plain, optionalOld } = load()
  return rule.optionalOldSelf === true ? optionalOld : plain
}

function programOf(source: string, rule: Rule): Program {
  const parsed = environmentOf(rule).parse(redirected(source))
  const checked = parsed.check()
  if (!checked.valid) throw checked.error ?? new Error('it does not type-check')
  return parsed
}

/** Whether a rule looks at the state before an update. A string that merely contains the word counts: harmless. */
export function usesOldSelf(rule: Rule): boolean {
  return /\boldSelf\b/.test(rule.rule)
}

/** The warning for each rule at a schema node that will not be evaluated. */
export function unevaluatedRules(schema: Schema, path: string): string[] {
  return compile(schema)
    .filter((compiled) => compiled.program === undefined)
    .map((compiled) => unevaluated(path, compiled.rule, compiled.problem))
}

/** An expression as it was read, and the type the engine infers: `dyn` for whatever depends on the object. */
type Expression = { readonly ast: Cel.ASTNode; readonly type: string }

/** `problem` is a mistake in the spelling; undefined where the engine itself falls short. */
export function parseExpression(source: string, rule: Rule): Expression | { readonly problem: string } | undefined {
  // Names in backticks are sound CEL, and unknown to the engine.
  if (source.includes('`')) return undefined
  try {
    const { ast } = environmentOf(rule).parse(source)
    const { valid, type = 'dyn', error } = environmentOf(rule).parse(redirected(source)).check()
    if (!valid) throw error ?? new Error('it does not type-check')
    return { ast, type }
  } catch (error) {
    return error instanceof Error && error.name === 'ParseError' ? { problem: summary(error) } : undefined
  }
}

/** Regular expressions are RE2's in CEL; the engine's own `matches` takes JavaScript's. String literals stay as they are. */
function redirected(source: string): string {
  const literalOrCall = /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\bmatches(?=\s*\()/g
  return source.replace(literalOrCall, (found) => (found === 'matches' ? 'matchesPattern' : found))
}

function summary(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'summary' in error) return String(error.summary)
  return error instanceof Error ? error.message : String(error)
}

type RuleFindings = { readonly errors: FieldError[]; readonly warnings: string[] }

export function checkRules(object: Json, schema: Schema, old: Json | undefined): RuleFindings {
  const found: RuleFindings = { errors: [], warnings: [] }
  const unchanged = old !== undefined && equalJson(object, old)
  visit({ value: object, schema, old, path: NO_PATH, root: true, unchanged }, found)
  return found
}

type Place = {
  readonly value: Json
  readonly schema: Schema
  readonly old: Json | undefined
  readonly path: string
  /** The root of a resource, where apiVersion, kind and metadata are known without being specified. */
  readonly root: boolean
  /** This part, or the nearest part around it that can be correlated, is as it was before the update. */
  readonly unchanged: boolean
}

function visit(place: Place, found: RuleFindings): void {
  const { value, schema, old, path } = place
  if (value === null) return
  evaluateRules(place, found)
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return
    const former = oldItems(schema, old)
    for (const [index, item] of value.entries()) descend(place, item, items, former(item), keyed(path, index), found)
  } else if (isObject(value)) {
    const values = valuesOf(schema)
    const former = isObject(old) ? old : undefined
    for (const [key, item] of value) {
      const property = propertyOf(schema, key)
      if (property !== undefined) descend(place, item, property, former?.get(key), child(path, key), found)
      else if (values !== undefined) descend(place, item, values, former?.get(key), keyed(path, key), found)
    }
  }
}

function descend(
  from: Place,
  value: Json,
  schema: Schema,
  old: Json | undefined,
  path: string,
  found: RuleFindings,
): void {
  const unchanged = old === undefined ? from.unchanged : equalJson(value, old)
  visit({ value, schema, old, path, root: schema['x-kubernetes-embedded-resource'] === true, unchanged }, found)
}

function evaluateRules(place: Place, found: RuleFindings): void {
  const rules = compile(place.schema)
  if (rules.length === 0) return
  const { optional: optionalOf, durationOf } = load()
  const convert = (value: Json) => celValue(value, place.schema, durationOf, place.root)
  const self = convert(place.value)
  const oldSelf = place.old === undefined || place.old === null ? undefined : convert(place.old)
  for (const compiled of rules) {
    const { rule, usesOld, program } = compiled
    const optional = rule.optionalOldSelf === true
    if (usesOld && oldSelf === undefined && !optional) continue
    if (program === undefined) {
      found.warnings.push(unevaluated(place.path, rule, compiled.problem))
      continue
    }
    const context = { self, oldSelf: optional ? optionalOf.of(oldSelf) : oldSelf }
    let holds: unknown
    try {
      holds = program(context)
    } catch (error) {
      const why = runtimeProblem(error)
      if (why === undefined) found.warnings.push(unevaluated(place.path, rule, summary(error)))
      else {
        const text = `${why} evaluating rule: ${named(rule)}`
        found.errors.push(invalidField(place.path, place.schema.type ?? '', text))
      }
      continue
    }
    if (holds === true) continue
    const error = failed(place, compiled, messageOf(compiled, context))
    if (!usesOld && place.unchanged) found.warnings.push(`${error.field}: ${error.text}`)
    else found.errors.push(error)
  }
}

function unevaluated(path: string, rule: Rule, why: string): string {
  const at = path === NO_PATH ? '' : ` of ${path}`
  return `the validation rule${at} ${quote(rule.rule.trim())} is not checked: ${why}`
}

/** What CEL calls an error of the data, in Go's words; undefined where the engine itself fell short. */
function runtimeProblem(error: unknown): string | undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
  const text = summary(error)
  switch (code) {
    case 'no_such_key':
      return text.replace(/^No such key/, 'no such key')
    case 'index_out_of_bounds':
      return `index out of bounds: ${/index (-?\d+)/.exec(text)?.[1] ?? ''}`
    case 'division_by_zero':
    case 'modulo_by_zero':
      return text.toLowerCase().includes('modul') ? 'modulus by zero' : 'division by zero'
    case 'numeric_overflow':
      return 'integer overflow'
    case 'optional_value_missing':
      return 'optional.none() dereference'
    case 'library_error':
    case 'index_out_of_range':
    case 'bool_conversion_error':
    case 'double_conversion_error':
    case 'int_conversion_error':
    case 'uint_conversion_error':
    case 'invalid_duration':
    case 'invalid_timestamp':
      return text
    default:
      return undefined
  }
}

function named(rule: Rule): string {
  return rule.message ? rule.message.trim() : rule.rule.trim()
}

function messageOf(compiled: Compiled, context: { self: unknown; oldSelf?: unknown }): string {
  const { rule, message } = compiled
  if (message !== undefined) {
    try {
      const made = message(context)
      const text = typeof made === 'string' ? made.trim() : ''
      if (text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MESSAGE_MAX_BYTES) return text
    } catch {
      // A message that cannot be made falls back to the fixed one, as in Kubernetes.
    }
  }
  return rule.message ? rule.message.trim() : `failed rule: ${rule.rule.trim()}`
}

function failed(place: Place, { rule }: Compiled, detail: string): FieldError {
  const path = rule.fieldPath ? child(place.path, rule.fieldPath.trim().replace(/^\./, '')) : place.path
  const field = path.replaceAll(/\.?\['((?:[^'\\]|\\.)*)'\]/g, '.$1')
  const omitted = place.schema.type === 'object' || place.schema.type === 'array'
  const value = omitted ? undefined : place.value
  if (rule.reason === 'FieldValueForbidden') return forbiddenField(field, detail)
  if (rule.reason === 'FieldValueRequired') return requiredField(field, detail)
  if (rule.reason === 'FieldValueDuplicate') return duplicateField(field, value)
  return invalidField(field, value, detail)
}
