/** Validation of object metadata for every kind, in the words and the order of apimachinery. */

import { equalJson, field, isObject, type Json, type JsonObject, printJson, text } from '../kube/json/json.ts'
import { labelKeyFaults, labelValueFaults } from '../kube/labels.ts'
import type { Resource } from '../kube/resource.ts'
import { forbiddenField, invalidField, requiredField, tooLong } from '../kube/schema/errors.ts'
import { quote } from '../kube/schema/values.ts'
import type { FieldError } from '../kube/status.ts'
import { goKind } from './body.ts'
import { finalizersOf, isDeleting, listOf, wholeOf } from './meta.ts'
import { type NameRule, nameFaults } from './names.ts'
import { managerFaults } from './options.ts'

const annotationBytesMax = 256 * 1024 // the real server's: annotations travel with every list and watch
const orphan = 'orphan'
const foreground = 'foregroundDeletion'
const standardFinalizers: ReadonlySet<string> = new Set(['kubernetes', orphan, foreground])

/** A new object's metadata. */
export function metaFaults(resource: Resource, meta: JsonObject, rule: NameRule): FieldError[] {
  const found: FieldError[] = []
  const generateName = text(meta, 'generateName')
  const name = text(meta, 'name')
  if (generateName !== '') {
    for (const fault of nameFaults(rule, generateName, true)) {
      found.push(invalidField('metadata.generateName', generateName, fault))
    }
  }
  if (name === '') found.push(requiredField('metadata.name', 'name or generateName is required'))
  else for (const fault of nameFaults(rule, name)) found.push(invalidField('metadata.name', name, fault))
  if (resource.namespaced) {
    const namespace = text(meta, 'namespace')
    if (namespace === '') found.push(requiredField('metadata.namespace'))
    else
      for (const fault of nameFaults('label', namespace))
        found.push(invalidField('metadata.namespace', namespace, fault))
  }
  const generation = wholeOf(meta, 'generation') ?? 0
  if (generation < 0) {
    found.push(invalidField('metadata.generation', generation, 'must be greater than or equal to 0'))
  }
  found.push(...mapFaults(meta), ...ownerFaults(meta), ...finalizerFaults(meta), ...managedFaults(meta))
  return found
}

/** What may not change from one version of an object to the next. */
export function metaUpdateFaults(meta: JsonObject, old: JsonObject): FieldError[] {
  const found: FieldError[] = []
  if (isDeleting(old)) {
    const before = new Set(finalizersOf(old))
    const added = [...new Set(finalizersOf(meta))].filter((name) => !before.has(name)).sort()
    if (added.length > 0) {
      const shown = `[]string{${added.map(quote).join(', ')}}`
      const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${shown}`
      found.push(forbiddenField('metadata.finalizers', detail))
    }
  }
  for (const field of ['name', 'namespace', 'uid', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    const value = meta.get(field) ?? null
    if (!equalJson(value, old.get(field) ?? null)) {
      found.push(invalidField(`metadata.${field}`, value, 'field is immutable'))
    }
  }
  return [...found, ...mapFaults(meta), ...ownerFaults(meta), ...managedFaults(meta)]
}

/** Built-in kinds insist on finalizers that cannot be confused with another vendor's. */
export function standardFinalizerFaults(meta: JsonObject): FieldError[] {
  const found: FieldError[] = []
  for (const [index, name] of finalizersOf(meta).entries()) {
    const field = `metadata.finalizers[${index}]`
    if (!name.includes('/') && !standardFinalizers.has(name)) {
      found.push(invalidField(field, name, 'name is neither a standard finalizer name nor is it fully qualified'))
    }
  }
  return found
}

/** Custom resources only get a warning for them, and only for those that are new. */
export function finalizerWarnings(meta: JsonObject, old?: JsonObject): string[] {
  const before = new Set(old === undefined ? [] : finalizersOf(old))
  const added = [...new Set(finalizersOf(meta))].filter((name) => !before.has(name)).sort()
  return added
    .filter((name) => !name.includes('/') && !standardFinalizers.has(name))
    .map((name) => {
      const path = name.includes('.') ? ' including a path (/)' : ''
      return `metadata.finalizers: ${quote(name)}: prefer a domain-qualified finalizer name${path} to avoid accidental conflicts with other finalizer writers`
    })
}

function mapFaults(meta: JsonObject): FieldError[] {
  const found: FieldError[] = []
  for (const [key, value] of entriesOf(meta.get('labels'))) {
    for (const fault of labelKeyFaults(key)) found.push(invalidField('metadata.labels', key, fault))
    for (const fault of labelValueFaults(value)) found.push(invalidField('metadata.labels', value, fault))
  }
  let bytes = 0
  for (const [key, value] of entriesOf(meta.get('annotations'))) {
    // Annotation keys follow the rule of labels except that case does not matter in their prefix.
    for (const fault of labelKeyFaults(key.toLowerCase())) found.push(invalidField('metadata.annotations', key, fault))
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (bytes > annotationBytesMax) found.push(tooLong('metadata.annotations', annotationBytesMax))
  return found
}

function entriesOf(value: Json | undefined): [string, string][] {
  if (!isObject(value)) return []
  return [...value].map(([key, member]) => [key, typeof member === 'string' ? member : ''])
}

function ownerFaults(meta: JsonObject): FieldError[] {
  const found: FieldError[] = []
  const owners = listOf(meta, 'ownerReferences')
  let controller = ''
  for (const owner of owners) {
    const path = 'metadata.ownerReferences'
    const version = text(owner, 'apiVersion')
    if (version === '' || version.endsWith('/')) {
      found.push(invalidField(`${path}.apiVersion`, version, 'version must not be empty'))
    }
    for (const field of ['kind', 'name', 'uid']) {
      if (text(owner, field) === '') found.push(invalidField(`${path}.${field}`, '', 'must not be empty'))
    }
    if (version === 'v1' && text(owner, 'kind') === 'Event') {
      found.push(ownerFault(printJson(ordered(owner)), '/v1, Kind=Event is disallowed from being an owner'))
    }
    if (isObject(owner) && owner.get('controller') === true) {
      const name = `${text(owner, 'kind')}/${text(owner, 'name')}`
      if (controller === '') controller = name
      else {
        const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`
        found.push(ownerFault(printJson(owners.map(ordered)), detail))
      }
    }
  }
  return found
}

const ownerFields = ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion']

/** An owner reference as Go prints it. */
function ordered(owner: Json): Json {
  const shown: JsonObject = new Map()
  for (const name of ownerFields) {
    const value = field(owner, name)
    if (value !== undefined) shown.set(name, value)
  }
  return shown
}

function ownerFault(shown: string, detail: string): FieldError {
  return { field: 'metadata.ownerReferences', reason: 'FieldValueInvalid', text: `Invalid value: ${shown}: ${detail}` }
}

const subresourceBytesMax = 256 // the real server's

/** What they own is read elsewhere; here only the names count. */
function managedFaults(meta: JsonObject): FieldError[] {
  const found: FieldError[] = []
  for (const [index, entry] of listOf(meta, 'managedFields').entries()) {
    const path = `metadata.managedFields[${index}]`
    found.push(...managerFaults(`${path}.manager`, text(entry, 'manager')))
    if (Buffer.byteLength(text(entry, 'subresource')) > subresourceBytesMax) {
      found.push(tooLong(`${path}.subresource`, subresourceBytesMax))
    }
  }
  return found
}

function finalizerFaults(meta: JsonObject): FieldError[] {
  const found: FieldError[] = []
  const finalizers = finalizersOf(meta)
  for (const name of finalizers) {
    for (const fault of labelKeyFaults(name)) found.push(invalidField('metadata.finalizers', name, fault))
  }
  if (finalizers.includes(orphan) && finalizers.includes(foreground)) {
    const detail = `finalizer ${orphan} and ${foreground} cannot be both set`
    found.push(invalidField('metadata.finalizers', finalizers, detail))
  }
  return found
}

/** Wrong types in metadata, as Go's decoder reports the first of them; undefined when there is none. */
export function metaTypeFault(meta: Json | undefined): string | undefined {
  if (meta === undefined || meta === null) return undefined
  if (!isObject(meta)) return `json: cannot unmarshal ${goKind(meta)} into Go value of type v1.ObjectMeta`
  for (const field of ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp'] as const) {
    const value = meta.get(field)
    if (value !== undefined && value !== null && typeof value !== 'string') return unmarshal(value, field, 'string')
  }
  for (const field of ['labels', 'annotations'] as const) {
    const value = meta.get(field)
    if (value === undefined || value === null) continue
    if (!isObject(value)) return unmarshal(value, field, 'map[string]string')
    for (const member of value.values()) {
      if (member !== null && typeof member !== 'string') return unmarshal(member, field, 'string')
    }
  }
  for (const field of ['finalizers', 'ownerReferences', 'managedFields'] as const) {
    const value = meta.get(field)
    if (value === undefined || value === null) continue
    const element = elementTypes[field]
    if (!Array.isArray(value)) return unmarshal(value, field, `[]${element}`)
    for (const member of value) {
      const fits = field === 'finalizers' ? typeof member === 'string' : isObject(member)
      if (!fits && member !== null) return unmarshal(member, field, element)
    }
  }
  return undefined
}

const elementTypes = {
  finalizers: 'string',
  ownerReferences: 'v1.OwnerReference',
  managedFields: 'v1.ManagedFieldsEntry',
} as const

function unmarshal(value: Json, field: string, type: string): string {
  return `json: cannot unmarshal ${goKind(value)} into Go struct field ObjectMeta.${field} of type ${type}`
}
