/**
 * `x-kubernetes-validations`: rules in CEL, evaluated where they stand in the schema. The engine is loaded when the
 * first rule is met. A rule it cannot compile or evaluate for want of a function is reported as a warning and passes:
 * refusing what a real API server accepts would be worse, and silence worse still.
 */

import { createRequire } from 'node:module'
import type * as Cel from '@marcbachmann/cel-js'
import type * as Evaluator from '@marcbachmann/cel-js/evaluator'
import { NO_PATH } from '../errors.ts'
import type { Rule, Schema } from '../schema.ts'
import { quote } from '../values.ts'
import { Meter, metered } from './cost.ts'
import { registerLibrary } from './library.ts'
import type { DurationOf } from './value.ts'

export type Context = { readonly self: unknown; readonly oldSelf?: unknown }
export type Program = (context: Context) => unknown

export type Compiled = {
  readonly rule: Rule
  readonly usesOld: boolean
  readonly program: Program | undefined
  readonly message: Program | undefined
  /** Why there is no program. */
  readonly problem: string
}

type CelEngine = {
  readonly plain: Cel.Environment
  /** Where `oldSelf` may be missing. */
  readonly optionalOld: Cel.Environment
  readonly optional: typeof Cel.Optional
  readonly durationOf: DurationOf
  readonly meter: Meter
}

let engine: CelEngine | undefined

export function load(): CelEngine {
  if (engine === undefined) {
    const require = createRequire(import.meta.url)
    const cel = require('@marcbachmann/cel-js') as typeof Cel
    const environment = new cel.Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false })
    const meter = new Meter()
    const { Duration } = require('@marcbachmann/cel-js/evaluator') as typeof Evaluator
    const durationOf = (ns: number) => new Duration(Math.trunc(ns / 1e9), ns % 1e9)
    registerLibrary(environment.registerVariable('self', 'dyn'), { cel, meter, durationOf })
    engine = {
      plain: environment.clone().registerVariable('oldSelf', 'dyn'),
      optionalOld: environment.clone().registerVariable('oldSelf', 'optional<dyn>'),
      optional: cel.Optional,
      durationOf,
      meter,
    }
  }
  return engine
}

const compiledRules = new WeakMap<Schema, readonly Compiled[]>()

export function compile(schema: Schema): readonly Compiled[] {
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
  metered(parsed.ast, load().meter)
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

/** Calls that are ours under other names: the engine's own would take JavaScript's patterns, and not be linear. */
const OURS: Readonly<Record<string, string>> = { matches: 'matchesPattern', size: 'lengthOf', duration: 'durationOf' }

/** String literals stay as they are. */
function redirected(source: string): string {
  const literalOrCall =
    /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\b(?:matches|size|duration)(?=\s*\()/g
  return source.replace(literalOrCall, (found) => OURS[found] ?? found)
}

export function summary(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'summary' in error) return String(error.summary)
  return error instanceof Error ? error.message : String(error)
}

export function unevaluated(path: string, rule: Rule, why: string): string {
  const at = path === NO_PATH ? '' : ` of ${path}`
  return `the validation rule${at} ${quote(rule.rule.trim())} is not checked: ${why}`
}
