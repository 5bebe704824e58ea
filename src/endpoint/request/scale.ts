/** GET of a Scale: apart from other reads, because an edge has no need of what computes it. */
import type { ApiRequest } from '../../kube/request.ts'
import { objectKey } from '../../kube/resource.ts'
import { notFound } from '../../kube/status.ts'
import { readScale } from '../../write/scale.ts'
import type { EndpointParts, Request, Response, Served } from '../endpoint.ts'
import { printResult } from './write.ts'

/** A Scale is computed from the object it belongs to. */
export async function getScale(
  parts: EndpointParts,
  served: Served,
  api: ApiRequest,
  request: Request,
): Promise<Response> {
  const { resource } = served
  const item = parts.copy.cache(resource.interest).get(objectKey(resource.namespaced ? api.namespace : '', api.name))
  if (item === undefined) throw notFound(resource, api.name)
  const review = readScale(resource, parts.registry.definitionOf(resource), item)
  return printResult(served, { code: 200, review, warnings: [] }, api, request, parts)
}
