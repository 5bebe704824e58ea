/** LIST: the matching objects at the version asked for, whole or page by page. The disk is touched only for the past. */
import type { Cache } from '../../cache/cache.ts'
import { type Filter, makeFilter } from '../../cache/filter.ts'
import type { Item } from '../../cache/item.ts'
import { CONTINUE_TTL_SECONDS, type ContinueToken, encodeContinue } from '../../kube/continue.ts'
import type { ListOptions } from '../../kube/listoptions.ts'
import type { LabelSelector } from '../../kube/selector.ts'
import { expired } from '../../kube/status.ts'
import { HistoryGone } from '../../store/store.ts'
import { listResponse } from '../answer/transform.ts'
import type { Call } from '../call.ts'
import type { ReadParts, Response, Served } from '../endpoint.ts'
import { reach, reachOrNewest } from './get.ts'

const inconsistentText =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
  'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
  'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
  'deleted between the time the first chunk was returned and now may show up in the list.'

export async function listObjects(parts: ReadParts, served: Served, cache: Cache, call: Call): Promise<Response> {
  const { resource } = served
  const { request } = call
  const media = call.formOf(served)
  const prefix = call.prefixOf(resource)
  const options = call.listOptions(resource)
  // Made anew where it is used: while a version is waited for, the fields that a filter reads may change.
  const filter = () => filterOf(served, cache, call, options.labels)
  filter()
  const nowMs = parts.clock.now()
  const { version, items } = await find(parts, cache, filter, options, prefix, nowMs)
  const page = cut(seenBy(served, items), options, { prefix, version, nowMs })
  const { query } = call.api
  const meta = { version, continueToken: page.continueToken, remaining: page.remaining }
  return listResponse(200, served, page.items, { meta, media, query, nowMs, request })
}

export function filterOf(served: Served, cache: Cache, call: Call, labels: LabelSelector): Filter {
  const { resource, view } = served
  const filter = makeFilter({
    namespaced: resource.namespaced,
    namespace: call.namespaceOf(resource),
    labels,
    fields: call.fieldsOf(served),
    paths: served.fields.paths,
    plan: cache.plan,
  })
  return view === undefined ? filter : view.filter(filter)
}

function seenBy({ view }: Served, items: readonly Item[]): readonly Item[] {
  return view === undefined ? items : items.flatMap((item) => view.see(item) ?? [])
}

async function find(
  parts: ReadParts,
  cache: Cache,
  filter: () => Filter,
  { state }: ListOptions,
  prefix: string,
  nowMs: number,
): Promise<{ version: number; items: Item[] }> {
  switch (state.kind) {
    case 'notOlderThan':
      await reachOrNewest(parts, cache, state.version)
      return { version: cache.version, items: cache.list(filter()) }
    case 'exact':
      await reach(parts, cache, state.version)
      return { version: state.version, items: await past(cache, filter(), state.version, undefined, prefix, nowMs) }
    case 'continue': {
      const { token } = state
      const version = token.version ?? cache.version
      await reach(parts, cache, version)
      const items = await past(cache, filter(), version, token, prefix, nowMs)
      return { version, items: items.filter((item) => item.key >= token.start) }
    }
    default:
      return { version: cache.version, items: cache.list(filter()) }
  }
}

async function past(
  cache: Cache,
  filter: Filter,
  version: number,
  token: ContinueToken | undefined,
  prefix: string,
  nowMs: number,
): Promise<Item[]> {
  const gone = () => {
    if (token === undefined) return expired('The resourceVersion for the provided list is too old.')
    // The token's start is the key after the last one shown, which ends in NUL.
    const last = token.start.slice(0, -1)
    return expired(inconsistentText, encodeContinue(last, undefined, Math.floor(nowMs / 1000), prefix))
  }
  const old = token?.issuedSeconds !== undefined && nowMs / 1000 - token.issuedSeconds > CONTINUE_TTL_SECONDS
  if ((old && token.version !== undefined) || cache.isGone(version)) throw gone()
  try {
    return await cache.listAt(version, filter)
  } catch (error) {
    if (error instanceof HistoryGone) throw gone()
    throw error
  }
}

/** One page of the items, and what the client needs to get the next. */
function cut(
  items: readonly Item[],
  { limit, labels, fields }: ListOptions,
  list: { prefix: string; version: number; nowMs: number },
): { items: readonly Item[]; continueToken?: string; remaining?: number } {
  if (limit === 0 || items.length <= limit) return { items }
  const page = items.slice(0, limit)
  const last = (page.at(-1) as Item).key
  const continueToken = encodeContinue(last, list.version, Math.floor(list.nowMs / 1000), list.prefix)
  // With a selector the real server cannot know how many follow, and says nothing.
  const counted = labels.empty && fields.empty
  return { items: page, continueToken, ...(counted ? { remaining: items.length - limit } : {}) }
}
