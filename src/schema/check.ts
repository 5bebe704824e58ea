/** Everything a custom resource is held to, in kube-apiserver's order; rules come last and only on a sound object. */

import type { Json, JsonObject } from '../json/json.ts'
import type { FieldError, FieldReason } from '../kube/status.ts'
import { checkRules } from './cel.ts'
import { checkEmbedded } from './embedded.ts'
import { invalidField, NO_PATH } from './errors.ts'
import { checkLists } from './listtype.ts'
import { checkScaled, type ScalePaths } from './scaled.ts'
import { propertyOf, type Schema } from './schema.ts'
import { validate } from './validate.ts'

export type Verdict = {
  readonly errors: readonly FieldError[]
  /** Findings that do not refuse: rules that could not be evaluated, rules an unchanged part has always broken. */
  readonly warnings: readonly string[]
}

export type CheckOptions = {
  readonly old?: JsonObject
  readonly status?: boolean
  readonly scale?: ScalePaths
  readonly before?: readonly FieldError[]
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
export function checkCustom(object: JsonObject, schema: Schema, options: CheckOptions = {}): Verdict {
  const { old, status = false, scale, before = [] } = options
  const errors: FieldError[] = []
  if (status) {
    const inner = propertyOf(schema, 'status')
    const value = object.get('status')
    if (inner !== undefined && value !== undefined) errors.push(...validate(value, inner, old?.get('status'), 'status'))
  } else {
    errors.push(...validate(object, schema, old), ...checkEmbedded(object, schema))
  }
  if (scale !== undefined) errors.push(...checkScaled(object, scale, status))
  errors.push(...checkListsUnlessOld(object, schema, old))
  if ([...before, ...errors].some((error) => BLOCKING.has(error.reason))) {
    if (hasRules(schema)) errors.push(invalidField(NO_PATH, null, BLOCKED))
    return { errors, warnings: [] }
  }
  const rules = hasRules(schema) ? checkRules(object, schema, old) : { errors: [], warnings: [] }
  return { errors: [...errors, ...rules.errors], warnings: rules.warnings }
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
