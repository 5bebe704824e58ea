/** WATCH: opens a watcher on the cache and lets it speak until its time is over. */

import type { Cache } from '../../cache/cache.ts'
import type { Filter } from '../../cache/filter.ts'
import type { Watcher, WatchStart } from '../../cache/watcher.ts'
import type { WatchOptions } from '../../kube/listoptions.ts'
import type { MediaChoice } from '../../kube/negotiate.ts'
import { failure, type Status, StatusError, tooOld } from '../../kube/status.ts'
import { jsonHeaders } from '../answer/spelled.ts'
import { formOf, readyFor } from '../answer/transform.ts'
import type { Call } from '../call.ts'
import type { ReadParts, Response, Served } from '../endpoint.ts'
import { protobufErrorFrame } from '../forms/protobuf/document.ts'
import { holderOf } from '../shares.ts'
import { reachOrNewest } from './get.ts'
import { filterOf } from './list.ts'

/** A watch without a timeout lives for a random while, so that clients do not all come back at once: kube-apiserver's range. */
const lifeSecondsMin = 1_800
const lifeSecondsSpread = 1_800
/** The longest a timer can wait, 24 days: beyond, it would fire at once. */
const lifeSecondsMax = 2_147_483

export async function watchObjects(
  parts: ReadParts,
  served: Served,
  cache: Cache,
  call: Call,
  /** Is told how to end the watch; what it answers is called when the watch has ended. */
  opened: (end: () => void, watcher: Watcher) => () => void = () => () => {},
): Promise<Response> {
  const media = call.formOf(served)
  const options = call.watchOptions
  // What is wrong with a selector is told before anything is waited for.
  filterOf(served, cache, call, options.labels)
  const headers = watchHeaders(media)
  const errorFrame = errorFrameOf(media)
  await readyFor(media)
  const refused = await refusalOf(parts, cache, options)
  if (refused !== undefined) return refusedWatch(media, refused)
  // From here to the watcher nothing waits: what is published next is not in the state, and not missed. The fields that
  // a filter reads may have changed meanwhile.
  const filter = filterOf(served, cache, call, options.labels)
  const form = formOf(media, served, call.api.query, () => parts.clock.now())
  const watcher = cache.watch({
    filter,
    form: served.view === undefined ? form : served.view.form(form),
    start: startOf(cache, filter, options),
    bookmarks: options.bookmarks,
    errorFrame,
    who: holderOf(call.request).name,
  })
  const seconds = options.timeoutSeconds || lifeSecondsMin + Math.random() * lifeSecondsSpread
  // A fresh watch is not ended before its client could take that for a fault: see Watcher.finish.
  const end = () => {
    const waitMs = watcher.finish()
    if (waitMs > 0) parts.clock.setTimer(waitMs, end)
  }
  const cancel = parts.clock.setTimer(Math.min(Math.max(0, seconds), lifeSecondsMax) * 1000, end)
  watcher.onEnd(cancel)
  watcher.onEnd(opened(end, watcher))
  return { status: 200, headers, body: watcher, isWatch: true }
}

/** Once a watch is accepted, errors are events: the only one of this. */
export function refusedWatch(media: MediaChoice, { status }: StatusError): Response {
  return { status: 200, headers: watchHeaders(media), body: [errorFrameOf(media)(status)] }
}

export function errorFrameOf({ codec }: MediaChoice): (status: Status) => Buffer {
  return codec.name === 'protobuf' ? protobufErrorFrame : jsonErrorFrame
}

/** Those of a watch: a stream in protobuf says that it is one. */
export function watchHeaders({ codec }: MediaChoice): Response['headers'] {
  const headers = jsonHeaders()
  if (codec.name === 'protobuf') headers['content-type'] = `${codec.mediaType};stream=watch`
  return headers
}

function startOf(cache: Cache, filter: Filter, { start, initialEvents, closingBookmark }: WatchOptions): WatchStart {
  if (initialEvents) return { kind: 'state', items: cache.list(filter), closingBookmark }
  return start.kind === 'after' ? start : { kind: 'now' }
}

/** What is wrong with the version asked for; the stream's only frame carries it: once a watch is accepted, errors are events. */
async function refusalOf(
  parts: ReadParts,
  cache: Cache,
  { start, initialEvents }: WatchOptions,
): Promise<StatusError | undefined> {
  if (start.kind !== 'after') return undefined
  const { version } = start
  if (initialEvents) {
    const late = await reachOrNewest(parts, cache, version).catch((error: unknown) => error)
    if (late === undefined || late instanceof StatusError) return late
    throw late
  }
  // A version that was never given out, or not in this past: its owner's copy is of another one.
  if (cache.isGone(version)) {
    if (version <= cache.version) return tooOld(version, cache.version)
    return failure(410, 'Expired', `too large resource version: ${version}, current: ${cache.version}`)
  }
  return version < cache.history.floor ? tooOld(version, cache.history.floor) : undefined
}

function jsonErrorFrame(status: Status): Buffer {
  return Buffer.from(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
}
