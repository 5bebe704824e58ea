/** Everything a custom resource is held to, in kube-apiserver's order; rules come last and only on a sound object. */

import type { Json, JsonObject } from '../json/json.ts'
import type { FieldError, FieldReason } from '../status.ts'
import { checkRules } from './cel/rules.ts'
import { Effort, inTurns } from './effort.ts'
import { checkEmbedded } from './embedded.ts'
import { invalidField, NO_PATH } from './errors.ts'
import { checkLists } from './listtype.ts'
import { checkScaled, type ScalePaths } from './scaled.ts'
import { propertyOf, type Schema } from './schema.ts'
import { validate } from './validate.ts'

export type CheckResult = {
  readonly errors: readonly FieldError[]
  /** Findings that do not refuse: rules that could not be evaluated, rules an unchanged part has always broken. */
  readonly warnings: readonly string[]
}

export type CheckOptions = {
  readonly old?: JsonObject
  readonly status?: boolean
  readonly scale?: ScalePaths
  readonly before?: readonly FieldError[]
  /** Whose clock tells when others are to be let in. */
  readonly effort?: Effort
}

/** Rules need typed, bounded values: with one of these errors they are not tried. */
const BLOCKING: ReadonlySet<FieldReason> = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

const BLOCKED =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'

/**
 * `old` is the stored object on an update; with `status` only that part is held to types and values. `before` is what
 * was found elsewhere, in metadata: it may keep the rules from being tried.
 */
export async function checkCustom(
  object: JsonObject,
  schema: Schema,
  options: CheckOptions = {},
): Promise<CheckResult> {
  const { old, before = [], effort = new Effort() } = options
  effort.begin()
  const values = await inTurns(effort, () => checkValues(object, schema, options, effort))
  // Each of the two takes as long as the object is large.
  if (effort.isOver()) await effort.rest()
  const errors = [...values, ...checkListsUnlessOld(object, schema, old)]
  if (!hasRules(schema)) return { errors, warnings: [] }
  if ([...before, ...errors].some((error) => BLOCKING.has(error.reason))) {
    return { errors: [...errors, invalidField(NO_PATH, null, BLOCKED)], warnings: [] }
  }
  const rules = await checkRules(object, schema, old, effort)
  return { errors: [...errors, ...rules.errors], warnings: rules.warnings }
}

function checkValues(object: JsonObject, schema: Schema, options: CheckOptions, effort: Effort): FieldError[] {
  const { old, status = false, scale } = options
  const matches = (pattern: string, text: string) => effort.matches(pattern, text)
  const found: FieldError[][] = []
  if (status) {
    const inner = propertyOf(schema, 'status')
    const value = object.get('status')
    if (inner !== undefined && value !== undefined) {
      found.push(validate(value, inner, { old: old?.get('status'), base: 'status', matches }))
    }
  } else {
    found.push(validate(object, schema, { old, matches }), checkEmbedded(object, schema))
  }
  if (scale !== undefined) found.push(checkScaled(object, scale, status))
  return found.flat()
}

/** Duplicates that were stored before the list became a set are tolerated until all of them are gone. */
function checkListsUnlessOld(object: Json, schema: Schema, old: Json | undefined): FieldError[] {
  const found = checkLists(object, schema)
  return found.length === 0 || old === undefined || checkLists(old, schema).length === 0 ? found : []
}

const known = new WeakMap<Schema, boolean>()

/** Whether a rule stands anywhere in the schema; CEL is loaded only then. */
function hasRules(schema: Schema | undefined): boolean {
  if (schema === undefined) return false
  let has = known.get(schema)
  if (has === undefined) {
    const values = typeof schema.additionalProperties === 'object' ? [schema.additionalProperties] : []
    const inner = [...Object.values(schema.properties ?? {}), ...values]
    has = (schema['x-kubernetes-validations']?.length ?? 0) > 0 || hasRules(schema.items) || inner.some(hasRules)
    known.set(schema, has)
  }
  return has
}
