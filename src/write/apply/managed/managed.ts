/**
 * metadata.managedFields read into owners, and printed again in the form and the order of kube-apiserver. An owner is
 * known by a text that is JSON itself: conflicts and the cap on owners are ordered by it.
 */

import { bytewise } from '../../../kube/json/goformat.ts'
import { equalJson, isObject, type Json, type JsonObject, printJson, text } from '../../../kube/json/json.ts'
import type { FieldSet } from '../fieldset.ts'
import { FieldsFault, parseFields, printFields } from '../fieldsv1.ts'
import type { Owned, Owners } from '../owner.ts'

export type Managed = {
  readonly owners: Owners
  /** When each of them last changed something, as it is printed; not known of all. */
  readonly times: ReadonlyMap<string, string>
}

export const unmanaged: Managed = { owners: new Map(), times: new Map() }

export type OwnerName = {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  /** '' for the object itself. */
  readonly subresource: string
}

/** A manager that applies stays the same owner in every version. */
export function ownerKey({ manager, operation, apiVersion, subresource }: OwnerName): string {
  const named: JsonObject = new Map()
  if (manager !== '') named.set('manager', manager)
  named.set('operation', operation)
  if (apiVersion !== '' && operation !== 'Apply') named.set('apiVersion', apiVersion)
  if (subresource !== '') named.set('subresource', subresource)
  return printJson(named)
}

export function ownerName(key: string): OwnerName {
  return { manager: '', apiVersion: '', subresource: '', ...(JSON.parse(key) as Pick<OwnerName, 'operation'>) }
}

/** Entries from which no owners can be read. */
export class ManagedFault extends Error {}

/** What lists of entries say, as far as it is known: they are read and printed far more often than they change. */
const known = new WeakMap<Json[], Managed>()

/** Lists that were made here, for an object whose fields have been told apart. */
const own = new WeakSet<Json[]>()

export function isOwn(entries: Json | undefined): entries is Json[] {
  return Array.isArray(entries) && own.has(entries)
}

/** Of entries that name the same owner the last one counts. Throws ManagedFault. */
export function parseManaged(entries: Json | undefined): Managed {
  if (!Array.isArray(entries) || entries.length === 0) return unmanaged
  const said = known.get(entries)
  if (said !== undefined) return said
  const owners = new Map<string, Owned>()
  const times = new Map<string, string>()
  for (const [index, entry] of entries.entries()) {
    const operation = text(entry, 'operation')
    const apiVersion = text(entry, 'apiVersion')
    const fieldsType = text(entry, 'fieldsType')
    if (operation !== 'Apply' && operation !== 'Update') throw new ManagedFault('operation must be `Apply` or `Update`')
    if (apiVersion === '') throw new ManagedFault('apiVersion must not be empty')
    if (fieldsType === '') throw new ManagedFault(`missing fieldsType in managed fields entry ${index}`)
    if (fieldsType !== 'FieldsV1') {
      throw new ManagedFault(`invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${index}`)
    }
    const [manager, subresource] = [text(entry, 'manager'), text(entry, 'subresource')]
    const key = ownerKey({ manager, operation, apiVersion, subresource })
    owners.set(key, { set: fieldsIn(entry), apiVersion, applied: operation === 'Apply' })
    setTime(times, key, wholeSeconds(text(entry, 'time')))
  }
  const managed = { owners, times }
  known.set(entries, managed)
  return managed
}

export function setTime(times: Map<string, string>, key: string, time: string | undefined): void {
  if (time === undefined || time === '') times.delete(key)
  else times.set(key, time)
}

function fieldsIn(entry: Json): FieldSet {
  try {
    return parseFields(isObject(entry) ? entry.get('fieldsV1') : undefined)
  } catch (error) {
    if (!(error instanceof FieldsFault)) throw error
    throw new ManagedFault(`error decoding set: ${error.message}`)
  }
}

/** Times are kept in UTC and whole seconds, and compared as they are printed. */
function wholeSeconds(time: string): string {
  if (/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)?$/.test(time)) return time
  const ms = Date.parse(time)
  return Number.isNaN(ms) ? '' : `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** Undefined where there is no owner. `custom`: custom resources are printed with sorted keys. */
export function printManaged({ owners, times }: Managed, custom: boolean): Json[] | undefined {
  if (owners.size === 0) return undefined
  const entries = [...owners].map(([key, { set, apiVersion, applied }]): ManagedEntry => {
    const name = ownerName(key)
    return { ...name, operation: applied ? 'Apply' : name.operation, apiVersion, set, time: times.get(key) ?? '' }
  })
  const printed = entries.sort(compareEntries).map((entry) => printEntry(entry, custom))
  // An owner through /scale prints another name than it is known by, and then another one would be read again.
  const keys = new Set(entries.map(ownerKey))
  if (keys.size === owners.size && [...keys].every((key) => owners.has(key))) {
    known.set(printed, { owners, times: new Map([...times].filter(([key]) => keys.has(key))) })
    own.add(printed)
  }
  return printed
}

type ManagedEntry = OwnerName & { readonly set: FieldSet; readonly time: string }

function compareEntries(a: ManagedEntry, b: ManagedEntry): number {
  return (
    bytewise(a.operation, b.operation) ||
    bytewise(a.time, b.time) ||
    bytewise(a.manager, b.manager) ||
    bytewise(a.apiVersion, b.apiVersion) ||
    bytewise(a.subresource, b.subresource)
  )
}

function printEntry(
  { manager, operation, apiVersion, time, set, subresource }: ManagedEntry,
  custom: boolean,
): JsonObject {
  const entry: JsonObject = new Map()
  if (manager !== '') entry.set('manager', manager)
  entry.set('operation', operation)
  entry.set('apiVersion', apiVersion)
  if (time !== '') entry.set('time', time)
  entry.set('fieldsType', 'FieldsV1')
  entry.set('fieldsV1', fieldsOf(set, custom))
  if (subresource !== '') entry.set('subresource', subresource)
  return custom ? new Map([...entry].sort(([a], [b]) => bytewise(a, b))) : entry
}

const entryTexts = new WeakMap<Json[], string>()
const fieldTexts = new WeakMap<JsonObject, string>()

/** Entries as JSON. They are printed once, and the fields of each owner as often as they change. */
export function managedText(entries: Json[]): string {
  let text = entryTexts.get(entries)
  if (text === undefined) {
    text = `[${entries.map((entry) => (isObject(entry) ? entryText(entry) : printJson(entry))).join()}]`
    entryTexts.set(entries, text)
  }
  return text
}

function entryText(entry: JsonObject): string {
  const members = [...entry].map(([key, value]) => {
    const printed = key === 'fieldsV1' && isObject(value) ? fieldsText(value) : printJson(value)
    return `${printJson(key)}:${printed}`
  })
  return `{${members.join()}}`
}

function fieldsText(fields: JsonObject): string {
  let text = fieldTexts.get(fields)
  if (text === undefined) {
    text = printJson(fields)
    fieldTexts.set(fields, text)
  }
  return text
}

const plainFields = new WeakMap<FieldSet, JsonObject>()
const sortedFields = new WeakMap<FieldSet, JsonObject>()

/** Most owners lose nothing by a write: what their fields are printed as is kept with them. No caller changes it. */
function fieldsOf(set: FieldSet, custom: boolean): JsonObject {
  const printed = custom ? sortedFields : plainFields
  let fields = printed.get(set)
  if (fields === undefined) {
    fields = custom ? sorted(printFields(set)) : printFields(set)
    printed.set(set, fields)
  }
  return fields
}

/** The object itself where it is in order with all below it, as most of it is. */
function sorted(object: JsonObject): JsonObject {
  let inOrder = true
  let before: string | undefined
  for (const [key, value] of object) {
    if (before !== undefined && bytewise(before, key) > 0) inOrder = false
    before = key
    // No caller has seen it yet: it has just been printed.
    if (isObject(value) && value.size > 0) object.set(key, sorted(value))
  }
  return inOrder ? object : new Map([...object].sort(([a], [b]) => bytewise(a, b)))
}

/** A client asks for a fresh start by one empty entry or, where a list can be told from none, by an empty list. */
export function isCleared(entries: Json | undefined): boolean {
  if (!Array.isArray(entries)) return false
  if (entries.length === 0) return true
  const only = entries.length === 1 ? entries[0] : undefined
  return only === null || (isObject(only) && [...only.values()].every((value) => value === null || value === ''))
}

/** Whether two lists of entries differ in nothing but times. */
export function sameOwners(a: Json | undefined, b: Json | undefined): boolean {
  if (!Array.isArray(a) || !Array.isArray(b)) return a === b
  return a.length === b.length && a.every((entry, index) => equalJson(timeless(entry), timeless(b[index] ?? null)))
}

function timeless(entry: Json): Json {
  if (!isObject(entry) || !entry.has('time')) return entry
  const rest = new Map(entry)
  rest.delete('time')
  return rest
}
