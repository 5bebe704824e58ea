/**
 * The OpenAPI part of the facts: one set of schemas for all documents, and their operations folded into shapes. Folding
 * is checked by unfolding: what src/kube would serve must be what the real server said, prose aside.
 */

import assert from 'node:assert/strict'
import { type BuiltinPaths, type BuiltinSchema, type BuiltinSchemas, expandPaths } from '../../src/kube/builtin.ts'

type Json = { [key: string]: unknown }
type Document = { readonly components?: { readonly schemas?: Json }; readonly paths: { readonly [path: string]: Json } }
export type Documents = ReadonlyMap<string, Document>

const references = '#/components/schemas/'

/** Without `description` and `example` where they are prose; a property may bear these names too. */
function withoutProse(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutProse)
  if (typeof value !== 'object' || value === null) return value
  const kept: Json = {}
  for (const [key, inner] of Object.entries(value)) {
    const prose = (key === 'description' || key === 'example') && typeof inner === 'string'
    if (!prose) kept[key] = withoutProse(inner)
  }
  return kept
}

const kinds = 'x-kubernetes-group-version-kind'

/** The union over all documents. The same name means the same schema, but for the kinds that each group adds. */
export function unionOfSchemas(documents: Documents): BuiltinSchemas {
  const union = new Map<string, Json>()
  for (const document of documents.values()) {
    for (const [name, described] of Object.entries(document.components?.schemas ?? {})) {
      const schema = withoutProse(described) as Json
      const known = union.get(name)
      if (known === undefined) {
        union.set(name, schema)
        continue
      }
      assert.deepEqual({ ...schema, [kinds]: 0 }, { ...known, [kinds]: 0 }, `two schemas are named ${name}`)
      const all = [...((known[kinds] as unknown[]) ?? []), ...((schema[kinds] as unknown[]) ?? [])]
      const unique = new Map(all.map((kind) => [JSON.stringify(kind), kind]))
      if (unique.size > 0) known[kinds] = [...unique.values()]
    }
  }
  return Object.fromEntries([...union].sort(([a], [b]) => (a < b ? -1 : 1)))
}

type Folded = BuiltinPaths['documents'][string]

export function foldPaths(documents: Documents): BuiltinPaths {
  const shapes = new Interned<BuiltinSchema>()
  const parameters = new Interned<readonly BuiltinSchema[]>()
  const folded: { [name: string]: Folded } = {}
  for (const [name, document] of documents) {
    const paths: { [path: string]: Folded['paths'][string] } = {}
    let tag = ''
    for (const [path, { parameters: shared, ...operations }] of Object.entries(document.paths)) {
      const methods: { [method: string]: [number, string, string, ...string[]] } = {}
      for (const [method, operation] of Object.entries(operations)) {
        const { tags, operationId, [kinds]: kind, ...rest } = undescribed(operation as Json)
        tag = String((tags as string[])[0])
        const named: string[] = []
        const shape = shapes.index(hollow(rest, named))
        methods[method] = [shape, String(operationId), kind === undefined ? '' : kindText(kind as Kind), ...named]
      }
      paths[path] = [shared === undefined ? -1 : parameters.index(withoutProse(shared)), methods]
    }
    folded[name] = { tag, paths }
  }
  const facts: BuiltinPaths = { shapes: shapes.values, parameters: parameters.values, documents: folded }
  for (const [name, document] of documents) assert.deepEqual(expandPaths(facts, name), plainPaths(document), name)
  return facts
}

/** What unfolding must give back. */
function plainPaths(document: Document): Json {
  const plain: Json = {}
  for (const [path, { parameters, ...operations }] of Object.entries(document.paths)) {
    const item: Json = {}
    for (const [method, operation] of Object.entries(operations)) item[method] = undescribed(operation as Json)
    if (parameters !== undefined) item.parameters = withoutProse(parameters)
    plain[path] = item
  }
  return plain
}

/** OpenAPI requires a response's description; here it is the reason phrase of the code, so it may stay. */
function undescribed(operation: Json): Json {
  const plain = withoutProse(operation) as Json
  const responses: Json = {}
  for (const [code, response] of Object.entries(operation.responses as { [code: string]: Json })) {
    responses[code] = { description: response.description, ...(withoutProse(response) as Json) }
  }
  return { ...plain, responses }
}

/** The value with each reference replaced by its place in `named`. */
function hollow(value: unknown, named: string[]): unknown {
  if (Array.isArray(value)) return value.map((inner) => hollow(inner, named))
  if (typeof value !== 'object' || value === null) return value
  const left: Json = {}
  for (const [key, inner] of Object.entries(value)) {
    if (key !== '$ref') {
      left[key] = hollow(inner, named)
      continue
    }
    const name = String(inner).slice(references.length)
    if (!named.includes(name)) named.push(name)
    left.$ref = `$${named.indexOf(name)}`
  }
  return left
}

type Kind = { readonly group: string; readonly version: string; readonly kind: string }

function kindText({ group, version, kind }: Kind): string {
  return `${group}/${version}/${kind}`
}

/** Equal values once, each known by its index. */
class Interned<T> {
  readonly values: T[] = []
  readonly #indexes = new Map<string, number>()

  index(value: unknown): number {
    const text = JSON.stringify(value)
    const known = this.#indexes.get(text)
    if (known !== undefined) return known
    this.#indexes.set(text, this.values.length)
    return this.values.push(value as T) - 1
  }
}
