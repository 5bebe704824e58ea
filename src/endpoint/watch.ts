/** WATCH: opens a watcher on the cache and lets it speak until its time is over. */

import type { Cache } from '../cache/cache.ts'
import type { Filter } from '../cache/filter.ts'
import { tooOld, type WatchStart } from '../cache/watcher.ts'
import { parseListOptions, type WatchOptions } from '../kube/listoptions.ts'
import { negotiate } from '../kube/negotiate.ts'
import type { ApiRequest } from '../kube/request.ts'
import { failure, type Status, StatusError, tooManyRequests } from '../kube/status.ts'
import type { EndpointParts, Request, Response, Served } from './endpoint.ts'
import { reach } from './get.ts'
import { filterOf } from './list.ts'
import { jsonHeaders } from './respond.ts'
import { formOf } from './transform.ts'

/** A watch without a timeout lives for a random while, so that clients do not all come back at once: kube-apiserver's range. */
const lifeSecondsMin = 1_800
const lifeSecondsSpread = 1_800
/** Some ten KB each: what one edge node and its operators never reach, and a runaway client does. */
export const watchersMax = 20_000

export async function watchObjects(
  parts: EndpointParts,
  served: Served,
  api: ApiRequest,
  request: Request,
): Promise<Response> {
  const { resource } = served
  const media = negotiate(request.headers.accept, { shape: 'watch', resource })
  const options = parseListOptions(api.query, 'watch')
  const cache = parts.copy.cache(resource.interest)
  const filter = filterOf(served, cache, api, options)
  if (parts.measures.watchers() >= watchersMax) throw tooManyRequests('too many watches are open', 5)
  const headers = jsonHeaders()
  if (media.as !== undefined) headers['content-type'] = 'application/json'
  const start = await startOf(parts, cache, filter, options)
  if (start instanceof Error) return { status: 200, headers, body: [errorFrame(start.status)] }
  const watcher = cache.watch({
    filter,
    form: formOf(media, served, api.query, () => parts.clock.now()),
    start,
    bookmarks: options.bookmarks,
    errorFrame,
  })
  const seconds = options.timeoutSeconds || lifeSecondsMin + Math.random() * lifeSecondsSpread
  // A fresh watch is not ended before its client could take that for a fault: see Watcher.finish.
  const end = () => {
    const waitMs = watcher.finish()
    if (waitMs > 0) parts.clock.setTimer(waitMs, end)
  }
  const cancel = parts.clock.setTimer(Math.max(0, seconds) * 1000, end)
  watcher.onEnd(cancel)
  return { status: 200, headers, body: watcher }
}

/** Where the stream begins, or the Status that its only frame carries: once a watch is accepted, errors are events. */
async function startOf(
  parts: EndpointParts,
  cache: Cache,
  filter: Filter,
  { start, initialEvents, closingBookmark }: WatchOptions,
): Promise<WatchStart | ({ status: Status } & Error)> {
  if (initialEvents) {
    if (start.kind === 'after') {
      const late = await reach(parts, cache, start.version).catch((error: unknown) => error)
      if (late instanceof StatusError) return late
      if (late !== undefined) throw late
    }
    return { kind: 'state', items: cache.list(filter), closingBookmark }
  }
  if (start.kind !== 'after') return { kind: 'now' }
  // Here is the authority: a version that lies ahead was never given out, so its owner's copy is of another past.
  if (start.version > cache.version) {
    return failure(410, 'Expired', `too large resource version: ${start.version}, current: ${cache.version}`)
  }
  if (start.version < cache.history.floor) return tooOld(start.version, cache.history.floor)
  return { kind: 'after', version: start.version }
}

function errorFrame(status: Status): Buffer {
  return Buffer.from(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
}
