/**
 * Whose name is whose: a definition's status. In a real cluster two controllers write it in steps; here it is worked
 * out at once, ending in the same state with the same words.
 */

import { cloneJson, field, isObject, type Json, type JsonObject, text } from '../json/json.ts'
import { versionsOf } from './versions.ts'

/**
 * The status of `crd`, given every other definition and the time (RFC 3339). What its status said before is kept where
 * it still holds: names once accepted, times of conditions that did not change.
 */
export function definitionStatus(crd: JsonObject, others: readonly JsonObject[], now: string): JsonObject {
  const before = field(crd, 'status')
  const { accepted, condition } = acceptNames(crd, others)
  const conditions = new Map<string, JsonObject>()
  for (const known of listOf(field(before, 'conditions')).filter(isObject)) conditions.set(text(known, 'type'), known)
  const established = conditions.get('Established')
  set(conditions, condition, now)
  if (text(established, 'status') !== 'True') {
    const named = condition.status === 'True'
    set(
      conditions,
      named
        ? {
            type: 'Established',
            status: 'True',
            reason: 'InitialNamesAccepted',
            message: 'the initial names have been accepted',
          }
        : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
      now,
    )
  }
  const approval = approvalOf(crd)
  if (approval !== undefined) set(conditions, approval, now)
  return new Map<string, Json>([
    ['conditions', [...conditions.values()]],
    ['acceptedNames', accepted],
    ['storedVersions', storedVersions(crd)],
  ])
}

type Condition = {
  readonly type: string
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
}

function set(conditions: Map<string, JsonObject>, condition: Condition, now: string): void {
  const known = conditions.get(condition.type)
  const since = text(known, 'status') === condition.status ? text(known, 'lastTransitionTime') : ''
  conditions.set(
    condition.type,
    new Map<string, Json>([
      ['type', condition.type],
      ['status', condition.status],
      ['lastTransitionTime', since === '' ? now : since],
      ['reason', condition.reason],
      ['message', condition.message],
    ]),
  )
}

/** Every version that objects may still be stored in, the present one last if it is new. */
function storedVersions(crd: JsonObject): Json[] {
  const stored = listOf(field(crd, 'status', 'storedVersions'))
  const storage = versionsOf(field(crd, 'spec')).find((version) => version.get('storage') === true)
  const name = text(storage, 'name')
  return name === '' || stored.includes(name) ? [...stored] : [...stored, name]
}

function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : []
}

/** Names go to the definition that had them first; a later definition of the same group keeps what is left. */
function acceptNames(crd: JsonObject, others: readonly JsonObject[]): { accepted: JsonObject; condition: Condition } {
  const wanted = field(crd, 'spec', 'names')
  const held = field(crd, 'status', 'acceptedNames')
  const resources = new Set<string>()
  const kinds = new Set<string>()
  for (const other of others) {
    if (text(other, 'spec', 'group') !== text(crd, 'spec', 'group')) continue
    if (text(other, 'metadata', 'name') === text(crd, 'metadata', 'name')) continue
    const names = field(other, 'status', 'acceptedNames')
    for (const name of [text(names, 'plural'), text(names, 'singular')]) resources.add(name)
    for (const name of listOf(field(names, 'shortNames'))) resources.add(String(name))
    for (const name of [text(names, 'kind'), text(names, 'listKind')]) kinds.add(name)
  }
  let conflict: Condition | undefined
  const refuse = (reason: string, message: string) => {
    conflict = { type: 'NamesAccepted', status: 'False', reason, message }
  }
  const inUse = (name: string) => `${JSON.stringify(name)} is already in use`
  const pick = (key: string, taken: ReadonlySet<string>, reason: string): string => {
    const name = text(wanted, key)
    const mine = text(held, key)
    if (name === mine || !taken.has(name)) return name
    refuse(reason, inUse(name))
    return mine
  }
  const plural = pick('plural', resources, 'PluralConflict')
  const singular = pick('singular', resources, 'SingularConflict')
  const mine = listOf(field(held, 'shortNames'))
  const asked = listOf(field(wanted, 'shortNames'))
  const taken = asked.filter((name) => !mine.includes(name) && resources.has(String(name))).map(String)
  if (taken.length > 0) {
    const texts = taken.map(inUse)
    refuse('ShortNamesConflict', texts.length === 1 ? (texts[0] as string) : `[${texts.join(', ')}]`)
  }
  const kind = pick('kind', kinds, 'KindConflict')
  const listKind = pick('listKind', kinds, 'ListKindConflict')
  const shortNames = taken.length > 0 ? mine : asked
  const accepted: JsonObject = new Map<string, Json>([['plural', plural]])
  if (singular !== '') accepted.set('singular', singular)
  if (shortNames.length > 0) accepted.set('shortNames', cloneJson(shortNames))
  accepted.set('kind', kind)
  if (listKind !== '') accepted.set('listKind', listKind)
  const categories = listOf(field(wanted, 'categories'))
  if (categories.length > 0) accepted.set('categories', cloneJson(categories))
  const fine: Condition = {
    type: 'NamesAccepted',
    status: 'True',
    reason: 'NoConflicts',
    message: 'no conflicts found',
  }
  return { accepted, condition: conflict ?? fine }
}

/** Definitions in a group of the Kubernetes project say whether the project agreed to them. */
function approvalOf(crd: JsonObject): Condition | undefined {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(text(crd, 'spec', 'group'))) return undefined
  const approval = text(crd, 'metadata', 'annotations', 'api-approved.kubernetes.io')
  const type = 'KubernetesAPIApprovalPolicyConformant'
  if (approval.startsWith('unapproved')) {
    const message = `not approved: ${JSON.stringify(approval)}`
    return { type, status: 'False', reason: 'UnapprovedAnnotation', message }
  }
  return { type, status: 'True', reason: 'ApprovedAnnotation', message: `approved in ${approval}` }
}
