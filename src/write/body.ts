/** The body of a request as a tree, with Go's words for what cannot be one. */

import { isObject, type Json, JsonError, type JsonObject, parseJson } from '../kube/json/json.ts'
import { parseYaml } from '../kube/json/yaml/yaml.ts'
import type { TypeMeta } from '../kube/protobuf/protobuf.ts'
import { failure, type StatusError } from '../kube/status.ts'
import { isMuch, pause } from './pause.ts'
import { openProtobuf } from './protobufbody.ts'
import type { WriteRequest } from './write.ts'

/** `type` is there where the fault lies behind what the body says it is. */
export type ParsedBody =
  | { readonly tree: JsonObject; readonly duplicates: string[] }
  | { readonly fault: string; readonly type?: TypeMeta }

/** Two bytes of a message can be a whole empty object: what real ones unfold to is a few times the 3 MiB of a body. */
const unfoldedBytesMax = 16 * 1024 * 1024

function tooLarge(): StatusError {
  return failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${unfoldedBytesMax} bytes of JSON`)
}

const typeMeta =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

/** `fault` is what the real decoder says before it knows of any kind; `expected` is what a message that names none is. */
export async function parseBody(
  request: Pick<WriteRequest, 'body' | 'format' | 'who'>,
  expected: TypeMeta & { readonly anyVersion?: boolean },
): Promise<ParsedBody> {
  const { body, format } = request
  const duplicates: string[] = []
  const source = body ?? Buffer.alloc(0)
  const much = isMuch({ body })
  if (format === 'protobuf') {
    const opened = openProtobuf(source, expected, expected)
    if ('fault' in opened) return opened
    if (opened.json.length > unfoldedBytesMax) throw tooLarge()
    return { tree: parseJson(opened.json) as JsonObject, duplicates }
  }
  let tree: Json
  try {
    tree =
      format === 'yaml'
        ? await parseYaml(source, much ? () => pause(request) : undefined)
        : parseJson(source, { duplicates: (path) => duplicates.push(path) })
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    if (format === 'yaml') return { fault: error.message.replace(/^error converting YAML to JSON: /, '') }
    return { fault: `couldn't get version/kind; json parse error: ${error.message}` }
  }
  if (tree === null) return { tree: new Map(), duplicates }
  if (!isObject(tree)) {
    const fault = `json: cannot unmarshal ${goKind(tree)} into Go value of type ${typeMeta}`
    return { fault: `couldn't get version/kind; json parse error: ${fault}` }
  }
  for (const key of ['apiVersion', 'kind']) {
    const value = tree.get(key)
    if (value !== undefined && value !== null && typeof value !== 'string') {
      const fault = `json: cannot unmarshal ${goKind(value)} into Go struct field .${key} of type string`
      return { fault: `couldn't get version/kind; json parse error: ${fault}` }
    }
  }
  return { tree, duplicates }
}

/** How encoding/json names what it met. */
export function goKind(value: Json): string {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  if (Array.isArray(value)) return 'array'
  return isObject(value) ? 'object' : 'number'
}

const shownMax = 30 // as much of a body as the real server quotes

/** The beginning of a body, for messages. */
export function bodyShown(body: Buffer | undefined): string {
  if (body === undefined || body.length === 0) return '<empty>'
  const encoding = body[0] === 0x7b ? 'utf8' : 'hex'
  const shown = body.toString(encoding, 0, Math.min(shownMax, body.length))
  return body.length > shownMax ? `${shown} ...` : shown
}
