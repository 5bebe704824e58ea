/** GET of a Scale, which is computed from the object it belongs to. */
import type { Item } from '../../cache/item.ts'
import { type JsonObject, parseJson } from '../../kube/json/json.ts'
import { readScale } from '../../kube/schema/scale.ts'
import type { ScalePaths } from '../../kube/schema/scaled.ts'
import { notFound } from '../../kube/status.ts'
import type { Call } from '../call.ts'
import type { ReadParts, Response, Served } from '../endpoint.ts'
import { printResult } from './write.ts'

/** `scale`: where a custom resource keeps its replicas. No resource with a Scale is stored in another version than it is served. */
export async function getScale(
  parts: ReadParts,
  served: Served,
  { item, scale }: { readonly item: Item | undefined; readonly scale: ScalePaths | undefined },
  call: Call,
): Promise<Response> {
  const { resource } = served
  if (item === undefined) throw notFound(resource, call.api.name)
  const review = readScale({ custom: resource.custom, scale }, parseJson(item.bytes) as JsonObject)
  return printResult(parts, served, call, { code: 200, review, warnings: [] })
}
