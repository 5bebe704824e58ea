/**
 * What an edge says while the cloud is away: never a success for something that was not done. What is known is said: a caller
 * that creates what exists is told so, as is one that asks for what the API does not have (404, 405), and a token that was
 * issued before is given again. Everything else is 503 without Retry-After, since client-go would otherwise ask ten times
 * within one call, with what can be done meanwhile.
 */
import type { Verdict } from '../../access/access.ts'
import { isConnection, isServed } from '../../kube/addressing.ts'
import { isBuiltinGroup } from '../../kube/builtin.ts'
import type { Caller } from '../../kube/caller.ts'
import { scanObject } from '../../kube/object.ts'
import { readObjectMeta } from '../../kube/protobuf/peek.ts'
import { isProtobuf, readEnvelope } from '../../kube/protobuf/protobuf.ts'
import type { ApiRequest } from '../../kube/request.ts'
import { objectKey } from '../../kube/resource.ts'
import {
  alreadyExists,
  failure,
  methodNotAllowed,
  pathNotFound,
  qualified,
  type StatusError,
} from '../../kube/status.ts'
import type { CloudCatalog } from '../../mirror/documents/catalog.ts'
import { scopeOfName } from '../../mirror/interest.ts'
import type { Interests } from '../../mirror/interests.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { Call } from '../call.ts'
import type { Authentication, Authorization } from '../composition.ts'
import type { Response } from '../endpoint.ts'
import type { RefusedWrites } from './refusedwrites.ts'
import { answerReview, isReview, isSelfReview, type ReviewParts } from './reviews.ts'
import type { Tokens } from './tokens.ts'

export type OfflineParts = {
  readonly authentication: Authentication
  readonly authorization: Authorization
  readonly catalog: CloudCatalog
  readonly interests: Interests
  readonly refusedWrites: RefusedWrites
  readonly reviews: ReviewParts
  readonly tokens: Tokens
  readonly upstream: Upstream
}

export async function answerOffline(
  parts: OfflineParts,
  call: Call,
  /** Why it cannot be passed on, and whether its body was spent on the attempt. */
  { why = parts.upstream.reachability.why, bodyGone = false }: { why?: string; bodyGone?: boolean } = {},
): Promise<Response> {
  const { authentication, authorization, refusedWrites, tokens } = parts
  const { api, request } = call
  const verdict = await authorization.decide(call)
  if (verdict === 'denied' || verdict === 'unauthorized') throw authorization.refusal(call, verdict)
  if (isConnection(api.subresource)) throw notConnected(api, why)
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead && verdict === 'allowed' && !bodyGone) {
    const answer = tokens.concerns(api) ? await tokens.kept(call) : undefined
    if (answer !== undefined) return answer
    const isCreated = api.isResource && api.verb === 'create' && api.name === ''
    if (isCreated) await refuseExisting(parts, call)
  }
  const caller = authentication.callerOf(call)
  const unknown = () => itsToAnswer(why)
  const reviewed = bodyGone ? undefined : await reviewedHere(parts, call, { caller, verdict, unknown })
  if (reviewed !== undefined) return reviewed
  if (caller !== undefined && call.identity.kind !== 'anonymous' && !call.impersonates) checkExists(parts, api)
  if (isRead) throw neverSynced(why, api.isResource ? qualified(api) : '')
  if (isReview(api)) throw itsToAnswer(why)
  if (!api.query.has('dryRun')) refusedWrites.add(api, caller?.name ?? '')
  throw notTaken(api, why)
}

const onlyRead = /^\/(version|api|api\/v1)\/?$/

/**
 * Refuses what no API server with this discovery serves. Of a group that is not Kubernetes' own a resource may be younger than
 * the discovery that is held, and other servers answer as they like: nothing is said of these.
 */
function checkExists({ catalog }: OfflineParts, api: ApiRequest): void {
  // Kubernetes' own documents are only read, in every release.
  if (!api.isResource && api.method !== 'GET' && onlyRead.test(api.path)) throw methodNotAllowed()
  // What is wrong with a name is the API server's to say: it depends on the resource.
  if (!api.isResource || api.badSegment !== '' || !catalog.complete) return
  const known = catalog.find(api.group, api.version, api.resource)
  if (known?.aggregated === true) return
  const exists = known === undefined ? !isBuiltinGroup(api.group) : isServed(known.resource, api)
  if (!exists) throw pathNotFound()
}

/** To ask about itself takes a caller no more right than to be known: it was asked in its own name who it is. */
export async function reviewedHere(
  { catalog, reviews }: Pick<OfflineParts, 'catalog' | 'reviews'>,
  call: Call,
  { caller, verdict, unknown }: { caller: Caller | undefined; verdict: Verdict; unknown: () => StatusError },
): Promise<Response | undefined> {
  const { api, identity, impersonates } = call
  if (!isReview(api) || impersonates || identity.kind === 'anonymous' || caller === undefined) return undefined
  const known = catalog.find(api.group, api.version, api.resource)
  if (known === undefined || known.aggregated || (verdict !== 'allowed' && !isSelfReview(api))) return undefined
  return await answerReview(reviews, { call, caller, resource: known.resource, unknown })
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

/** A person who deletes a pod mostly wants it started again: the kubelet does that without any API server. */
function notTaken({ verb, group, resource, subresource, name, namespace }: ApiRequest, why: string): StatusError {
  const isPod = verb === 'delete' && group === '' && resource === 'pods' && subresource === ''
  const isNamed = [name, namespace].every(isName)
  const instead =
    isPod && isNamed ? `; to restart its containers on the node: crictl stop $(${running(name, namespace)})` : ''
  return failure(
    503,
    'ServiceUnavailable',
    `the API server cannot be reached, and nothing was written: ${why}${instead}`,
  )
}

/** No Retry-After: client-go would ask ten times within the call. `advice` is what to ask for instead, or to do before the next cut. */
export function neverSynced(why: string, what = '', advice = ''): StatusError {
  const copy = `there is no local copy${what && ` of ${what}`}: ${why}${advice && `; ${advice}`}`
  return failure(503, 'ServiceUnavailable', `the API server cannot be reached and ${copy}`)
}

/** The edge's administrator acts with the edge's credential: a bare 401 would tell a person to log in. */
export function edgeRefused(): StatusError {
  const what = "the API server refuses the edge's own credential (401), with which its administrator acts"
  return failure(503, 'ServiceUnavailable', `${what}: renew it in the edge's kubeconfig; "ake status" says more`)
}

function itsToAnswer(why: string): StatusError {
  return failure(503, 'ServiceUnavailable', `the API server cannot be reached, and only it can answer this: ${why}`)
}

/** What does the same on the node that runs the pod, without any API server. */
const onTheNode: Readonly<Record<string, (container: string, pod: string) => string>> = {
  log: (container) => `crictl logs $(${container})`,
  exec: (container) => `crictl exec -it $(${container}) sh`,
  attach: (container) => `crictl attach $(${container})`,
  portforward: (_, pod) => `crictl port-forward $(${pod}) LOCAL:REMOTE`,
}

/** Logs, exec and the like lead through the API server to the kubelet. */
export function notConnected(
  { group, resource, name, namespace, subresource, query }: ApiRequest,
  why: string,
): StatusError {
  const instead = group === '' && resource === 'pods' ? onTheNode[subresource] : undefined
  const container = query.get('container') ?? ''
  // They become part of a command line: nothing but what names are made of.
  if (instead === undefined || ![name, namespace, container].every(isName)) return itsToAnswer(why)
  const containers = `${running(name, namespace)}${container === '' ? '' : ` --name '^${container}$'`}`
  const command = instead(containers, `crictl pods -q ${labels(name, namespace)}`)
  return itsToAnswer(`${why}; the same on the node of the pod: ${command}`)
}

function labels(name: string, namespace: string): string {
  return `--label io.kubernetes.pod.name=${name} --label io.kubernetes.pod.namespace=${namespace}`
}

function running(name: string, namespace: string): string {
  return `crictl ps -q ${labels(name, namespace)}`
}

function isName(text: string): boolean {
  return /^[a-z0-9.-]{0,253}$/.test(text)
}
