/** What is wrong with a review of access, in kube-apiserver's words and order. */

import { field, isObject, type Json, type JsonObject, text } from '../kube/json/json.ts'
import { labelKeyFaults, labelValueFaults } from '../kube/labels.ts'
import { forbiddenField, invalidField, requiredField } from '../kube/schema/errors.ts'
import { type FieldError, invalid } from '../kube/status.ts'
import { metaOf } from './meta.ts'

export function refuse(...found: readonly FieldError[][]): void {
  // The real server leaves the kind out: it has already converted the object into its internal form.
  if (found.some((some) => some.length > 0)) throw invalid('authorization.k8s.io', '', '', found.flat())
}

export function attributeFaults(tree: JsonObject): FieldError[] {
  const resource = field(tree, 'spec', 'resourceAttributes')
  const path = field(tree, 'spec', 'nonResourceAttributes')
  if (isObject(resource) && isObject(path)) {
    return [pathFault(path, 'cannot be specified in combination with resourceAttributes')]
  }
  if (isObject(resource) || isObject(path)) return []
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified'
  return [invalidField('spec.resourceAttributes', null, detail)]
}

export function subjectFaults(tree: JsonObject): FieldError[] {
  if (text(tree, 'spec', 'user') !== '' || each(field(tree, 'spec'), 'groups').length > 0) return []
  return [invalidField('spec.user', '', 'at least one of user or group must be specified')]
}

/** Of operators that are not known yet nothing is said: a client may be younger than the server. */
export function selectorFaults(tree: JsonObject): FieldError[] {
  const about = field(tree, 'spec', 'resourceAttributes')
  return ['fieldSelector', 'labelSelector'].flatMap((name) => {
    const selector = field(about, name)
    if (!isObject(selector)) return []
    const path = `spec.resourceAttributes.${name}`
    const raw = text(selector, 'rawSelector')
    const requirements = each(selector, 'requirements')
    const found: FieldError[] = []
    if (raw !== '' && requirements.length > 0) {
      found.push(invalidField(`${path}.rawSelector`, raw, 'may not specified at the same time as requirements'))
    }
    if (raw === '' && requirements.length === 0) {
      const detail = `when ${path} is specified, requirements or rawSelector is required`
      found.push(requiredField(`${path}.requirements`, detail))
    }
    const faults = name === 'fieldSelector' ? fieldFaults : labelFaults
    return [...found, ...requirements.flatMap((one, i) => faults(one, `${path}.requirements[${i}]`))]
  })
}

function fieldFaults(requirement: Json, path: string): FieldError[] {
  const unnamed = text(requirement, 'key') === '' ? [requiredField(`${path}.key`, 'must be specified')] : []
  return [...unnamed, ...valueFaults(requirement, path)]
}

function labelFaults(requirement: Json, path: string): FieldError[] {
  const key = text(requirement, 'key')
  return [
    ...valueFaults(requirement, path),
    ...labelKeyFaults(key).map((why) => invalidField(`${path}.key`, key, why)),
    ...each(requirement, 'values').flatMap((value, i) =>
      labelValueFaults(String(value)).map((why) => invalidField(`${path}.values[${i}]`, value, why)),
    ),
  ]
}

function valueFaults(requirement: Json, path: string): FieldError[] {
  const operator = text(requirement, 'operator')
  const count = each(requirement, 'values').length
  if ((operator === 'In' || operator === 'NotIn') && count === 0) {
    return [requiredField(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
  }
  if ((operator === 'Exists' || operator === 'DoesNotExist') && count > 0) {
    return [forbiddenField(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
  }
  return []
}

const unnamed: ReadonlySet<string> = new Set(['creationTimestamp', 'managedFields'])

/** A review has no name: it is a question. One that is asked in a namespace has that. */
export function metaFaults(tree: JsonObject, namespace?: string): FieldError[] {
  const meta = metaOf(tree)
  const named = [...meta.keys()].some((key) => !unnamed.has(key) && (key !== 'namespace' || namespace === undefined))
  const detail = namespace === undefined ? 'must be empty' : 'must be empty except for namespace'
  return named ? [invalidField('metadata', meta, detail)] : []
}

/** Of a review that is asked in a namespace. */
export function localFaults(tree: JsonObject, namespace: string): FieldError[] {
  const asked = text(tree, 'spec', 'resourceAttributes', 'namespace')
  const found: FieldError[] = []
  if (isObject(field(tree, 'spec', 'resourceAttributes')) && asked !== namespace) {
    found.push(invalidField('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace'))
  }
  const path = field(tree, 'spec', 'nonResourceAttributes')
  return isObject(path) ? [...found, pathFault(path, 'disallowed on this kind of request')] : found
}

/** The real server shows its internal form, which has Go's names. */
function pathFault(path: JsonObject, detail: string): FieldError {
  const shown = new Map([
    ['Path', text(path, 'path')],
    ['Verb', text(path, 'verb')],
  ])
  return invalidField('spec.nonResourceAttributes', shown, detail)
}

function each(value: Json | undefined, name: string): readonly Json[] {
  const found = field(value, name)
  return Array.isArray(found) ? found : []
}
