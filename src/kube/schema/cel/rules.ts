/** Rules over an object: every place that has some, one rule after the other, within kube-apiserver's budget. */

import { equalJson, isObject, type Json } from '../../json/json.ts'
import type { FieldError } from '../../status.ts'
import type { Effort } from '../effort.ts'
import { child, duplicateField, forbiddenField, invalidField, keyed, NO_PATH, requiredField } from '../errors.ts'
import { oldItems } from '../listtype.ts'
import { propertyOf, type Rule, type Schema, valuesOf } from '../schema.ts'
import { quote } from '../values.ts'
import { type Compiled, type Context, compile, load, type Program, summary, unevaluated } from './cel.ts'
import { CALL_COST_MAX, OBJECT_COST_MAX } from './cost.ts'
import { celValue } from './value.ts'

/** Longest message an expression may make, as in Kubernetes. */
const MESSAGE_MAX_BYTES = 5 * 1024

type RuleFindings = { readonly errors: FieldError[]; readonly warnings: string[] }

/** Lets others in between two rules. */
export async function checkRules(
  object: Json,
  schema: Schema,
  old: Json | undefined,
  effort: Effort,
): Promise<RuleFindings> {
  const unchanged = old !== undefined && equalJson(object, old)
  const places: Place[] = []
  visit({ value: object, schema, old, path: NO_PATH, root: true, unchanged }, places)
  const found: RuleFindings = { errors: [], warnings: [] }
  const budget: CostBudget = { left: OBJECT_COST_MAX }
  for (const place of places) {
    if (!(await evaluateRules(place, found, budget, effort))) break
  }
  return found
}

type CostBudget = { left: number }

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

/** Gathers the places that have rules, in the order in which they are evaluated. */
function visit(place: Place, found: Place[]): void {
  const { value, schema, old, path } = place
  if (value === null) return
  if ((schema['x-kubernetes-validations']?.length ?? 0) > 0) found.push(place)
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

function descend(from: Place, value: Json, schema: Schema, old: Json | undefined, path: string, found: Place[]): void {
  const unchanged = old === undefined ? from.unchanged : equalJson(value, old)
  visit({ value, schema, old, path, root: schema['x-kubernetes-embedded-resource'] === true, unchanged }, found)
}

const NO_BUDGET = 'failed due to running out of cost budget, no further validation rules will be run'

/** Whether the rules after these are to be evaluated too. */
async function evaluateRules(place: Place, found: RuleFindings, budget: CostBudget, effort: Effort): Promise<boolean> {
  const { optional: optionalOf, durationOf } = load()
  const type = place.schema.type ?? ''
  if (budget.left <= 0) {
    found.errors.push(invalidField(place.path, type, `validation ${NO_BUDGET}`))
    return false
  }
  const convert = (value: Json) => celValue(value, place.schema, durationOf, place.root)
  const self = convert(place.value)
  const oldSelf = place.old === undefined || place.old === null ? undefined : convert(place.old)
  for (const compiled of compile(place.schema)) {
    const { rule, usesOld, program } = compiled
    const optional = rule.optionalOldSelf === true
    if (usesOld && oldSelf === undefined && !optional) continue
    if (program === undefined) {
      found.warnings.push(unevaluated(place.path, rule, compiled.problem))
      continue
    }
    if (effort.isOver()) await effort.rest()
    const context = { self, oldSelf: optional ? optionalOf.of(oldSelf) : oldSelf }
    const outcome = evaluate(program, context, budget)
    if (outcome.exceeded !== undefined) {
      const call = `'${CANCELLED}': no further validation rules will be run due to call cost exceeds limit for rule: ${named(rule)}`
      const text = outcome.exceeded === 'call' ? call : `validation ${NO_BUDGET}`
      found.errors.push(invalidField(place.path, type, text))
      return false
    }
    if (outcome.error !== undefined) {
      const why = runtimeProblem(outcome.error)
      if (why === undefined) found.warnings.push(unevaluated(place.path, rule, summary(outcome.error)))
      else found.errors.push(invalidField(place.path, type, `${why} evaluating rule: ${named(rule)}`))
      continue
    }
    if (outcome.value === true) continue
    const message = messageOf(compiled, context, budget)
    const error =
      'problem' in message
        ? invalidField(fieldPathOf(place, rule), type, message.problem)
        : failed(place, compiled, message.text)
    if (!usesOld && place.unchanged) found.warnings.push(`${error.field}: ${error.text}`)
    else found.errors.push(error)
    if ('problem' in message) return false
  }
  return true
}

type Outcome = {
  readonly value?: unknown
  readonly error?: unknown
  /** What the expression cost too much for. */
  readonly exceeded?: 'call' | 'object'
}

const CANCELLED = 'operation cancelled: actual cost limit exceeded'

/** Takes what the evaluation costs from the budget. */
function evaluate(program: Program, context: Context, budget: CostBudget): Outcome {
  const { meter } = load()
  meter.begin(Math.min(CALL_COST_MAX, budget.left))
  let outcome: Outcome
  // An expression may go on after an error, and meet a hundred thousand of them: where each came from is never looked at.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    outcome = { value: program(context) }
  } catch (error) {
    outcome = { error }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  if (meter.isExceeded) return { exceeded: budget.left < CALL_COST_MAX ? 'object' : 'call' }
  budget.left -= meter.cost
  return outcome
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

type RuleMessage = { readonly text: string } | { readonly problem: string }

function messageOf({ rule, message }: Compiled, context: Context, budget: CostBudget): RuleMessage {
  if (message !== undefined) {
    const { value, exceeded } = evaluate(message, context, budget)
    if (exceeded === 'object') return { problem: `messageExpression evaluation ${NO_BUDGET}` }
    if (exceeded === 'call') {
      const source = quote(rule.messageExpression ?? '')
      const problem = `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${source}`
      return { problem }
    }
    // A message that cannot be made falls back to the fixed one, as in Kubernetes.
    const text = typeof value === 'string' ? value.trim() : ''
    if (text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MESSAGE_MAX_BYTES) return { text }
  }
  return { text: rule.message ? rule.message.trim() : `failed rule: ${rule.rule.trim()}` }
}

function fieldPathOf(place: Place, rule: Rule): string {
  const path = rule.fieldPath ? child(place.path, rule.fieldPath.trim().replace(/^\./, '')) : place.path
  return path.replaceAll(/\.?\['((?:[^'\\]|\\.)*)'\]/g, '.$1')
}

function failed(place: Place, { rule }: Compiled, detail: string): FieldError {
  const field = fieldPathOf(place, rule)
  const omitted = place.schema.type === 'object' || place.schema.type === 'array'
  const value = omitted ? undefined : place.value
  if (rule.reason === 'FieldValueForbidden') return forbiddenField(field, detail)
  if (rule.reason === 'FieldValueRequired') return requiredField(field, detail)
  if (rule.reason === 'FieldValueDuplicate') return duplicateField(field, value)
  return invalidField(field, value, detail)
}
