/**
 * Merge keys and patch strategies out of OpenAPI v3 schemas, in the form strategic merge patch asks for them. Schemas
 * refer to each other in circles, so each step is taken when it is asked for.
 */
import type { MergeSchema } from './strategic.ts'

/** The part of an OpenAPI v3 schema that patches read. */
export type OpenApiSchema = {
  readonly $ref?: string
  readonly allOf?: readonly OpenApiSchema[]
  readonly type?: string
  readonly properties?: Readonly<Record<string, OpenApiSchema>>
  readonly items?: OpenApiSchema
  readonly additionalProperties?: OpenApiSchema | boolean
  readonly 'x-kubernetes-patch-merge-key'?: string
  readonly 'x-kubernetes-patch-strategy'?: string
}

const REFERENCE = '#/components/schemas/'

/** `name` as in components.schemas: `io.k8s.api.core.v1.Pod`. Undefined when there is no such schema. */
export function mergeSchemaOf(schemas: Readonly<Record<string, OpenApiSchema>>, name: string): MergeSchema | undefined {
  return Object.hasOwn(schemas, name) ? new SchemaStep(schemas, { $ref: REFERENCE + name }) : undefined
}

class SchemaStep implements MergeSchema {
  readonly name: string
  readonly mergeKey?: string
  readonly strategies: readonly string[]
  readonly #schemas: Readonly<Record<string, OpenApiSchema>>
  readonly #schema: OpenApiSchema

  constructor(schemas: Readonly<Record<string, OpenApiSchema>>, at: OpenApiSchema) {
    // The key and the strategy stand beside the reference, on the property; the type's own shape behind it.
    const mergeKey = at['x-kubernetes-patch-merge-key']
    if (mergeKey !== undefined) this.mergeKey = mergeKey
    this.strategies = at['x-kubernetes-patch-strategy']?.split(',') ?? []
    const reference = (at.$ref ?? at.allOf?.[0]?.$ref)?.slice(REFERENCE.length)
    const referred = reference !== undefined && Object.hasOwn(schemas, reference) ? schemas[reference] : undefined
    this.#schemas = schemas
    this.#schema = referred ?? at
    this.name = this.#schema.additionalProperties ? 'map' : (reference?.slice(reference.lastIndexOf('.') + 1) ?? '')
  }

  property(name: string): MergeSchema | undefined {
    const properties = this.#schema.properties
    if (properties === undefined || !Object.hasOwn(properties, name)) return undefined
    return new SchemaStep(this.#schemas, properties[name]!)
  }

  element(): MergeSchema | undefined {
    return this.#schema.items === undefined ? undefined : new SchemaStep(this.#schemas, this.#schema.items)
  }
}
