/**
 * What a list, watch, get or deletecollection asks of versions and pages: the table of resourceVersion, resourceVersionMatch,
 * limit, continue and sendInitialEvents, settled here into closed unions so that no other code reads these parameters.
 * Refusals come in kube-apiserver's order: numbers, selectors, the table, then versions and tokens.
 */

import { type ContinueToken, decodeContinue } from './continue.ts'
import type { FieldSelector } from './fieldselector.ts'
import { clamped, parseInt64, parseUint64, quoted } from './json/gotext.ts'
import { type Query, truthy } from './request.ts'
import type { LabelSelector } from './selector.ts'
import { badRequest, type FieldError, failure, invalid } from './status.ts'

/** Which state a read wants; `notOlderThan` and `exact` name a version. */
export type ListState =
  | { readonly kind: 'recent' }
  | { readonly kind: 'any' }
  | { readonly kind: 'notOlderThan'; readonly version: number }
  | { readonly kind: 'exact'; readonly version: number }
  | { readonly kind: 'continue'; readonly token: ContinueToken }

type Selectors = { readonly labels: LabelSelector; readonly fields: FieldSelector }

/** `limit` 0 means all. */
export type ListOptions = Selectors & { readonly limit: number; readonly state: ListState }

export type RequestedStart =
  | { readonly kind: 'recent' }
  | { readonly kind: 'any' }
  /** Changes after this version; with `initialEvents`: a state not older than it, then its changes. */
  | { readonly kind: 'after'; readonly version: number }

export type WatchOptions = Selectors & {
  readonly start: RequestedStart
  /** Every present object first, as ADDED. */
  readonly initialEvents: boolean
  readonly bookmarks: boolean
  /** A bookmark annotated `k8s.io/initial-events-end` follows the initial events. */
  readonly closingBookmark: boolean
  /** As given, negative too (then the watch ends at once); absent or 0: the server chooses. */
  readonly timeoutSeconds?: number
}

type Given = Selectors & {
  readonly watch: boolean
  readonly bookmarks: boolean
  readonly version: string
  readonly match: string
  readonly timeoutSeconds: number | undefined
  readonly limit: number
  readonly continues: string
  readonly sendInitialEvents: boolean | undefined
}

export function parseListOptions(query: Query, verb: 'list' | 'deletecollection', keyPrefix?: string): ListOptions
export function parseListOptions(query: Query, verb: 'watch'): WatchOptions
/** `keyPrefix` is what every storage key of the list begins with (`namespace/`): a token's start is relative to it. */
export function parseListOptions(
  query: Query,
  verb: 'list' | 'watch' | 'deletecollection',
  keyPrefix = '',
): ListOptions | WatchOptions {
  const given = defaulted(read(query))
  const faults = given.watch ? watchFaults(given) : listFaults(given)
  if (faults.length > 0) throw invalid('meta.k8s.io', 'ListOptions', '', faults)
  const { labels, fields } = given
  if (verb === 'watch') return watchOptions(given)
  const state = listState(given, keyPrefix)
  return { labels, fields, state, limit: given.version === '0' ? 0 : given.limit }
}

/** A single object's read knows only "most recent", "any" and "not older than". */
export function parseGetOptions(query: Query): Exclude<ListState, { kind: 'exact' | 'continue' }> {
  const text = query.get('resourceVersion') ?? ''
  if (text === '') return { kind: 'recent' }
  const version = strictVersion(text)
  return version === 0 ? { kind: 'any' } : { kind: 'notOlderThan', version }
}

function read(query: Query): Given {
  const timeoutSeconds = int64(query.get('timeoutSeconds'))
  const limit = int64(query.get('limit')) ?? 0
  const sendInitialEvents = query.get('sendInitialEvents')
  return {
    labels: query.labelSelector,
    fields: query.fieldSelector,
    watch: truthy(query.get('watch')),
    bookmarks: truthy(query.get('allowWatchBookmarks')),
    version: query.get('resourceVersion') ?? '',
    match: query.get('resourceVersionMatch') ?? '',
    timeoutSeconds,
    limit: Math.max(0, limit),
    continues: query.get('continue') ?? '',
    sendInitialEvents: sendInitialEvents === undefined ? undefined : truthy(sendInitialEvents),
  }
}

function int64(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const parsed = parseInt64(text)
  if ('fault' in parsed) throw badRequest(parsed.fault)
  return clamped(parsed.value)
}

/** A watch without a version wants the present objects first, as it always has. */
function defaulted(given: Given): Given {
  const asked = given.sendInitialEvents !== undefined || given.match !== ''
  if (!given.watch || asked || (given.version !== '' && given.version !== '0')) return given
  return { ...given, sendInitialEvents: true, match: 'NotOlderThan' }
}

function forbidden(field: string, why: string): FieldError {
  return { field, reason: 'FieldValueForbidden', text: `Forbidden: ${why}` }
}

function unsupported(match: string, supported: readonly string[]): FieldError {
  const text = `Unsupported value: ${JSON.stringify(match)}: supported values: ${supported.map(quoted).join(', ')}`
  return { field: 'resourceVersionMatch', reason: 'FieldValueNotSupported', text }
}

function listFaults({ match, version, continues, sendInitialEvents }: Given): FieldError[] {
  const faults: FieldError[] = []
  const refuse = (why: string) => faults.push(forbidden('resourceVersionMatch', why))
  if (match !== '') {
    if (version === '') refuse('resourceVersionMatch is forbidden unless resourceVersion is provided')
    if (continues !== '') refuse('resourceVersionMatch is forbidden when continue is provided')
    if (match !== 'Exact' && match !== 'NotOlderThan') faults.push(unsupported(match, ['Exact', 'NotOlderThan', '']))
    if (match === 'Exact' && version === '0') {
      refuse('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    }
  }
  if (sendInitialEvents !== undefined) {
    faults.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  }
  return faults
}

function watchFaults({ match, continues, sendInitialEvents }: Given): FieldError[] {
  const faults: FieldError[] = []
  const refuse = (why: string) => faults.push(forbidden('resourceVersionMatch', why))
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    refuse('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      refuse('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')
    }
    if (match !== 'NotOlderThan') faults.push(unsupported(match, ['NotOlderThan']))
    if (continues !== '') refuse('resourceVersionMatch is forbidden when continue is provided')
  }
  return faults
}

function listState(given: Given, keyPrefix: string): ListState {
  if (given.continues !== '') {
    const token = decodeContinue(given.continues, keyPrefix)
    if (given.version !== '' && given.version !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    return { kind: 'continue', token }
  }
  if (given.version === '') return { kind: 'recent' }
  const parsed = parseVersion(given.version)
  if ('fault' in parsed) throw badRequest(`invalid resource version: ${parsed.fault}`)
  const { version } = parsed
  if (version === 0) return { kind: 'any' }
  // A limit with a version has meant "exactly this one" since before there was a way to say so.
  const exact = given.match === 'Exact' || (given.match === '' && given.limit > 0)
  return { kind: exact ? 'exact' : 'notOlderThan', version }
}

/** The old `/watch/` paths carry no `watch` parameter; they too begin with the present objects. */
function watchOptions(given: Given): WatchOptions {
  const version = given.version === '' ? 0 : strictVersion(given.version)
  const start: RequestedStart =
    version > 0 ? { kind: 'after', version } : { kind: given.version === '' ? 'recent' : 'any' }
  const { labels, fields, bookmarks, timeoutSeconds } = given
  const initialEvents = given.sendInitialEvents ?? version === 0
  const closingBookmark = given.sendInitialEvents === true && bookmarks
  const options = { labels, fields, start, initialEvents, bookmarks, closingBookmark }
  return timeoutSeconds === undefined ? options : { ...options, timeoutSeconds }
}

type Version = { readonly version: number } | { readonly fault: string }

function parseVersion(text: string): Version {
  const parsed = parseUint64(text)
  if ('value' in parsed) return { version: clamped(parsed.value) }
  return { fault: `resourceVersion: Invalid value: ${quoted(text)}: ${parsed.fault}` }
}

/** kube-apiserver answers a garbled version on get and watch with a bare 500. */
function strictVersion(text: string): number {
  const parsed = parseVersion(text)
  if ('fault' in parsed) throw failure(500, '', parsed.fault)
  return parsed.version
}
