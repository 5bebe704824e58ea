/** What Kubernetes allows in the OpenAPI schema of a definition, apart from its being structural. */

import { equalJson, fromPlain } from '../json/json.ts'
import type { FieldError } from '../status.ts'
import { checkExpressions } from './cel/check.ts'
import { child, forbiddenField, invalidField, keyed, requiredField, unsupportedField } from './errors.ts'
import { followPath } from './fieldpath.ts'
import { checkListType } from './listschema.ts'
import { pruneValue } from './prune.ts'
import { META_FIELDS, type Rule, type Schema, valuesOf } from './schema.ts'
import { checkStructural } from './structural.ts'
import { validate } from './validate.ts'

/** Fields that may stand beside the root's properties when /status is served: others would be lost on the way there. */
const ROOT_WITH_STATUS = [
  ['description', 'Description'],
  ['type', 'Type'],
  ['format', 'Format'],
  ['title', 'Title'],
  ['maximum', 'Maximum'],
  ['exclusiveMaximum', 'ExclusiveMaximum'],
  ['minimum', 'Minimum'],
  ['exclusiveMinimum', 'ExclusiveMinimum'],
  ['maxLength', 'MaxLength'],
  ['minLength', 'MinLength'],
  ['pattern', 'Pattern'],
  ['maxItems', 'MaxItems'],
  ['minItems', 'MinItems'],
  ['uniqueItems', 'UniqueItems'],
  ['multipleOf', 'MultipleOf'],
  ['required', 'Required'],
  ['items', 'Items'],
  ['properties', 'Properties'],
  ['externalDocs', 'ExternalDocs'],
  ['example', 'Example'],
  ['x-kubernetes-preserve-unknown-fields', 'XPreserveUnknownFields'],
  ['x-kubernetes-validations', 'XValidations'],
] as const

/** `path` is where the schema stands: `spec.validation.openAPIV3Schema` or that of one version. */
export function checkOpenApi(schema: Schema, path: string, status: boolean): FieldError[] {
  const found: FieldError[] = []
  const allowed = ROOT_WITH_STATUS.map(([key]) => key as string)
  if (status && Object.keys(schema).some((key) => !allowed.includes(key))) {
    const names = `[${ROOT_WITH_STATUS.map(([, name]) => name).join(' ')}]`
    const detail = `only ${names} fields are allowed at the root of the schema if the status subresource is enabled`
    found.push(invalidField(path, fromPlain(schema), detail))
  }
  if (schema.nullable === true) {
    found.push(forbiddenField(child(path, 'nullable'), 'nullable cannot be true at the root'))
  }
  const structural = isPlain(schema) ? checkStructural(schema, path) : []
  const defaults = structural.length > 0 ? [] : checkDefaults(schema, path)
  const sound = structural.length === 0 && defaults.length === 0
  const walk: Walk = { root: true, meta: false, noDefaults: undefined, uncorrelated: undefined, rules: sound }
  return [...found, ...structural, ...defaults, ...visit(schema, path, walk).found]
}

/** Free of keywords a structural schema cannot hold; these are reported by themselves. */
function isPlain(schema: Schema): boolean {
  if (UNSUPPORTED.some((key) => key in schema) || Array.isArray(schema.items)) return false
  const values = valuesOf(schema)
  const inner = [...Object.values(schema.properties ?? {}), ...(values === undefined ? [] : [values])]
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) inner.push(...(schema[name] ?? []))
  if (schema.items !== undefined) inner.push(schema.items)
  if (schema.not !== undefined) inner.push(schema.not)
  return inner.every(isPlain)
}

type Walk = {
  readonly root: boolean
  /** Inside apiVersion, kind or metadata of a resource. */
  readonly meta: boolean
  /** Why defaults are not allowed here. */
  readonly noDefaults: string | undefined
  /** The nearest part around this one whose former self cannot be told. */
  readonly uncorrelated: string | undefined
  /** Whether expressions are worth looking at: only in a sound schema. */
  readonly rules: boolean
}

type Result = { readonly found: FieldError[]; readonly sound: boolean }

const UNSUPPORTED = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref']
const TYPES = ['array', 'boolean', 'integer', 'number', 'object', 'string']

function visit(schema: Schema, path: string, walk: Walk): Result {
  const found = own(schema, path, walk)
  let sound = true
  const into = (inner: Schema, at: string, change: Partial<Walk>) => {
    const result = visit(inner, at, { ...walk, root: false, ...change })
    found.push(...result.found)
    sound &&= result.sound
  }
  const values = valuesOf(schema)
  if (values !== undefined) {
    const reason = walk.meta ? 'inside additionalProperties applying to object metadata' : walk.noDefaults
    into(values, child(path, 'additionalProperties'), { noDefaults: reason })
  }
  const resource = walk.root || schema['x-kubernetes-embedded-resource'] === true
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const meta = resource && META_FIELDS.has(name)
    into(property, keyed(child(path, 'properties'), name), {
      meta: walk.meta || meta,
      noDefaults: meta && walk.root ? `in top-level ${name}` : walk.noDefaults,
    })
  }
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, part] of (schema[name] ?? []).entries()) {
      into(part, keyed(child(path, name), index), { rules: false })
    }
  }
  if (schema.not !== undefined) into(schema.not, child(path, 'not'), { rules: false })
  if (schema.items !== undefined && !Array.isArray(schema.items)) {
    const correlated = schema['x-kubernetes-list-type'] === 'map'
    into(schema.items, child(path, 'items'), {
      uncorrelated: walk.uncorrelated ?? (correlated ? undefined : path),
    })
  }
  found.push(...checkListType(schema, path))
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    found.push(...ruleShape(rule, schema, keyed(child(path, 'x-kubernetes-validations'), index)))
  }
  sound &&= found.length === 0
  if (sound && walk.rules) {
    for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
      const at = keyed(child(path, 'x-kubernetes-validations'), index)
      found.push(...checkExpressions(rule, schema, at, { root: resource, uncorrelated: walk.uncorrelated }))
    }
  }
  return { found, sound }
}

/** What stands at one node. */
function own(schema: Schema, path: string, walk: Walk): FieldError[] {
  const found: FieldError[] = []
  const { type } = schema
  const at = child(path, 'type')
  if (type !== undefined && type !== '' && !TYPES.includes(type)) found.push(unsupportedField(at, type, TYPES))
  if (type === 'null') {
    found.push(forbiddenField(at, 'type cannot be set to null, use nullable as an alternative'))
  }
  if (schema.default !== undefined && walk.noDefaults !== undefined) {
    found.push(forbiddenField(child(path, 'default'), `must not be set ${walk.noDefaults}`))
  }
  for (const key of UNSUPPORTED) {
    if (key in schema) found.push(forbiddenField(child(path, key), `${key} is not supported`))
  }
  if (Array.isArray(schema.items)) {
    found.push(forbiddenField(child(path, 'items'), 'items must be a schema object and not an array'))
  }
  if (walk.meta && schema['x-kubernetes-embedded-resource'] === true) {
    const detail = 'must not be used inside of resource meta'
    found.push(forbiddenField(child(path, 'x-kubernetes-embedded-resource'), detail))
  }
  if (schema.uniqueItems === true) {
    const detail = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'
    found.push(forbiddenField(child(path, 'uniqueItems'), detail))
  }
  const closed = schema.additionalProperties !== undefined && schema.additionalProperties !== true
  if (closed && Object.keys(schema.properties ?? {}).length > 0) {
    const detail = 'additionalProperties and properties are mutual exclusive'
    found.push(forbiddenField(child(path, 'additionalProperties'), detail))
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    const preserve = child(path, 'x-kubernetes-preserve-unknown-fields')
    found.push(invalidField(preserve, false, 'must be true or undefined'))
  }
  return found
}

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired']

function ruleShape(rule: Rule, schema: Schema, path: string): FieldError[] {
  const found: FieldError[] = []
  const message = rule.message ?? ''
  const breaks = (text: string) => /[\n\r]/.test(text.trim())
  if ((rule.rule ?? '').trim() === '') found.push(requiredField(child(path, 'rule'), 'rule is not specified'))
  else if (message !== '' && message.trim() === '') {
    found.push(invalidField(child(path, 'message'), message, 'must be non-empty if specified'))
  } else if (breaks(message)) {
    found.push(invalidField(child(path, 'message'), message, 'must not contain line breaks'))
  } else if (breaks(rule.rule) && message.trim() === '') {
    found.push(requiredField(child(path, 'message'), 'message must be specified if rule contains line breaks'))
  }
  if (rule.messageExpression && rule.messageExpression.trim() === '') {
    const detail = 'messageExpression must be non-empty if specified'
    found.push(requiredField(child(path, 'messageExpression'), detail))
  }
  if (rule.reason !== undefined && !REASONS.includes(rule.reason)) {
    found.push(unsupportedField(child(path, 'reason'), rule.reason, REASONS))
  }
  const fieldPath = rule.fieldPath ?? ''
  if (fieldPath !== '' && typeof followPath(fieldPath, schema, true) === 'string') {
    found.push(invalidField(child(path, 'fieldPath'), fieldPath, 'must be a valid path'))
  }
  return found
}

/** Defaults must be what their own schema accepts, and nothing pruning would take away. */
function checkDefaults(schema: Schema, path: string): FieldError[] {
  const found: FieldError[] = []
  if (schema.default !== undefined && schema.default !== null) {
    const at = child(path, 'default')
    const value = fromPlain(schema.default)
    const pruned = fromPlain(schema.default)
    pruneValue(pruned, schema)
    if (!equalJson(value, pruned)) found.push(invalidField(at, value, 'must not have unknown fields'))
    found.push(...validate(value, schema, { base: at }))
  }
  if (schema.items !== undefined) found.push(...checkDefaults(schema.items, child(path, 'items')))
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    found.push(...checkDefaults(property, keyed(child(path, 'properties'), name)))
  }
  return found
}
