/**
 * Reviews while the cloud is away: who a caller is, what it may do, whose a token is. A kubelet asks them for each request to
 * its own port, and people ask what they may. Decoded, refused and printed as by an API server; answered by what is known here,
 * and by nothing else: where that is not enough it is 503, since a denial would be believed.
 */
import type { Access } from '../../access/access.ts'
import { readClaims } from '../../access/jwt.ts'
import { makeQuestion } from '../../access/question.ts'
import { undecidedStatus } from '../../access/refusal.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Caller } from '../../kube/caller.ts'
import { quoted } from '../../kube/json/gotext.ts'
import { printJson, text } from '../../kube/json/json.ts'
import { bodyFormat, negotiate } from '../../kube/negotiate.ts'
import type { ApiRequest } from '../../kube/request.ts'
import type { Resource } from '../../kube/resource.ts'
import { type ReviewedSubject, reviewedSubject } from '../../kube/reviewedsubject.ts'
import type { StatusError } from '../../kube/status.ts'
import type { ReviewJudge, TokenTold } from '../../write/reviews.ts'
import { warn } from '../answer/respond.ts'
import { spelledDocument } from '../answer/spelled.ts'
import type { Call } from '../call.ts'
import type { Response } from '../endpoint.ts'

const reading: ReadonlySet<string> = new Set(['get', 'list', 'watch'])

export type ReviewParts = {
  readonly access: Pick<Access, 'held' | 'isRefused' | 'decide' | 'opinion' | 'rules'>
  readonly clock: Clock
  readonly log: Log
  /** Hears about which subjects the kubelet of this node has asked the API server. */
  readonly heard?: (subject: ReviewedSubject) => void
}

/** Reviews ask, and write nothing. */
export function isReview({ group }: ApiRequest): boolean {
  return group === 'authorization.k8s.io' || group === 'authentication.k8s.io'
}

/** Of the caller itself: to ask them takes no more right than to be known. */
export function isSelfReview(api: ApiRequest): boolean {
  return isReview(api) && api.verb === 'create' && api.resource.startsWith('selfsubject')
}

/** The API server has answered a review of this node's kubelet. */
export async function heedReview({ heard }: ReviewParts, call: Call): Promise<void> {
  const { api, identity, request } = call
  if (heard === undefined || identity.kind !== 'certificate' || api.resource !== 'subjectaccessreviews') return
  const subject = reviewedSubject(request.headers['content-type'], await call.body())
  if (subject !== undefined) heard(subject)
}

/** Undefined where there is no such review. `unknown` is the refusal of what only the API server can tell. */
export async function answerReview(
  { access, clock, log }: ReviewParts,
  { call, caller, resource, unknown }: { call: Call; caller: Caller; resource: Resource; unknown: () => StatusError },
): Promise<Response | undefined> {
  const { api, request, identity } = call
  if (api.verb !== 'create' || api.name !== '' || api.subresource !== '') return undefined
  const isEdge = identity.kind === 'edge'
  // Who the edge itself is to the API server, and what that lets it do there, it does not say of itself.
  if (isEdge && (api.resource === 'selfsubjectreviews' || api.resource === 'selfsubjectrulesreviews')) return undefined
  const judge: ReviewJudge = {
    async access(of, asked) {
      const question = makeQuestion(asked)
      if (identity.kind === 'named' && of === caller) {
        const verdict = await access.decide(identity, question)
        if (verdict !== 'allowed' && verdict !== 'denied') throw unknown()
        return { allowed: verdict === 'allowed', reason: access.opinion(of, question)?.reason ?? '' }
      }
      if (isEdge && of === caller) {
        if (reading.has(asked.verb))
          return { allowed: true, reason: 'the administrator of this machine reads all it holds' }
        throw unknown()
      }
      const opinion = access.opinion(of, question)
      if (opinion === undefined) throw undecidedStatus(of, question)
      return opinion
    },
    rules(of, namespace) {
      const told = access.rules(of, namespace)
      if (told === undefined) throw unknown()
      return told
    },
    token: (token, audiences) => tokenTold(access, token, audiences, unknown),
  }
  const media = negotiate(request.headers.accept, { shape: 'object', resource, unshaped: true })
  const body = await call.body()
  // Loaded with the first of them: the write engine comes with it, which an edge needs for nothing else.
  const { review } = await import('../../write/reviews.ts')
  const result = await review(
    { clock, log },
    {
      resource,
      subresource: '',
      namespace: call.namespaceOf(resource),
      name: '',
      query: (name) => api.query.get(name),
      body: body.length === 0 ? undefined : body,
      format: bodyFormat(request.headers['content-type']),
      caller,
      userAgent: request.headers['user-agent'] ?? '',
    },
    judge,
  )
  if (result?.review === undefined) return undefined
  const type = { apiVersion: text(result.review, 'apiVersion'), kind: resource.kind }
  const json = Buffer.from(printJson(result.review))
  const response = await spelledDocument(result.code, type, json, { media, query: api.query, request })
  warn(response, result.warnings)
  return response
}

/**
 * A token that the API server has accepted is its caller's until it expires, and one that has expired is refused. Of any other
 * nothing is known: a client would take "not authenticated" for the API server's word.
 */
function tokenTold(
  access: ReviewParts['access'],
  token: string,
  wanted: readonly string[],
  unknown: () => StatusError,
): TokenTold {
  const identity = { kind: 'token', token } as const
  if (access.isRefused(identity)) return { error: 'invalid bearer token' }
  const caller = access.held(identity)
  if (caller === undefined) throw unknown()
  const own = readClaims(token)?.audiences ?? []
  // It was accepted for the API server, which is one of several it may be for: which of them is not known here.
  if (wanted.length === 0) {
    if (own.length > 1) throw unknown()
    return { caller, audiences: own }
  }
  // One that names none is for whatever the API server calls itself.
  if (own.length === 0) throw unknown()
  const audiences = wanted.filter((one) => own.includes(one))
  if (audiences.length > 0) return { caller, audiences }
  return {
    error: `[invalid bearer token, token audiences ${list(own)} is invalid for the target audiences ${list(wanted)}]`,
  }
}

function list(texts: readonly string[]): string {
  return `[${texts.map(quoted).join(' ')}]`
}
