/**
 * OpenAPI v2, which older clients know: made from the v3 documents. What v2 cannot say (alternatives, null, defaults of
 * typed fields) is left out, as kube-apiserver leaves it out.
 */
import { builtinSchemas } from '../../../kube/builtin.ts'
import { bearerToken, type OpenApiDocument, serverInfo } from './document.ts'

type Node = Readonly<Record<string, unknown>>

/** What stands before the paths, and what after the definitions. */
export function swaggerHead(): Node {
  return { swagger: '2.0', info: serverInfo() }
}

export function swaggerTail(): Node {
  return { securityDefinitions: bearerToken, security: [{ BearerToken: [] }] }
}

type Members = [name: string, value: Node][]

/** The members of `paths` and of `definitions` that one document contributes; names already in `seen` are skipped. */
export function swaggerParts(document: OpenApiDocument, seen: Set<string>): { paths: Members; definitions: Members } {
  const paths = Object.entries(document.paths).map(([path, item]): Members[0] => [path, pathItem(item as Node)])
  const definitions: Members = []
  for (const [name, schema] of Object.entries(document.components.schemas ?? {})) {
    if (seen.has(name)) continue
    seen.add(name)
    // The facts' own name the kinds of all groups, as a document for everything should.
    definitions.push([name, definition(builtinSchemas()[name] ?? schema)])
  }
  return { paths, definitions }
}

function pathItem(item: Node): Node {
  const converted: Record<string, unknown> = {}
  for (const [method, value] of Object.entries(item)) {
    converted[method] = method === 'parameters' ? (value as Node[]).map(parameter) : operation(value as Node)
  }
  return converted
}

function operation(node: Node): Node {
  const {
    parameters = [],
    requestBody,
    responses = {},
    ...rest
  } = node as {
    parameters?: Node[]
    requestBody?: { content: Node; required?: boolean }
    responses?: Record<string, { description: string; content?: Record<string, { schema: Node }> }>
  }
  const produced = Object.values(responses).flatMap(({ content }) => Object.keys(content ?? {}))
  const consumes = requestBody === undefined ? ['*/*'] : Object.keys(requestBody.content)
  const all = [...(requestBody === undefined ? [] : [body(requestBody)]), ...parameters.map(parameter)]
  const answers = Object.entries(responses).map(([code, { description, content }]) => {
    const schema = Object.values(content ?? {})[0]?.schema
    return [code, schema === undefined ? { description } : { description, schema: converted(schema) }]
  })
  return {
    consumes,
    produces: [...new Set(produced)],
    schemes: ['https'],
    ...(all.length === 0 ? {} : { parameters: all }),
    responses: Object.fromEntries(answers),
    ...rest,
  }
}

function body({ content, required }: { content: Node; required?: boolean }): Node {
  const { schema } = Object.values(content)[0] as { schema: Node }
  return { name: 'body', in: 'body', ...(required ? { required } : {}), schema: converted(schema) }
}

/** v2 writes a parameter's type beside its name. */
function parameter(node: Node): Node {
  const { schema, ...rest } = node
  return { ...(schema as Node), ...rest }
}

const extensionOf = 'x-kubernetes-group-version-kind'

/** A root that keeps unknown fields says nothing about its fields: clients would refuse all others. */
function definition(schema: Node): Node {
  if (schema['x-kubernetes-preserve-unknown-fields'] !== true) return converted(schema)
  const open: Record<string, unknown> = { type: 'object' }
  for (const name of [extensionOf, 'x-kubernetes-selectable-fields']) {
    if (schema[name] !== undefined) open[name] = schema[name]
  }
  return open
}

/** Keywords of v3 that v2 lacks, or that kube-apiserver does not print there. */
const dropped = new Set(['default', 'nullable', 'oneOf', 'anyOf', 'allOf', 'not'])
/** Where a value may have any shape, these would promise one. */
const shaping = new Set(['type', 'properties', 'items', 'additionalProperties', 'required'])

function converted(schema: Node): Node {
  const only = (schema.allOf as Node[] | undefined)?.[0]
  const open = schema['x-kubernetes-preserve-unknown-fields'] === true || schema.nullable === true
  const result: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (dropped.has(keyword) || (open && shaping.has(keyword))) continue
    result[keyword] = convertedKeyword(keyword, value)
  }
  if (typeof only?.$ref === 'string') result.$ref = definitionReference(only.$ref)
  else if (schema.type === undefined && schema['x-kubernetes-int-or-string'] !== true) {
    const alternatives = schema.oneOf as { type?: string }[] | undefined
    if (alternatives?.some(({ type }) => type === 'string')) result.type = 'string'
  }
  return result
}

function convertedKeyword(keyword: string, value: unknown): unknown {
  if (keyword === '$ref') return definitionReference(String(value))
  if (keyword === 'properties') {
    return Object.fromEntries(Object.entries(value as Node).map(([name, one]) => [name, converted(one as Node)]))
  }
  const nested = keyword === 'items' || keyword === 'additionalProperties'
  return nested && typeof value === 'object' ? converted(value as Node) : value
}

function definitionReference(reference: string): string {
  return reference.replace('#/components/schemas/', '#/definitions/')
}
