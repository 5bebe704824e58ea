/**
 * What a caller wants to do, in the terms of authorization, with the key under which its decision is held. The key takes two
 * spellings of one wish for the same, and never two wishes for one: it is built once per request, so it is plain text.
 */
import { hash } from 'node:crypto'
import type { AccessAttributes } from '../kube/accessreview.ts'
import type { ApiRequest } from '../kube/request.ts'

/** `version` is not part of the key: the authorizers of Kubernetes do not look at it. */
export type Question = AccessAttributes & { readonly key: string }

/** Whatever is not given is ''. */
export type Asking = { readonly verb: string } & Partial<Omit<AccessAttributes, 'verb'>>

/** Thousands of keys are kept, and a caller may write very much into one: a longer one is known by its digest. */
const keyCharactersMax = 512

export function makeQuestion(asking: Asking): Question {
  const { verb, group = '', version = '', resource = '', subresource = '' } = asking
  const { namespace = '', name = '', labels = '', fields = '', path = '' } = asking
  const key = keyOf({ verb, group, version, resource, subresource, namespace, name, labels, fields, path })
  return { key, verb, group, version, resource, subresource, namespace, name, labels, fields, path }
}

function keyOf(parts: AccessAttributes): string {
  const { verb, group, resource, subresource, namespace, name, labels, fields, path } = parts
  const plain = `${verb}\n${group}\n${resource}\n${subresource}\n${namespace}\n${name}\n${labels}\n${fields}\n${path}`
  // A line break inside a part would let one question pass for another: then the parts are spelled unmistakably.
  const broken =
    verb.includes('\n') ||
    group.includes('\n') ||
    resource.includes('\n') ||
    subresource.includes('\n') ||
    namespace.includes('\n') ||
    name.includes('\n') ||
    labels.includes('\n') ||
    fields.includes('\n') ||
    path.includes('\n')
  const whole = broken
    ? JSON.stringify([verb, group, resource, subresource, namespace, name, labels, fields, path])
    : plain
  return whole.length > keyCharactersMax ? `sha256 ${hash('sha256', whole, 'base64url')}` : whole
}

/** A question that contains another one. `without`: what was left out of that, as a set of bits. */
export type Wider = { readonly key: string; readonly without: number }

const parts = ['namespace', 'name', 'labels', 'fields'] as const

/** Every question that asks for more of the same: with the namespace, the name or a selector left out, or several. */
export function widerOf(question: Question): Wider[] {
  const { resource, fields } = question
  if (resource === '') return []
  const given = parts.reduce((bits, part, i) => (question[part] === '' ? bits : bits | (1 << i)), 0)
  const wider: Wider[] = []
  for (let without = 1; without <= given; without++) {
    if ((without & ~given) !== 0) continue
    // A name in no namespace is no question, unless a selector asks for it.
    if (fields === '' && (without & 1) !== 0 && (given & ~without & 2) !== 0) continue
    const left = { ...question }
    parts.forEach((part, i) => {
      if ((without & (1 << i)) !== 0) left[part] = ''
    })
    wider.push({ key: keyOf(left), without })
  }
  return wider
}

const selecting: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])

export function questionOf(request: ApiRequest): Question {
  const { verb } = request
  if (!request.isResource) return makeQuestion({ verb, path: request.path })
  const { group, version, resource, subresource, namespace } = request
  const name = request.name === '' ? request.selectedName : request.name
  const asking = { verb, group, version, resource, subresource, namespace, name }
  const { query } = request
  if (query.raw === '' || !selecting.has(verb)) return makeQuestion(asking)
  const labels = normalised(query.get('labelSelector'), () => query.labelSelector)
  const fields = normalised(query.get('fieldSelector'), () => query.fieldSelector)
  return makeQuestion({ ...asking, labels, fields })
}

/**
 * A selector that cannot be read stands for itself: the verb refuses it after authorization, as kube-apiserver does. It must
 * not pass for none at all: what the API server allows with a selector that only it can read is not allowed without.
 */
function normalised(text: string | undefined, parsed: () => { toString(): string }): string {
  if (text === undefined || text === '') return ''
  try {
    return parsed().toString()
  } catch {
    return text
  }
}
