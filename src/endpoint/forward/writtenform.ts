/** An object out of the reply to a write, in the form in which the copy keeps it. */
import { listItemForm } from '../../kube/listpage.ts'
import { decodeMessage, isProtobuf, messageOf, readEnvelope } from '../../kube/protobuf/protobuf.ts'
import type { Resource } from '../../kube/resource.ts'

/** The body of a reply, with the kind of object that it says it holds. */
export type ReplyBody = { readonly contentType: string; readonly bytes: Buffer; readonly kind: string }

/** undefined where the reply holds something else, or the object in other words than its own. */
export function formOf({ contentType, bytes, kind }: ReplyBody, resource: Resource | undefined): Buffer | undefined {
  if (!isWhole(kind, contentType) || (resource !== undefined && kind !== resource.kind)) return undefined
  return isProtobuf(contentType) ? formOfMessage(bytes) : formOfJson(bytes, resource?.custom ?? true)
}

/** Tables, metadata and scales are not the object itself. */
function isWhole(kind: string, contentType: string): boolean {
  const [media = '', ...parameters] = contentType.split(';')
  if (parameters.some((one) => one.trim().startsWith('as='))) return false
  if (media.trim() !== 'application/json' && !isProtobuf(contentType)) return false
  return !['', 'Status', 'Table', 'PartialObjectMetadata', 'Scale'].includes(kind)
}

/** An answer ends its line, an object does not; one that is printed for people is not the object's own bytes. */
function formOfJson(bytes: Buffer, custom: boolean): Buffer | undefined {
  if (bytes[1] === 0x0a) return undefined
  return listItemForm(bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes, custom)
}

/** The object's JSON as the API server would have printed it. */
function formOfMessage(bytes: Buffer): Buffer | undefined {
  const { apiVersion, kind, raw } = readEnvelope(bytes)
  const message = messageOf(apiVersion, kind)
  return message === undefined ? undefined : decodeMessage(message, raw)
}
