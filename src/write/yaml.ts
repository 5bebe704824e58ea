/** YAML bodies as trees. Aliases may repeat what stands elsewhere, so the size of the result has its own limit. */

import { CORE_SCHEMA, load, realMapTag } from 'js-yaml'
import type { Json, JsonObject } from '../kube/json.ts'

const nodesMax = 500_000 // a 3 MiB body without aliases has fewer; more comes only from aliases of aliases

const schema = CORE_SCHEMA.withTags(realMapTag)

/** Throws an Error whose message says what is wrong. */
export function parseYaml(source: string): Json {
  let nodes = 0
  const tree = (value: unknown): Json => {
    if (++nodes > nodesMax) throw new Error('yaml: document contains excessive aliasing')
    if (Array.isArray(value)) return value.map(tree)
    if (value instanceof Map) {
      const object: JsonObject = new Map()
      for (const [key, member] of value) object.set(String(key), tree(member))
      return object
    }
    if (typeof value === 'number') return Number.isFinite(value) ? value : null
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
    throw new Error(`yaml: a ${typeof value} cannot be JSON`)
  }
  return tree(load(source, { schema }))
}
