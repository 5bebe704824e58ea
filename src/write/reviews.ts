/**
 * Reviews: questions about identity and rights, decoded and refused like any object, answered by a judge, and never stored.
 */

import { type ReviewedAccess, readAccess } from '../kube/accessreview.ts'
import type { Caller } from '../kube/caller.ts'
import { field, fromPlain, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { badRequest } from '../kube/status.ts'
import { decodeKind, ensureNamespace } from './decode.ts'
import type { Engine } from './engine.ts'
import { metaOf, timestamp } from './meta.ts'
import { readOptions } from './options.ts'
import { recordNew } from './ownership.ts'
import { attributeFaults, localFaults, metaFaults, refuse, selectorFaults, subjectFaults } from './reviewfaults.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest, WriteResult } from './write.ts'

/** What knows which rights callers have. What it does not know it throws as a refusal: a review is never answered by a guess. */
export interface ReviewJudge {
  access(caller: Caller, asked: ReviewedAccess): AccessTold | Promise<AccessTold>
  /** In one namespace, and everywhere. */
  rules(caller: Caller, namespace: string): RulesTold | Promise<RulesTold>
  /** None asked for means those of the API server. */
  token(token: string, audiences: readonly string[]): TokenTold | Promise<TokenTold>
}

/** `reason` is '' where there is none. */
export type AccessTold = { readonly allowed: boolean; readonly reason: string }

/** As printed. */
export type RulesTold = {
  readonly resourceRules: readonly object[]
  readonly nonResourceRules: readonly object[]
  readonly incomplete: boolean
  readonly evaluationError?: string
}

/** A token that is not accepted has an error instead of a caller. */
export type TokenTold = { readonly caller: Caller; readonly audiences: readonly string[] } | { readonly error: string }

const known: readonly string[] = ['system:masters', 'system:authenticated']

/** Of an authority that does not judge by roles: every caller that it knows may do everything. */
export const withoutRoles: ReviewJudge = {
  access: ({ groups }) => ({ allowed: known.some((group) => groups.includes(group)), reason: '' }),
  rules: () => ({
    resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
    nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    incomplete: false,
  }),
  token: () => ({ error: 'invalid bearer token' }),
}

/** Answers a review, or undefined when the resource is none. */
export async function review(
  engine: Pick<Engine, 'clock' | 'log'>,
  request: WriteRequest,
  judge: ReviewJudge = withoutRoles,
): Promise<WriteResult | undefined> {
  const answer = answers[`${request.resource.group}/${request.resource.resource}`]
  if (answer === undefined) return undefined
  const { fieldValidation, manager } = readOptions('CreateOptions', request)
  const { tree, warnings } = await decodeKind(request, request.resource, fieldValidation)
  return carrying(warnings, async () => {
    ensureNamespace(request, metaOf(tree))
    recordNew(engine, request.resource, { manager, subresource: '' }, tree)
    const status = await answer(tree, { request, judge, now: timestamp(engine.clock.now()) })
    return { code: 201, review: answered(request, tree, status), warnings }
  })
}

function answered(request: WriteRequest, tree: JsonObject, status: unknown): JsonObject {
  const { resource } = request
  const object: JsonObject = new Map<string, Json>([
    ['kind', resource.kind],
    ['apiVersion', text(tree, 'apiVersion')],
    ['metadata', metaOf(tree)],
  ])
  const spec = tree.get('spec')
  if (spec !== undefined) object.set('spec', spec)
  object.set('status', fromPlain(status))
  return object
}

type Asked = { readonly request: WriteRequest; readonly judge: ReviewJudge; readonly now: string }

type Answer = (tree: JsonObject, asked: Asked) => unknown

const answers: Readonly<Record<string, Answer>> = {
  'authorization.k8s.io/selfsubjectaccessreviews': (tree, { request, judge }) => {
    refuse(attributeFaults(tree), selectorFaults(tree), metaFaults(tree))
    return accessTold(judge, request.caller, tree)
  },
  'authorization.k8s.io/subjectaccessreviews': (tree, { judge }) => {
    refuse(attributeFaults(tree), subjectFaults(tree), selectorFaults(tree), metaFaults(tree))
    return accessTold(judge, subjectOf(tree), tree)
  },
  'authorization.k8s.io/localsubjectaccessreviews': (tree, { request: { namespace }, judge }) => {
    refuse(
      attributeFaults(tree),
      subjectFaults(tree),
      selectorFaults(tree),
      metaFaults(tree, namespace),
      localFaults(tree, namespace),
    )
    return accessTold(judge, subjectOf(tree), tree)
  },
  'authorization.k8s.io/selfsubjectrulesreviews': async (tree, { request, judge }) => {
    const namespace = text(tree, 'spec', 'namespace')
    if (namespace === '') throw badRequest('no namespace on request')
    tree.set('spec', new Map())
    metaOf(tree).delete('managedFields')
    const { resourceRules, nonResourceRules, incomplete, evaluationError } = await judge.rules(
      request.caller,
      namespace,
    )
    return { resourceRules, nonResourceRules, incomplete, evaluationError }
  },
  'authentication.k8s.io/selfsubjectreviews': (tree, { request, now }) => {
    metaOf(tree).set('creationTimestamp', now)
    metaOf(tree).delete('managedFields')
    tree.delete('spec')
    return { userInfo: userInfo(request.caller) }
  },
  'authentication.k8s.io/tokenreviews': async (tree, { judge }) => {
    const token = text(tree, 'spec', 'token')
    if (token === '') throw badRequest('token is required for TokenReview in authentication')
    const told = await judge.token(token, textsOf(field(tree, 'spec', 'audiences')))
    if ('error' in told) return { user: {}, error: told.error }
    const audiences = told.audiences.length === 0 ? undefined : told.audiences
    return { authenticated: true, user: userInfo(told.caller), audiences }
  },
}

/** As printed: what is not there is left out. */
async function accessTold(judge: ReviewJudge, caller: Caller, tree: JsonObject) {
  const asked = readAccess(field(tree, 'spec'))
  const { allowed, reason } = await judge.access(caller, asked)
  return { allowed, reason: reason || undefined, evaluationError: asked.evaluationError || undefined }
}

function subjectOf(tree: JsonObject): Caller {
  const spec = field(tree, 'spec')
  const extra = field(spec, 'extra')
  const caller: Caller = { name: text(spec, 'user'), uid: text(spec, 'uid'), groups: groupsOf(tree) }
  if (!isObject(extra) || extra.size === 0) return caller
  return { ...caller, extra: Object.fromEntries([...extra].map(([key, values]) => [key, textsOf(values)])) }
}

function groupsOf(tree: JsonObject): string[] {
  return textsOf(field(tree, 'spec', 'groups'))
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

function userInfo({ name, uid, groups, extra }: Caller) {
  return { username: name, ...(uid === '' ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) }
}
