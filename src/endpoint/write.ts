/** Everything that changes something: reads the body, hands it to the write engine, prints what comes back. */
import { makeItem } from '../cache/item.ts'
import { printJson } from '../json/json.ts'
import { bodyFormat, type MediaChoice, negotiate, patchFormat } from '../kube/negotiate.ts'
import { noFields } from '../kube/object.ts'
import type { ApiRequest } from '../kube/request.ts'
import { objectKey } from '../kube/resource.ts'
import { scales } from '../table/printers.ts'
import type { Caller, Stored, WriteRequest, WriteResult } from '../write/write.ts'
import type { EndpointParts, Request, Response, Served } from './endpoint.ts'
import { spelled, statusResponse, warn } from './respond.ts'
import { computedAs, listAs, objectAs } from './transform.ts'

const nobody: Caller = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'] }

export async function writeObject(
  parts: EndpointParts,
  served: Served,
  api: ApiRequest,
  request: Request,
): Promise<Response> {
  const body = await request.body()
  const write = writeRequest(served, api, request, body.length === 0 ? undefined : body)
  const { writer } = parts
  switch (api.verb) {
    case 'create':
      return printResult(served, await writer.create(write), api, request, parts)
    case 'update':
      return printResult(served, await writer.update(write), api, request, parts)
    case 'patch':
      return printResult(served, await writer.patch(write), api, request, parts)
    case 'delete':
      if (parts.copy.cache(served.resource.interest).isCorrupt(objectKey(write.namespace, write.name))) {
        return discard(parts, write)
      }
      return printResult(served, await writer.delete(write), api, request, parts)
    default:
      return printResult(served, await writer.deleteCollection(write), api, request, parts)
  }
}

/** The one thing that can be done with an object whose bytes are damaged: nothing of it can be asked, so it just goes. */
async function discard(parts: EndpointParts, { resource, namespace, name }: WriteRequest): Promise<Response> {
  await parts.copy.remove(resource.interest, objectKey(namespace, name))
  parts.log.warn('store.discarded', { interest: resource.interest, object: objectKey(namespace, name) })
  const details = { name, ...(resource.group === '' ? {} : { group: resource.group }), kind: resource.resource }
  return statusResponse({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

function writeRequest(served: Served, api: ApiRequest, request: Request, body: Buffer | undefined): WriteRequest {
  const { resource } = served
  const contentType = request.headers['content-type']
  const isPatch = api.verb === 'patch'
  const patchKind = isPatch ? patchFormat(contentType, resource.custom) : undefined
  const format = isPatch || body === undefined ? 'json' : bodyFormat(contentType)
  return {
    resource,
    subresource: api.subresource,
    namespace: resource.namespaced ? api.namespace : '',
    name: api.name,
    query: (name) => api.query.get(name),
    body,
    format: format === 'yaml' ? 'yaml' : 'json',
    caller: request.caller ?? nobody,
    ...(patchKind === undefined ? {} : { patchKind }),
  }
}

export function printResult(
  served: Served,
  result: WriteResult,
  api: ApiRequest,
  request: Request,
  parts: EndpointParts,
): Response {
  const media = negotiate(request.headers.accept, {
    shape: result.list === undefined ? 'object' : 'list',
    resource: served.resource,
  })
  const response = spelled(result.code, pieces(result, media, served, api, parts), {
    media,
    query: api.query,
    request,
  })
  warn(response, result.warnings)
  return response
}

function pieces(
  result: WriteResult,
  media: MediaChoice,
  served: Served,
  api: ApiRequest,
  parts: EndpointParts,
): Buffer | readonly Buffer[] {
  const nowMs = parts.clock.now()
  if (result.item !== undefined) return objectAs(media, served, asItem(result.item), api.query, nowMs)
  if (result.list !== undefined) {
    const { version, items } = result.list
    return listAs(media, served, items.map(asItem), { meta: { version }, query: api.query, nowMs })
  }
  if (result.review !== undefined && api.subresource === 'scale') {
    return computedAs(media, scales, result.review, { query: api.query, nowMs })
  }
  if (result.review !== undefined) return Buffer.from(`${printJson(result.review)}\n`)
  return Buffer.from(`${JSON.stringify(result.status)}\n`)
}

function asItem(stored: Stored) {
  return makeItem(stored.bytes, stored.version, noFields)
}
