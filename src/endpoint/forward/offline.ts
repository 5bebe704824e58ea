/**
 * What an edge says while the cloud is away: never a success for something that was not done. What is known is said: who
 * creates what exists is told so, and a token that was issued before is given again. Everything else is 503 without
 * Retry-After, since client-go would otherwise ask ten times within one call.
 */
import type { Access } from '../../access/access.ts'
import { questionOf } from '../../access/question.ts'
import { scanObject } from '../../kube/object.ts'
import { readObjectMeta } from '../../kube/protobuf/peek.ts'
import { isProtobuf, readEnvelope } from '../../kube/protobuf/protobuf.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { objectKey } from '../../kube/resource.ts'
import { alreadyExists, failure, type StatusError, unauthorized } from '../../kube/status.ts'
import type { Catalog } from '../../mirror/documents/catalog.ts'
import { scopeOfName } from '../../mirror/interest.ts'
import type { Interests } from '../../mirror/interests.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Asker } from '../asker.ts'
import type { Request, Response } from '../endpoint.ts'
import type { Tokens } from './tokens.ts'

type Parts = {
  readonly access: Access
  readonly catalog: Catalog
  readonly interests: Interests
  readonly tokens: Tokens
  readonly upstream: Upstream
}

export class Offline {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async answer(
    api: ApiRequest,
    request: Request,
    asker: Asker,
    /** Why it cannot be passed on, and whether its body was spent on the attempt. */
    { why = this.#parts.upstream.reachability.why, bodyGone = false }: { why?: string; bodyGone?: boolean } = {},
  ): Promise<Response> {
    const { access, tokens } = this.#parts
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const question = questionOf(api)
    const verdict =
      asker.isAdministrator || asker.impersonates ? 'unknown' : await access.decide(asker.identity, question)
    if (verdict === 'denied') throw access.refusal(asker.identity, question, verdict)
    if (verdict === 'unauthorized') throw unauthorized()
    if (isRead) throw neverSynced(why)
    const allowed = verdict === 'allowed' || (asker.isAdministrator && !asker.impersonates)
    if (bodyGone) throw notTaken(why)
    if (allowed && tokens.concerns(api)) {
      const answer = await tokens.answer(api, request, asker)
      if (answer !== undefined) return answer
    }
    if (allowed && api.isResource && api.verb === 'create' && api.subresource === '') {
      await this.#refuseExisting(api, request)
    }
    throw notTaken(why)
  }

  /** The token that is kept for this wish and has not expired, if its caller may ask for it. */
  async keptToken(api: ApiRequest, request: Request, asker: Asker): Promise<Response | undefined> {
    const { access, tokens } = this.#parts
    if (asker.impersonates) return undefined
    const isAllowed = asker.isAdministrator || (await access.decide(asker.identity, questionOf(api))) === 'allowed'
    return isAllowed ? await tokens.answer(api, request, asker, { unexpired: true }) : undefined
  }

  async #refuseExisting(api: ApiRequest, request: Request): Promise<void> {
    const { catalog, interests } = this.#parts
    const known = catalog.find(api.group, api.version, api.resource)
    // What is of no namespace is created in none: whoever may do so there has no right to know what exists.
    if (known === undefined || (api.namespace !== '' && !known.resource.namespaced)) return
    const name = nameIn(request.headers['content-type'], await request.body())
    if (name === '') return
    const { group, version, resource, namespaced } = known.resource
    const namespace = namespaced ? api.namespace : ''
    const scope = scopeOfName({ group, version, resource, namespace }, name)
    if (interests.holding(scope, objectKey(namespace, name)) !== undefined) throw alreadyExists(known.resource, name)
  }
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
  return failure(503, 'ServiceUnavailable', `the API server cannot be reached, and nothing was readYourWrites: ${why}`)
}

/** No Retry-After: client-go would ask ten times within the call. */
export function neverSynced(why: string): StatusError {
  return failure(503, 'ServiceUnavailable', `the API server cannot be reached and there is no local copy: ${why}`)
}
