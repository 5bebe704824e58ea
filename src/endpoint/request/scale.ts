/** GET of a Scale: apart from other reads, because an edge has no need of what computes it. */
import { notFound } from '../../kube/status.ts'
import { readScale } from '../../write/scale.ts'
import type { Call } from '../call.ts'
import type { EndpointParts } from '../composition.ts'
import type { Response, Served } from '../endpoint.ts'
import { printResult } from './write.ts'

/** A Scale is computed from the object it belongs to. */
export async function getScale(parts: EndpointParts, served: Served, call: Call): Promise<Response> {
  const { resource } = served
  const item = parts.copy.cache(resource.interest).get(call.keyOf(resource))
  if (item === undefined) throw notFound(resource, call.api.name)
  const review = readScale(resource, served.definition, item)
  return printResult(parts, served, call, { code: 200, review, warnings: [] })
}
