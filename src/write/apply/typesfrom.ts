/**
 * Types for merging, read from OpenAPI: components of built-in kinds and the structural schemas of definitions alike.
 * A type is built once for a component or schema and kept.
 */

import { bytewise } from '../../kube/json/goformat.ts'
import { fromPlain } from '../../kube/json/json.ts'
import { type Components, referenceOf } from '../../kube/schema/gostruct.ts'
import type { Schema } from '../../kube/schema/schema.ts'
import {
  deducedType,
  type FieldType,
  type ListType,
  type MapType,
  type MemberType,
  type Scalar,
  untypedType,
} from './fieldtype.ts'
import { fieldElement, keyHead } from './pathelement.ts'

/** Beside the extensions of definitions: some lists of built-in kinds tell only strategic merge how they are merged. */
type Node = Schema & {
  readonly 'x-kubernetes-patch-strategy'?: string
  readonly 'x-kubernetes-patch-merge-key'?: string
}

type Open<T> = { -readonly [key in keyof T]: T[key] }

const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity'
const RAW_EXTENSION = 'io.k8s.apimachinery.pkg.runtime.RawExtension'
const OBJECT_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'

const metaFields: Readonly<Record<string, Schema>> = {
  apiVersion: { type: 'string' },
  kind: { type: 'string' },
  metadata: { $ref: `#/components/schemas/${OBJECT_META}` },
}

export class FieldTypes {
  readonly #components: Components
  readonly #named = new Map<string, FieldType>()
  /** The same component where a field wants its parts owned otherwise than the component says. */
  readonly #overridden = new Map<string, FieldType>()
  readonly #custom = new WeakMap<Schema, FieldType>()

  constructor(components: Components) {
    this.#components = components
  }

  /** Of a component, which must exist. */
  component(name: string): FieldType {
    const known = this.#named.get(name)
    if (known !== undefined) return known
    const type: Open<FieldType> = { name }
    // Kept before it is complete, because components refer to each other in circles.
    this.#named.set(name, type)
    const schema = this.#components[name] as Node | undefined
    if (name === QUANTITY) type.scalar = 'untyped'
    else if (name === RAW_EXTENSION || schema === undefined) Object.assign(type, { ...untypedType, name })
    else Object.assign(type, this.#parse(schema, false))
    return type
  }

  /** Of the objects of a definition's version; without a schema nothing is declared. */
  custom(schema: Schema | undefined): FieldType {
    if (schema === undefined) return deducedType
    let type = this.#custom.get(schema)
    if (type === undefined) {
      const properties = { ...schema.properties, ...metaFields }
      type = this.#parse({ ...schema, properties }, false)
      this.#custom.set(schema, type)
    }
    return type
  }

  /** `preserve`: fields that are not declared are allowed here and below. */
  #parse(schema: Node, preserve: boolean): FieldType {
    const keeps = preserve || schema['x-kubernetes-preserve-unknown-fields'] === true
    switch (schema.type ?? '') {
      case '':
        return { scalar: 'untyped', list: this.#list(schema, keeps), map: this.#map(schema, keeps) }
      case 'object':
        return { map: this.#map(schema, keeps) }
      case 'array':
        return { list: this.#list(schema, keeps) }
      default:
        return { scalar: scalarOf(schema) }
    }
  }

  #reference(schema: Node, preserve: boolean): FieldType {
    const name = referenceOf(schema)
    if (name === undefined) return this.#parse(schema, preserve)
    const relation = schema['x-kubernetes-map-type']
    const type = this.component(name)
    return relation === undefined ? type : this.#override(type, name, relation === 'atomic')
  }

  #override(type: FieldType, name: string, atomic: boolean): FieldType {
    const id = `${name} ${atomic}`
    let overridden = this.#overridden.get(id)
    if (overridden === undefined) {
      // The component may still be incomplete: what it is, is looked up when it is asked for.
      let map: MapType | undefined
      overridden = {
        name,
        get map(): MapType {
          map ??= { ...type.map!, atomic }
          return map
        },
      }
      this.#overridden.set(id, overridden)
    }
    return overridden
  }

  #map(schema: Node, preserve: boolean): MapType {
    const embedded = schema['x-kubernetes-embedded-resource'] === true
    const properties = embedded ? { ...schema.properties, ...metaFields } : schema.properties
    const fields = new Map<string, MemberType>()
    for (const [name, property] of Object.entries(properties ?? {})) {
      const given = property.default === undefined ? undefined : fromPlain(property.default)
      fields.set(name, { type: this.#reference(property, preserve), element: fieldElement(name), default: given })
    }
    const atomic = schema['x-kubernetes-map-type'] === 'atomic'
    return { fields, element: this.#elementOf(schema, fields.size > 0, preserve), atomic }
  }

  #elementOf(schema: Node, declares: boolean, preserve: boolean): FieldType | undefined {
    const additional = schema.additionalProperties
    if (additional === undefined) return preserve || !declares ? deducedType : undefined
    if (typeof additional === 'object') return this.#reference(additional, preserve)
    return additional ? deducedType : undefined
  }

  #list(schema: Node, preserve: boolean): ListType {
    const element = schema.items === undefined ? untypedType : this.#reference(schema.items, preserve)
    const keys = listKeys(schema)
    const sortedKeys = [...(keys ?? [])].sort(bytewise)
    return { element, atomic: keys === undefined, keys: keys ?? [], sortedKeys, keyHeads: sortedKeys.map(keyHead) }
  }
}

/** None for a set; undefined for a list that is owned as a whole. */
function listKeys(schema: Node): readonly string[] | undefined {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return []
    case 'map':
      return schema['x-kubernetes-list-map-keys'] ?? []
    case 'atomic':
      return undefined
  }
  const strategy = schema['x-kubernetes-patch-strategy']
  if (strategy !== 'merge' && strategy !== 'merge,retainKeys') return undefined
  const key = schema['x-kubernetes-patch-merge-key']
  return key === undefined ? [] : [key]
}

/** Strings with a format of their own may be written as something else than a string. */
function scalarOf({ type, format }: Node): Scalar {
  switch (type) {
    case 'integer':
    case 'number':
      return 'numeric'
    case 'boolean':
      return 'boolean'
    case 'string':
      return format === undefined || format === '' || format === 'byte' ? 'string' : 'untyped'
    default:
      return 'untyped'
  }
}
