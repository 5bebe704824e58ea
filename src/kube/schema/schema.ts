/**
 * What an object may look like. A custom resource is shaped by the structural schema of its definition: decoded objects
 * are pruned (prune), nulls dropped and defaults filled in (defaulting), then checked (check): types and values
 * (validate), lists that are sets or maps (listtype), embedded resources (embedded), the values /scale reads (scaled),
 * and `x-kubernetes-validations` (cel). Built-in kinds, and the metadata of all, are checked against the generated
 * OpenAPI components (builtin). Definitions themselves are judged (definition, with openapi and structural for their
 * schemas; advice for what is merely warned about), given a status (naming) and turned into resources (versions). All
 * of it is pure; texts and field paths are those of kube-apiserver, because clients and people match on them.
 */

/** One node of an `openAPIV3Schema`, as a plain object. Only what is acted upon is listed. */
export type Schema = {
  readonly type?: string
  readonly format?: string
  readonly nullable?: boolean
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly title?: string
  readonly description?: string
  readonly maximum?: number
  readonly exclusiveMaximum?: boolean
  readonly minimum?: number
  readonly exclusiveMinimum?: boolean
  readonly multipleOf?: number
  readonly maxLength?: number
  readonly minLength?: number
  readonly pattern?: string
  readonly maxItems?: number
  readonly minItems?: number
  readonly uniqueItems?: boolean
  readonly maxProperties?: number
  readonly minProperties?: number
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly not?: Schema
  readonly $ref?: string
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-validations'?: readonly Rule[]
}

/** One entry of `x-kubernetes-validations`. */
export type Rule = {
  readonly rule: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
  readonly fieldPath?: string
  readonly optionalOldSelf?: boolean
}

/** A schema's own property, never one inherited from Object.prototype. */
export function propertyOf(schema: Schema | undefined, name: string): Schema | undefined {
  const properties = schema?.properties
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined
}

/** The schema of every value of a map, where `additionalProperties` carries one. */
export function valuesOf(schema: Schema | undefined): Schema | undefined {
  const values = schema?.additionalProperties
  return typeof values === 'object' ? values : undefined
}

/** Keys whose content belongs to the API machinery at the root of every resource. */
export const META_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])
