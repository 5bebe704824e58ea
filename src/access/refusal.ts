/**
 * Refusals in kube-apiserver's own words: clients and people match on them.
 */

import type { Caller } from '../kube/caller.ts'
import { quoted } from '../kube/json/gotext.ts'
import { denied, failure, qualified, type StatusDetails, type StatusError } from '../kube/status.ts'
import type { Question } from './question.ts'

/** Appended where the refusal is ignorance, so that no operator looks for a missing role. */
export const noDecision = 'no decision is known for this caller while the API server cannot be reached'

/** What a known caller was neither allowed nor denied: no denial, which would name a missing role. */
export function undecidedStatus(caller: Caller, question: Question): StatusError {
  const what = sanitised(sentence(caller.name, question, 'can'))
  return failure(503, 'ServiceUnavailable', `${noDecision}: whether ${what} only it can tell`)
}

/** `reason` is what the authorizer gave for its denial, '' for none. */
export function forbiddenStatus(caller: Caller, question: Question, reason = ''): StatusError {
  const { group, resource, name } = question
  const inner = sanitised(sentence(caller.name, question, 'cannot'))
  const why = reason === '' ? inner : `${inner}: ${reason}`
  if (resource === '') return denied(`forbidden: ${why}`, {})
  const details: StatusDetails = {}
  if (name !== '') details.name = name
  if (group !== '') details.group = group
  details.kind = resource
  const subject = name === '' ? qualified(question) : `${qualified(question)} ${quoted(name)}`
  return denied(`${subject} is forbidden: ${why}`, details)
}

function sentence(user: string, question: Question, can: 'can' | 'cannot'): string {
  const { verb, group, resource, subresource, namespace, path } = question
  if (resource === '') return `User ${quoted(user)} ${can} ${verb} path ${quoted(path)}`
  const full = subresource === '' ? resource : `${resource}/${subresource}`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${quoted(namespace)}`
  return `User ${quoted(user)} ${can} ${verb} resource ${quoted(full)} in API group ${quoted(group)} ${where}`
}

/** A browser must not take a message for markup. */
function sanitised(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
