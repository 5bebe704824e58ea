/** Everything that changes something: reads the body, hands it to the write engine, prints what comes back. */
import { Item, makeItem } from '../../cache/item.ts'
import { anonymous } from '../../kube/caller.ts'
import { type JsonObject, printJson, text } from '../../kube/json/json.ts'
import { bodyFormat, checkShape, type MediaChoice, negotiate, patchFormat } from '../../kube/negotiate.ts'
import { noFields } from '../../kube/object.ts'
import type { TypeMeta } from '../../kube/protobuf/enveloping.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { scales } from '../../kube/table/tableresource.ts'
import type { StoredObject, WriteRequest, WriteResult } from '../../write/write.ts'
import { warn } from '../answer/respond.ts'
import { spelled } from '../answer/spelled.ts'
import { computedAs, listResponse, objectAs, readyFor } from '../answer/transform.ts'
import type { Call } from '../call.ts'
import type { EndpointParts } from '../composition.ts'
import type { ReadParts, Request, Response, Served } from '../endpoint.ts'
import { inProtobuf, statusType } from '../forms/protobuf/document.ts'
import { holderOf } from '../shares.ts'

const newline = Buffer.from('\n')

export async function writeObject(parts: EndpointParts, served: Served, call: Call): Promise<Response> {
  const { resource } = served
  // Before anything is done: a client that could not read the answer is told so.
  const media = negotiate(call.request.headers.accept, { shape: 'object', resource, unshaped: true })
  const body = await call.body()
  const write = writeRequest(parts, served, call, body.length === 0 ? undefined : body)
  return printResult(parts, served, call, await written(parts, call, write), media)
}

function written({ writer }: EndpointParts, { api }: Call, write: WriteRequest): Promise<WriteResult> {
  switch (api.verb) {
    case 'create':
      return writer.create(write)
    case 'update':
      return writer.update(write)
    case 'patch':
      return writer.patch(write)
    case 'delete':
      return writer.delete(write)
    default:
      return writer.deleteCollection(write)
  }
}

function writeRequest(
  { authentication }: EndpointParts,
  { resource }: Served,
  call: Call,
  body: Buffer | undefined,
): WriteRequest {
  const { api, request } = call
  const contentType = request.headers['content-type']
  const isPatch = api.verb === 'patch'
  const patchKind = isPatch ? patchFormat(contentType, resource.custom) : undefined
  const isDelete = api.verb === 'delete' || api.verb === 'deletecollection'
  // Options and scales are of built-in kinds, whatever they are meant for.
  const anyShape = resource.custom && !isDelete && api.subresource !== 'scale'
  const format = isPatch || (isDelete && body === undefined) ? 'json' : bodyFormat(contentType, { anyShape })
  return {
    resource,
    subresource: api.subresource,
    namespace: call.namespaceOf(resource),
    name: api.name,
    query: (name) => api.query.get(name),
    body,
    format,
    caller: authentication.callerOf(call) ?? anonymous,
    userAgent: request.headers['user-agent'] ?? '',
    who: holderOf(request).name,
    ...(patchKind === undefined ? {} : { patchKind }),
  }
}

export async function printResult(
  parts: ReadParts,
  served: Served,
  { api, request }: Call,
  result: WriteResult,
  media = negotiate(request.headers.accept, { shape: 'object', resource: served.resource, unshaped: true }),
): Promise<Response> {
  checkShape(media, result.list === undefined ? 'object' : 'list', served.resource)
  await readyFor(media)
  const choice = { media, query: api.query, request }
  const response = await (result.list === undefined
    ? spelled(result.code, pieces(result, media, served, api, parts), choice)
    : printList(result.list, served, { ...choice, code: result.code, nowMs: parts.clock.now() }))
  warn(response, result.warnings)
  return response
}

function pieces(
  result: WriteResult,
  media: MediaChoice,
  served: Served,
  api: ApiRequest,
  parts: ReadParts,
): Buffer | readonly Buffer[] {
  const nowMs = parts.clock.now()
  if (result.item !== undefined) return objectAs(media, served, asItem(result.item), api.query, nowMs)
  if (result.review !== undefined && api.subresource === 'scale') {
    return computedAs(media, scales, result.review, { query: api.query, nowMs })
  }
  const [type, json] =
    result.review === undefined
      ? [statusType, Buffer.from(JSON.stringify(result.status))]
      : [typeOf(result.review), Buffer.from(printJson(result.review))]
  return media.codec.name === 'protobuf' ? inProtobuf(type, json) : [json, newline]
}

/** What a deletion of many has deleted. */
function printList(
  { version, items }: NonNullable<WriteResult['list']>,
  served: Served,
  {
    code,
    ...choice
  }: { code: number; media: MediaChoice; query: ApiRequest['query']; request: Request; nowMs: number },
): Promise<Response> {
  return listResponse(code, served, items.map(asItem), { ...choice, meta: { version } })
}

function typeOf(tree: JsonObject): TypeMeta {
  return { apiVersion: text(tree, 'apiVersion'), kind: text(tree, 'kind') }
}

/** What was stored is the very item that is published, and has its forms made once for both. */
function asItem(stored: StoredObject): Item {
  return stored instanceof Item ? stored : makeItem(stored.bytes, stored.version, noFields)
}
