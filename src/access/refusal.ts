/**
 * Refusals in kube-apiserver's own words: clients and people match on them.
 */

import type { Caller } from '../kube/caller.ts'
import { quoted } from '../kube/json/gotext.ts'
import { denied, qualified, type StatusDetails, type StatusError } from '../kube/status.ts'
import type { Question } from './question.ts'

/** Appended where the refusal is ignorance, so that no operator looks for a missing role. */
export const noDecision = 'no decision is known for this caller while the API server cannot be reached'

/** `reason` is what the authorizer gave for its denial, '' for none. */
export function forbiddenStatus(caller: Caller, question: Question, reason = ''): StatusError {
  const { group, resource, name } = question
  const inner = sanitised(sentence(caller.name, question))
  const why = reason === '' ? inner : `${inner}: ${reason}`
  if (resource === '') return denied(`forbidden: ${why}`, {})
  const details: StatusDetails = {}
  if (name !== '') details.name = name
  if (group !== '') details.group = group
  details.kind = resource
  const subject = name === '' ? qualified(question) : `${qualified(question)} ${quoted(name)}`
  return denied(`${subject} is forbidden: ${why}`, details)
}

function sentence(user: string, { verb, group, resource, subresource, namespace, path }: Question): string {
  if (resource === '') return `User ${quoted(user)} cannot ${verb} path ${quoted(path)}`
  const full = subresource === '' ? resource : `${resource}/${subresource}`
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${quoted(namespace)}`
  return `User ${quoted(user)} cannot ${verb} resource ${quoted(full)} in API group ${quoted(group)} ${where}`
}

/** A browser must not take a message for markup. */
function sanitised(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
