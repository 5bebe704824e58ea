/**
 * What an edge says while the cloud is away: never a success for something that was not done. What is known is said: a caller
 * that creates what exists is told so, and a token that was issued before is given again. Everything else is 503 without
 * Retry-After, since client-go would otherwise ask ten times within one call.
 */
import { scanObject } from '../../kube/object.ts'
import { readObjectMeta } from '../../kube/protobuf/peek.ts'
import { isProtobuf, readEnvelope } from '../../kube/protobuf/protobuf.ts'
import { objectKey } from '../../kube/resource.ts'
import { alreadyExists, failure, type StatusError } from '../../kube/status.ts'
import type { CloudCatalog } from '../../mirror/documents/catalog.ts'
import { scopeOfName } from '../../mirror/interest.ts'
import type { Interests } from '../../mirror/interests.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Call } from '../call.ts'
import type { Authorization } from '../composition.ts'
import type { Response } from '../endpoint.ts'
import type { Tokens } from './tokens.ts'

export type OfflineParts = {
  readonly authorization: Authorization
  readonly catalog: CloudCatalog
  readonly interests: Interests
  readonly tokens: Tokens
  readonly upstream: Upstream
}

export async function answerOffline(
  parts: OfflineParts,
  call: Call,
  /** Why it cannot be passed on, and whether its body was spent on the attempt. */
  { why = parts.upstream.reachability.why, bodyGone = false }: { why?: string; bodyGone?: boolean } = {},
): Promise<Response> {
  const { authorization, tokens } = parts
  const { api, request } = call
  const verdict = await authorization.decide(call)
  if (verdict === 'denied' || verdict === 'unauthorized') throw authorization.refusal(call, verdict)
  if (request.method === 'GET' || request.method === 'HEAD') throw neverSynced(why)
  if (verdict === 'allowed' && !bodyGone) {
    const answer = tokens.concerns(api) ? await tokens.kept(call) : undefined
    if (answer !== undefined) return answer
    if (api.isResource && api.verb === 'create' && api.subresource === '') await refuseExisting(parts, call)
  }
  throw notTaken(why)
}

async function refuseExisting({ catalog, interests }: OfflineParts, call: Call): Promise<void> {
  const { api, request } = call
  const known = catalog.find(api.group, api.version, api.resource)
  // What is of no namespace is created in none: a caller that may do so there has no right to know what exists.
  if (known === undefined || (api.namespace !== '' && !known.resource.namespaced)) return
  const name = nameIn(request.headers['content-type'], await call.body())
  if (name === '') return
  const { group, version, resource } = known.resource
  const namespace = call.namespaceOf(known.resource)
  const scope = scopeOfName({ group, version, resource, namespace }, name)
  if (interests.holding(scope, objectKey(namespace, name)) !== undefined) throw alreadyExists(known.resource, name)
}

function nameIn(contentType: string | undefined, bytes: Buffer): string {
  try {
    return isProtobuf(contentType) ? readObjectMeta(readEnvelope(bytes).raw).name : scanObject(bytes).name
  } catch {
    // Not JSON, not whole: the API server would say what is wrong with it, and cannot.
    return ''
  }
}

function notTaken(why: string): StatusError {
  return failure(503, 'ServiceUnavailable', `the API server cannot be reached, and nothing was written: ${why}`)
}

/** No Retry-After: client-go would ask ten times within the call. */
export function neverSynced(why: string): StatusError {
  return failure(503, 'ServiceUnavailable', `the API server cannot be reached and there is no local copy: ${why}`)
}
