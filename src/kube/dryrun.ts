/**
 * Whether a deletion is only tried: its options may stand in its body instead of the query, as kubectl puts them. The body of
 * an eviction holds the same options one level deeper.
 */
import { field, type Json, JsonError, parseJson } from './json/json.ts'
import { parseYaml } from './json/yaml/yaml.ts'
import { wantsDryRun } from './protobuf/peek.ts'
import { isProtobuf, ProtobufFault, readEnvelope } from './protobuf/protobuf.ts'

/** A body that cannot be read asks for nothing: the API server has refused it, or understands more than we do. */
export async function isDryRun(contentType: string | undefined, body: Buffer): Promise<boolean> {
  if (body.length === 0) return false
  try {
    if (isProtobuf(contentType)) {
      const { kind, raw } = readEnvelope(body)
      return wantsDryRun(raw, { isEviction: kind === 'Eviction' })
    }
    const tree = /yaml/i.test(contentType ?? '') ? await parseYaml(body) : parseJson(body)
    return [field(tree, 'dryRun'), field(tree, 'deleteOptions', 'dryRun')].some(isNamed)
  } catch (error) {
    if (error instanceof JsonError || error instanceof ProtobufFault) return false
    throw error
  }
}

function isNamed(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0
}
