/**
 * Built-in kinds against their OpenAPI components, the way a Go struct would decode them: a wrong type ends it (400), a
 * unknown field is dropped and named, null means "not set", and what is required must be there (422).
 */

import { isNumber, isObject, type Json, type JsonObject } from '../json/json.ts'
import { badRequest, type FieldError, type StatusError } from '../status.ts'
import { requiredField } from './errors.ts'
import { type Components, embeddedIn, goTypeName, referenceOf, structName } from './gostruct.ts'
import { parseQuantity, QUANTITY_SYNTAX } from './quantity.ts'
import { base64Problem, timeProblem } from './scalars.ts'
import { propertyOf, type Schema, valuesOf } from './schema.ts'
import { floatOf, kindOf, marshal } from './values.ts'

export type BuiltinVerdict = {
  /** Go's decode error; nothing else was looked at then. */
  readonly undecodable?: string
  /** Paths of fields the component does not specify, in the order they stand. */
  readonly unknown: readonly string[]
  /** Missing required fields. */
  readonly errors: readonly FieldError[]
}

/**
 * Checks an object in place: unknown fields are removed, except where `old`, the stored object, has the same field too
 * (a newer API server put it there, and it is not ours to lose).
 */
export function checkBuiltin(
  object: JsonObject,
  components: Components,
  component: string,
  old?: JsonObject,
): BuiltinVerdict {
  const decoder = new Decoder(components)
  try {
    decoder.struct(object, component, { path: '', stack: [], old })
  } catch (error) {
    if (error instanceof Undecodable) return { undecodable: error.message, unknown: [], errors: [] }
    throw error
  }
  const errors: FieldError[] = []
  findMissing(object, components, component, '', errors)
  return { unknown: decoder.unknown, errors }
}

const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

/** The metadata of a custom resource, which is a Go struct like any built-in's; the rest of the object is left alone. */
export function checkMetadata(object: JsonObject, components: Components): Omit<BuiltinVerdict, 'errors'> {
  const metadata = object.get('metadata')
  if (metadata === undefined || metadata === null) return { unknown: [] }
  if (!isObject(metadata)) {
    return {
      undecodable: `json: cannot unmarshal ${jsonName(metadata)} into Go value of type v1.ObjectMeta`,
      unknown: [],
    }
  }
  const decoder = new Decoder(components)
  try {
    decoder.struct(metadata, OBJECT_META, { path: 'metadata', stack: [], old: undefined })
  } catch (error) {
    if (error instanceof Undecodable) return { undecodable: error.message, unknown: [] }
    throw error
  }
  return { unknown: decoder.unknown }
}

/** 400 for a body that is not what it says it is. */
export function cannotHandle(kind: string, version: string, why: string): StatusError {
  return badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`)
}

/** `fieldValidation=Strict`: the same findings that Warn would send as warnings. */
export function strictDecoding(kind: string, version: string, findings: readonly string[]): StatusError {
  return cannotHandle(kind, version, `strict decoding error: ${findings.join(', ')}`)
}

class Undecodable extends Error {}

type Place = {
  /** `spec.containers[0].name` */
  readonly path: string
  /** The names Go has on its stack: without indexes and map keys. */
  readonly stack: readonly string[]
  readonly old: Json | undefined
}

/** The struct and field whose type an error names. */
type StructField = { readonly struct: string; readonly field: string }

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString'
const TIMES: Readonly<Record<string, boolean>> = {
  'io.k8s.apimachinery.pkg.apis.meta.v1.Time': false,
  'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime': true,
}

class Decoder {
  readonly unknown: string[] = []
  readonly #components: Components

  constructor(components: Components) {
    this.#components = components
  }

  struct(object: JsonObject, component: string, place: Place): void {
    const schema = this.#components[component] as Schema | undefined
    if (schema?.properties === undefined) return
    const struct = structName(component)
    for (const [key, value] of object) {
      const path = place.path === '' ? key : `${place.path}.${key}`
      const property = propertyOf(schema, key)
      const old = isObject(place.old) ? place.old.get(key) : undefined
      if (property === undefined) {
        this.unknown.push(path)
        if (old === undefined) object.delete(key)
      } else if (value === null) {
        object.delete(key)
      } else {
        const embedded = embeddedIn(struct, key)
        const stack = embedded === undefined ? [...place.stack, key] : [...place.stack, embedded, key]
        this.#value(value, property, { path, stack, old }, { struct, field: key })
        if (isLeftOut(value, property) && !schema.required?.includes(key) && key !== 'managedFields') object.delete(key)
      }
    }
  }

  #value(value: Json, schema: Schema, place: Place, holder: StructField): void {
    const component = referenceOf(schema)
    if (component !== undefined) {
      this.#component(value, schema, component, place, holder)
    } else if (schema.type === 'array') {
      if (!Array.isArray(value)) throw mismatch(value, schema, place, holder)
      const { items } = schema
      if (items === undefined) return
      for (const [index, item] of value.entries()) {
        if (item === null) value[index] = zero(items)
        const old = Array.isArray(place.old) ? place.old[index] : undefined
        this.#value(value[index] ?? null, items, { ...place, path: `${place.path}[${index}]`, old }, inner(holder))
      }
    } else if (schema.type === 'object') {
      const values = valuesOf(schema)
      if (!isObject(value)) throw mismatch(value, schema, place, holder)
      if (values === undefined) return
      for (const [key, item] of value) {
        if (item === null) value.set(key, zero(values))
        const old = isObject(place.old) ? place.old.get(key) : undefined
        this.#value(value.get(key) ?? null, values, { ...place, path: `${place.path}.${key}`, old }, inner(holder))
      }
    } else if (value !== null) checkScalar(value, schema, place, holder)
  }

  #component(value: Json, schema: Schema, component: string, place: Place, holder: StructField): void {
    if (component === QUANTITY) {
      const text = isNumber(value) ? marshal(value) : value
      if (typeof text !== 'string' || parseQuantity(text) === undefined) throw new Undecodable(QUANTITY_SYNTAX)
    } else if (component === INT_OR_STRING) {
      if (typeof value !== 'string') checkScalar(value, { type: 'integer', format: 'int32' }, place, holder)
    } else if (TIMES[component] !== undefined) {
      if (typeof value !== 'string') throw mismatch(value, { type: 'string' }, place, holder)
      const problem = timeProblem(value, TIMES[component])
      if (problem !== undefined) throw new Undecodable(problem)
    } else {
      const target = this.#components[component] as Schema | undefined
      if (target?.properties === undefined) return
      if (!isObject(value)) throw mismatch(value, schema, place, holder)
      this.struct(value, component, place)
    }
  }
}

/** A list or map without anything in it: optional ones are not printed. Managed fields alone say something by that. */
function isLeftOut(value: Json, { type, additionalProperties }: Schema): boolean {
  if (type === 'array') return Array.isArray(value) && value.length === 0
  return typeof additionalProperties === 'object' && isObject(value) && value.size === 0
}

/** Elements of a list or map have types of their own, never the field's named one. */
function inner(holder: StructField): StructField {
  return { struct: holder.struct, field: '' }
}

/** What a null element decodes to. */
function zero(schema: Schema): Json {
  if (referenceOf(schema) !== undefined) return new Map()
  return schema.type === 'string' ? '' : null
}

const INT32_MAX = 2 ** 31 - 1

function checkScalar(value: Json, schema: Schema, place: Place, holder: StructField): void {
  switch (schema.type) {
    case 'string':
      if (typeof value !== 'string') throw mismatch(value, schema, place, holder)
      if (schema.format === 'byte') {
        const problem = base64Problem(value)
        if (problem !== undefined) throw new Undecodable(problem)
      }
      return
    case 'boolean':
      if (typeof value !== 'boolean') throw mismatch(value, schema, place, holder)
      return
    case 'number':
      if (!isNumber(value)) throw mismatch(value, schema, place, holder)
      return
    case 'integer': {
      if (!isNumber(value)) throw mismatch(value, schema, place, holder)
      const wide = schema.format === 'int32' && Math.abs(floatOf(value) + 0.5) > INT32_MAX + 0.5
      if (kindOf(value) !== 'integer' || wide) throw mismatch(value, schema, place, holder, marshal(value))
      return
    }
    default:
  }
}

const JSON_NAMES: Readonly<Record<string, string>> = { boolean: 'bool', integer: 'number' }

function jsonName(value: Json): string {
  const kind = kindOf(value)
  return JSON_NAMES[kind] ?? kind
}

function mismatch(value: Json, schema: Schema, place: Place, holder: StructField, literal = ''): Undecodable {
  const what = `${jsonName(value)}${literal === '' ? '' : ` ${literal}`}`
  const type = goTypeName(schema, holder.struct, holder.field)
  const field = `${holder.struct}.${place.stack.join('.')}`
  return new Undecodable(`json: cannot unmarshal ${what} into Go struct field ${field} of type ${type}`)
}

/** Required by the component and yet accepted without by the real server. */
const TOLERATED: ReadonlySet<string> = new Set([
  'CSINodeSpec.drivers',
  'ControllerRevision.revision',
  'LimitRangeSpec.limits',
  'PodFailurePolicy.rules',
  'PriorityClass.value',
  'RoleRef.apiGroup',
])

/** Required fields that are absent or empty. Status is written by controllers and held to nothing. */
function findMissing(
  object: JsonObject,
  components: Components,
  component: string,
  path: string,
  errors: FieldError[],
): void {
  const schema = components[component] as Schema | undefined
  if (schema?.properties === undefined) return
  const struct = structName(component)
  for (const [name, property] of Object.entries(schema.properties)) {
    if (path === '' && name === 'status') continue
    const at = path === '' ? name : `${path}.${name}`
    const value = object.get(name)
    const target = referenceOf(property)
    const plainStruct = target !== undefined && isStruct(components, target) && property.default !== undefined
    if (value === undefined && plainStruct) {
      // A struct that is no pointer is always there: what is required is found missing inside it.
      findMissing(new Map(), components, target, at, errors)
    } else if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) {
      const needed = schema.required?.includes(name) === true && !TOLERATED.has(`${struct}.${name}`)
      if (needed) errors.push(requiredField(at))
    } else {
      findMissingIn(value, property, components, at, errors)
    }
  }
}

function isStruct(components: Components, component: string): boolean {
  return (components[component] as Schema | undefined)?.properties !== undefined
}

function findMissingIn(value: Json, schema: Schema, components: Components, path: string, errors: FieldError[]): void {
  const component = referenceOf(schema)
  if (component !== undefined) {
    if (isObject(value)) findMissing(value, components, component, path, errors)
  } else if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return
    for (const [index, item] of value.entries()) findMissingIn(item, items, components, `${path}[${index}]`, errors)
  } else if (isObject(value)) {
    const values = valuesOf(schema)
    if (values === undefined) return
    for (const [key, item] of value) findMissingIn(item, values, components, `${path}[${key}]`, errors)
  }
}
