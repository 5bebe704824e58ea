/** What a request reads, as the front judges it: the objects it can match, in which state, and in whose name. */
import type { ApiRequest } from '../../../kube/request.ts'
import type { KnownResource } from '../../../mirror/documents/catalog.ts'
import { scopeOfName } from '../../../mirror/interest.ts'
import type { Call } from '../../call.ts'
import type { Read } from './front.ts'

export function readOf(known: KnownResource, call: Call, caller: string): Read {
  const { resource } = known
  const { group, version } = resource
  const namespace = call.namespaceOf(resource)
  const base = { group, version, resource: resource.resource, namespace }
  const { identity, api } = call
  const { verb } = api
  if (verb === 'get') {
    const state = call.getOptions
    const scope = scopeOfName(base, api.name)
    const kind = state.kind === 'notOlderThan' ? 'version' : state.kind
    const at = state.kind === 'notOlderThan' ? state.version : 0
    return { verb, known, scope, key: call.keyOf(resource), state: kind, version: at, caller, identity }
  }
  if (verb === 'watch') {
    const { labels, start } = call.watchOptions
    const scope = { ...base, labels, fields: call.fieldsOf(known) }
    const at = start.kind === 'after' ? start.version : 0
    const state = start.kind === 'after' ? 'version' : start.kind
    return { verb, known, scope, state, version: at, caller, identity }
  }
  const { labels, state } = call.listOptions(resource)
  const scope = { ...base, labels, fields: call.fieldsOf(known) }
  if (state.kind === 'continue') {
    const ownToken = state.token.issuedSeconds !== undefined
    return { verb: 'list', known, scope, state: 'continue', version: 0, ownToken, caller, identity }
  }
  const named = state.kind === 'exact' || state.kind === 'notOlderThan'
  const kind = named ? 'version' : state.kind
  const exact = state.kind === 'exact'
  return { verb: 'list', known, scope, state: kind, version: named ? state.version : 0, exact, caller, identity }
}

/** A watch that only begins with what there is has begun once its headers are out: what is written then it tells in order. */
export function isWatchList({ verb }: Read, api: ApiRequest): boolean {
  return verb === 'watch' && api.query.has('sendInitialEvents')
}
