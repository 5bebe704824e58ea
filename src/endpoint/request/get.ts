/** GET of one object: the stored bytes with their kind in front. */
import type { Cache } from '../../cache/cache.ts'
import type { Item } from '../../cache/item.ts'
import type { MediaChoice } from '../../kube/negotiate.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { notFound, tooLargeResourceVersion } from '../../kube/status.ts'
import { plain } from '../answer/respond.ts'
import { isWorthGzip, spelled, wantsPretty } from '../answer/spelled.ts'
import { objectAs, readyFor } from '../answer/transform.ts'
import type { Call } from '../call.ts'
import type { ReadParts, Request, Response, Served } from '../endpoint.ts'

/** How long a read waits for a version that lies ahead: kube-apiserver's own patience. */
const reachMs = 3_000

export function getObject(parts: ReadParts, served: Served, cache: Cache, call: Call): Promise<Response> | Response {
  const { resource } = served
  call.formOf(served)
  const state = call.getOptions
  // The common read waits for nothing: it is answered without a promise of its own.
  if (state.kind === 'notOlderThan' && state.version > cache.version) {
    return reach(parts, cache, state.version).then(() => getObject(parts, served, cache, call))
  }
  const item = cache.get(call.keyOf(resource))
  if (item === undefined) throw notFound(resource, call.api.name)
  return getItem(parts, served, item, call)
}

/** One object as it is asked for. */
export function getItem(parts: ReadParts, served: Served, stored: Item, call: Call): Promise<Response> | Response {
  const { api, request } = call
  const item = served.view === undefined ? stored : served.view.see(stored)
  if (item === undefined) throw notFound(served.resource, api.name)
  const media = call.formOf(served)
  if (isPlain(media, api, request) && !isWorthGzip(item.bytes.length, request)) {
    return plain(200, served.spelling.pieces(item))
  }
  const { query } = api
  const print = () => spelled(200, objectAs(media, served, item, query, parts.clock.now()), { media, query, request })
  return readyFor(media)?.then(print) ?? print()
}

export async function reach(parts: ReadParts, cache: Cache, version: number): Promise<void> {
  if (await cache.progress.reach(version, reachMs, parts.clock)) return
  throw tooLargeResourceVersion(String(version), String(cache.version))
}

/**
 * For what may be newer than the version. After a restore to lower versions a reflector that was told 410 first lists "not
 * older than" the version that is gone; refused with 504 it would ask ten times more before it takes what there is.
 */
export async function reachOrNewest(parts: ReadParts, cache: Cache, version: number): Promise<void> {
  if (await cache.progress.reach(version, reachMs, parts.clock)) return
  if (!cache.isSetBack) throw tooLargeResourceVersion(String(version), String(cache.version))
}

function isPlain(media: MediaChoice, api: ApiRequest, request: Request): boolean {
  return media.as === undefined && media.codec.name === 'json' && !media.pretty && !wantsPretty(api.query, request)
}
