/**
 * Custom resource definitions: what is filled in, and what is refused. Error paths are those of kube-apiserver's
 * internal form, where a schema, columns, subresources or selectable fields that all versions share stand at the top
 * (`spec.validation.openAPIV3Schema`), though their writer put them elsewhere.
 */

import { equalJson, field, isObject, type Json, type JsonObject, printJson, text } from '../json/json.ts'
import { dns1035LabelFaults, dnsSubdomainFaults } from '../names.ts'
import type { FieldError } from '../status.ts'
import { child, forbiddenField, invalidField, keyed, requiredField, unsupportedField } from './errors.ts'
import { checkOpenApi } from './openapi.ts'
import { checkColumns, checkScale, checkSelectable } from './subresource.ts'
import { schemaIn, versionsOf } from './versions.ts'

/** Fills in what a definition leaves to the server, in place. */
export function definitionDefaults(crd: JsonObject): void {
  const spec = crd.get('spec')
  if (!isObject(spec)) return
  const names = spec.get('names')
  if (isObject(names)) {
    const kind = text(names, 'kind')
    if (text(names, 'singular') === '' && kind !== '') names.set('singular', kind.toLowerCase())
    if (text(names, 'listKind') === '' && kind !== '') names.set('listKind', `${kind}List`)
  }
  if (!isObject(spec.get('conversion'))) spec.set('conversion', new Map([['strategy', 'None']]))
}

/** What is wrong with a definition; run after definitionDefaults. `old` is the stored one on an update. */
export function validateDefinition(crd: JsonObject, old?: JsonObject): FieldError[] {
  const spec = field(crd, 'spec')
  // The name of a stored definition cannot change; that its group and plural cannot either is told below.
  const found: FieldError[] = old === undefined ? checkName(crd) : []
  found.push(...checkGroup(spec), ...checkScope(spec), ...checkVersions(spec), ...checkNames(spec))
  found.push(...checkShared(spec), ...checkConversion(spec), ...checkApproval(crd, old))
  if (field(spec, 'preserveUnknownFields') === true && field(old, 'spec', 'preserveUnknownFields') !== true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
    found.push(invalidField('spec.preserveUnknownFields', true, detail))
  }
  if (old === undefined) found.push(...checkStorage(spec))
  else found.push(...checkUpdate(crd, old))
  return found
}

function checkName(crd: JsonObject): FieldError[] {
  const name = text(crd, 'metadata', 'name')
  const wanted = `${text(crd, 'spec', 'names', 'plural')}.${text(crd, 'spec', 'group')}`
  const wrong = dnsSubdomainFaults(name)
  if (name !== wanted) wrong.push('must be spec.names.plural+"."+spec.group')
  return name === '' ? [] : wrong.map((detail) => invalidField('metadata.name', name, detail))
}

function checkGroup(spec: Json | undefined): FieldError[] {
  const group = text(spec, 'group')
  if (group === '') return [requiredField('spec.group')]
  const wrong = dnsSubdomainFaults(group)
  if (wrong.length > 0) return [invalidField('spec.group', group, wrong.join(','))]
  if (group.includes('.')) return []
  return [invalidField('spec.group', group, 'should be a domain with at least one dot')]
}

function checkScope(spec: Json | undefined): FieldError[] {
  const scope = text(spec, 'scope')
  if (scope === '') return [requiredField('spec.scope')]
  if (scope === 'Cluster' || scope === 'Namespaced') return []
  return [unsupportedField('spec.scope', scope, ['Cluster', 'Namespaced'])]
}

function checkVersions(spec: Json | undefined): FieldError[] {
  const found: FieldError[] = []
  const versions = versionsOf(spec)
  const shared = sharedParts(versions)
  for (const [index, version] of versions.entries()) {
    if (field(version, 'schema', 'openAPIV3Schema') === undefined) {
      found.push(requiredField(child(keyed('spec.versions', index), 'schema.openAPIV3Schema')))
    }
  }
  for (const [index, version] of versions.entries()) {
    const path = keyed('spec.versions', index)
    const name = text(version, 'name')
    const wrong = dns1035LabelFaults(name)
    if (wrong.length > 0) found.push(invalidField(child(path, 'name'), name, wrong.join(',')))
    const warning = field(version, 'deprecationWarning')
    if (typeof warning === 'string' && field(version, 'deprecated') !== true) {
      const detail = 'can only be set for deprecated versions'
      found.push(invalidField(child(path, 'deprecationWarning'), warning, detail))
    }
    found.push(...checkParts(version, (part) => (shared.has(part) ? undefined : child(path, part))))
  }
  found.push(...checkVersionSet(spec, versions, shared.has('schema')))
  const [first] = versions
  const wrong = first === undefined ? [] : dns1035LabelFaults(text(first, 'name'))
  if (wrong.length > 0) found.push(invalidField('spec.version', text(first, 'name'), wrong.join(',')))
  return found
}

const PARTS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const
type Part = (typeof PARTS)[number]

/** What is the same in all versions. */
function sharedParts(versions: readonly JsonObject[]): ReadonlySet<Part> {
  return new Set(PARTS.filter((part) => versions.every((version) => same(version.get(part), versions[0]?.get(part)))))
}

/** The parts all versions share, looked at once. */
function checkShared(spec: Json | undefined): FieldError[] {
  const versions = versionsOf(spec)
  const shared = sharedParts(versions)
  const [first] = versions
  if (first === undefined) return []
  return checkParts(first, (part) => (shared.has(part) ? `spec.${part === 'schema' ? 'validation' : part}` : undefined))
}

/** The parts of one version that `at` gives a path to. */
function checkParts(version: JsonObject, at: (part: Part) => string | undefined): FieldError[] {
  const found: FieldError[] = []
  const schema = schemaIn(version)
  const schemaAt = at('schema')
  if (schema !== undefined && schemaAt !== undefined) {
    const status = field(version, 'subresources', 'status') !== undefined
    found.push(...checkOpenApi(schema, child(schemaAt, 'openAPIV3Schema'), status))
  }
  const subresourcesAt = at('subresources')
  if (subresourcesAt !== undefined) found.push(...checkScale(version, child(subresourcesAt, 'scale')))
  const columnsAt = at('additionalPrinterColumns')
  if (columnsAt !== undefined) found.push(...checkColumns(version, columnsAt))
  const selectableAt = at('selectableFields')
  if (selectableAt !== undefined) found.push(...checkSelectable(version, schema, selectableAt))
  return found
}

function same(left: Json | undefined, right: Json | undefined): boolean {
  return left === undefined || right === undefined ? left === right : equalJson(left, right)
}

function checkVersionSet(spec: Json | undefined, versions: readonly JsonObject[], sharedSchema: boolean): FieldError[] {
  const found: FieldError[] = []
  const names = versions.map((version) => text(version, 'name'))
  const sent = Array.isArray(field(spec, 'versions'))
  const value = sent ? versions.map((version) => internalVersion(version, sharedSchema)) : null
  if (new Set(names).size < names.length) {
    found.push(invalidVersions(value, 'must contain unique version names'))
  }
  if (versions.filter((version) => version.get('storage') === true).length !== 1) {
    found.push(invalidVersions(value, 'must have exactly one version marked as storage version'))
  }
  return found
}

/** The internal struct is printed in the order of its fields, where other values are printed with sorted keys. */
function invalidVersions(value: Json, detail: string): FieldError {
  return { field: 'spec.versions', reason: 'FieldValueInvalid', text: `Invalid value: ${printJson(value)}: ${detail}` }
}

/** How the server prints a version it complains about: the fields of its internal struct. */
function internalVersion(version: JsonObject, sharedSchema: boolean): Json {
  return new Map<string, Json>([
    ['Name', text(version, 'name')],
    ['Served', version.get('served') === true],
    ['Storage', version.get('storage') === true],
    ['Deprecated', version.get('deprecated') === true],
    ['DeprecationWarning', version.get('deprecationWarning') ?? null],
    ['Schema', sharedSchema ? null : (version.get('schema') ?? null)],
    ['Subresources', null],
    ['AdditionalPrinterColumns', null],
    ['SelectableFields', null],
  ])
}

function checkNames(spec: Json | undefined): FieldError[] {
  const found: FieldError[] = []
  const names = field(spec, 'names')
  const at = (key: string) => `spec.names.${key}`
  for (const key of ['plural', 'singular', 'kind', 'listKind']) {
    const name = text(names, key)
    if (name === '') {
      found.push(requiredField(at(key)))
      continue
    }
    const mixed = key === 'kind' || key === 'listKind'
    const wrong = dns1035LabelFaults(mixed ? name.toLowerCase() : name).join(',')
    const detail = mixed ? `may have mixed case, but should otherwise match: ${wrong}` : wrong
    if (wrong !== '') found.push(invalidField(at(key), name, detail))
  }
  const kind = text(names, 'kind')
  if (kind !== '' && kind === text(names, 'listKind')) {
    found.push(invalidField(at('listKind'), kind, 'kind and listKind may not be the same'))
  }
  for (const key of ['shortNames', 'categories']) {
    const list = field(names, key)
    for (const [index, name] of (Array.isArray(list) ? list : []).entries()) {
      const wrong = dns1035LabelFaults(String(name))
      if (wrong.length > 0) found.push(invalidField(keyed(at(key), index), name, wrong.join(',')))
    }
  }
  return found
}

function checkConversion(spec: Json | undefined): FieldError[] {
  const strategy = text(spec, 'conversion', 'strategy')
  const at = 'spec.conversion.strategy'
  if (strategy === 'Webhook') {
    return [invalidField(at, strategy, 'conversion by webhook is not supported by this server; use None')]
  }
  if (strategy === '') return [requiredField(at)]
  if (strategy !== 'None') return [unsupportedField(at, strategy, ['None', 'Webhook'])]
  if (field(spec, 'conversion', 'webhook') === undefined) return []
  const detail = 'should not be set when strategy is not set to Webhook'
  return [forbiddenField('spec.conversion.webhookClientConfig', detail)]
}

const APPROVED = 'api-approved.kubernetes.io'

/** Groups of the Kubernetes project need its word. */
function checkApproval(crd: JsonObject, old: JsonObject | undefined): FieldError[] {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(text(crd, 'spec', 'group'))) return []
  const approval = text(crd, 'metadata', 'annotations', APPROVED)
  if (old !== undefined && text(old, 'metadata', 'annotations', APPROVED) === approval) return []
  if (approval.startsWith('unapproved') || /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(approval)) return []
  const path = `metadata.annotations[${APPROVED}]`
  const see = 'see https://github.com/kubernetes/enhancements/pull/1111'
  const must = `protected groups must have approval annotation "${APPROVED}"`
  if (approval === '') return [requiredField(path, `${must}, ${see}`)]
  return [invalidField(path, approval, `${must} with either a URL or a reason starting with "unapproved", ${see}`)]
}

/** On create the first storage version becomes the stored one; the others of several are missing then. */
function checkStorage(spec: Json | undefined): FieldError[] {
  const at = 'status.storedVersions'
  const storage = versionsOf(spec)
    .filter((version) => version.get('storage') === true)
    .map((version) => text(version, 'name'))
  const [first, ...others] = storage
  if (first === undefined) return [invalidField(at, null, 'must have at least one stored version')]
  return others
    .filter((name) => name !== first)
    .map((name) => invalidField(at, [first], `must have the storage version ${name}`))
}

function checkUpdate(crd: JsonObject, old: JsonObject): FieldError[] {
  const found: FieldError[] = []
  const fixed = (...path: string[]) => {
    const value = field(crd, 'spec', ...path) ?? ''
    if (!same(value, field(old, 'spec', ...path) ?? '')) {
      found.push(invalidField(['spec', ...path].join('.'), value, 'field is immutable'))
    }
  }
  const conditions = field(old, 'status', 'conditions')
  const established = (Array.isArray(conditions) ? conditions : []).some(
    (condition) => text(condition, 'type') === 'Established' && text(condition, 'status') === 'True',
  )
  if (established) {
    fixed('scope')
    fixed('names', 'kind')
  }
  fixed('group')
  fixed('names', 'plural')
  const names = versionsOf(field(crd, 'spec')).map((version) => text(version, 'name'))
  const stored = field(old, 'status', 'storedVersions')
  for (const [index, version] of (Array.isArray(stored) ? stored : []).entries()) {
    if (typeof version !== 'string' || names.includes(version)) continue
    const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`
    found.push(invalidField(keyed('status.storedVersions', index), version, detail))
  }
  return found
}
