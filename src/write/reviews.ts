/**
 * Reviews: questions about identity and rights, answered and never stored. Until callers have rights of their own, every
 * caller is the administrator; about others it is only known that members of system:masters may do everything.
 */

import type { Caller } from '../kube/caller.ts'
import { field, fromPlain, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { invalidField } from '../kube/schema/errors.ts'
import { badRequest, type FieldError, invalid } from '../kube/status.ts'
import { decodeKind, ensureNamespace } from './decode.ts'
import type { Engine } from './engine.ts'
import { metaOf, timestamp } from './meta.ts'
import { readOptions } from './options.ts'
import { recordNew } from './ownership.ts'
import { carrying } from './warnings.ts'
import type { WriteRequest, WriteResult } from './write.ts'

const masters = 'system:masters'

/** Answers a review, or undefined when the resource is none. */
export async function review(engine: Engine, request: WriteRequest): Promise<WriteResult | undefined> {
  const answer = answers[`${request.resource.group}/${request.resource.resource}`]
  if (answer === undefined) return undefined
  const { fieldValidation, manager } = readOptions('CreateOptions', request)
  const { tree, warnings } = await decodeKind(request, request.resource, fieldValidation)
  return carrying(warnings, async () => {
    ensureNamespace(request, metaOf(tree))
    recordNew(engine, request.resource, manager, tree)
    return { code: 201, review: answered(engine, request, tree, answer), warnings }
  })
}

function answered(engine: Engine, request: WriteRequest, tree: JsonObject, answer: Answer): JsonObject {
  const { resource } = request
  const status = answer(tree, request, engine)
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

type Answer = (tree: JsonObject, request: WriteRequest, engine: Engine) => unknown

const answers: Readonly<Record<string, Answer>> = {
  'authorization.k8s.io/selfsubjectaccessreviews': (tree, { caller }) => {
    refuse(attributeFaults(tree))
    return access(caller.groups)
  },
  'authorization.k8s.io/subjectaccessreviews': (tree) => {
    refuse([...subjectFaults(tree), ...attributeFaults(tree)])
    return access(groupsOf(tree))
  },
  'authorization.k8s.io/localsubjectaccessreviews': (tree, { namespace }) => {
    const asked = text(tree, 'spec', 'resourceAttributes', 'namespace')
    const found = [...subjectFaults(tree), ...attributeFaults(tree)]
    if (isObject(field(tree, 'spec', 'resourceAttributes')) && asked !== namespace) {
      found.push(invalidField('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace'))
    }
    const path = field(tree, 'spec', 'nonResourceAttributes')
    if (isObject(path)) found.push(pathFault(path, 'disallowed on this kind of request'))
    refuse(found)
    return access(groupsOf(tree))
  },
  'authorization.k8s.io/selfsubjectrulesreviews': (tree) => {
    if (text(tree, 'spec', 'namespace') === '') throw badRequest('no namespace on request')
    tree.set('spec', new Map())
    metaOf(tree).delete('managedFields')
    return {
      resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
      nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
      incomplete: false,
    }
  },
  'authentication.k8s.io/selfsubjectreviews': (tree, { caller }, { clock }) => {
    metaOf(tree).set('creationTimestamp', timestamp(clock.now()))
    metaOf(tree).delete('managedFields')
    tree.delete('spec')
    return { userInfo: userInfo(caller) }
  },
  'authentication.k8s.io/tokenreviews': (tree) => {
    if (text(tree, 'spec', 'token') === '') throw badRequest('token is required for TokenReview in authentication')
    return { user: {}, error: 'invalid bearer token' }
  },
}

function access(groups: readonly string[]) {
  return { allowed: groups.includes(masters) }
}

function groupsOf(tree: JsonObject): string[] {
  const groups = field(tree, 'spec', 'groups')
  return Array.isArray(groups) ? groups.map(String) : []
}

function userInfo({ name, uid, groups, extra }: Caller) {
  return { username: name, ...(uid === '' ? {} : { uid }), groups, ...(extra === undefined ? {} : { extra }) }
}

function refuse(found: readonly FieldError[]): void {
  // The real server leaves the kind out: it has already converted the object into its internal form.
  if (found.length > 0) throw invalid('authorization.k8s.io', '', '', found)
}

function subjectFaults(tree: JsonObject): FieldError[] {
  if (text(tree, 'spec', 'user') !== '' || groupsOf(tree).length > 0) return []
  return [invalidField('spec.user', '', 'at least one of user or group must be specified')]
}

function attributeFaults(tree: JsonObject): FieldError[] {
  const resource = field(tree, 'spec', 'resourceAttributes')
  const path = field(tree, 'spec', 'nonResourceAttributes')
  if (isObject(resource) && isObject(path)) {
    return [pathFault(path, 'cannot be specified in combination with resourceAttributes')]
  }
  if (isObject(resource) || isObject(path)) return nameFaultsOf(tree)
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
  return [invalidField('spec.resourceAttributes', null, detail)]
}

/** The real server shows its internal form, which has Go's names. */
function pathFault(path: JsonObject, detail: string): FieldError {
  const shown = new Map([
    ['Path', text(path, 'path')],
    ['Verb', text(path, 'verb')],
  ])
  return invalidField('spec.nonResourceAttributes', shown, detail)
}

const unnamed: ReadonlySet<string> = new Set(['namespace', 'creationTimestamp', 'managedFields'])

/** A review has no name: it is a question. */
function nameFaultsOf(tree: JsonObject): FieldError[] {
  const meta = metaOf(tree)
  const named = [...meta.keys()].some((key) => !unnamed.has(key))
  return named ? [invalidField('metadata', meta, 'must be empty')] : []
}
