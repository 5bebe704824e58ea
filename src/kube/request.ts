/**
 * What a method and a URL ask for, by the rules of kube-apiserver's RequestInfo: authorization, routing and metrics all
 * read this one answer. Runs once per request, so there is no URL object and no regular expression here.
 */

import { type FieldSelector, parseFieldSelector } from './fieldselector.ts'
import { quoted } from './json/gotext.ts'
import { type LabelSelector, parseLabelSelector } from './selector.ts'
import { badRequest, StatusError } from './status.ts'

export type ApiRequest = {
  readonly method: string
  /** Percent-decoded. */
  readonly path: string
  /** A resource's verb, or '' for a method that has none; the method in lower case where no resource is addressed. */
  readonly verb: string
  readonly isResource: boolean
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly name: string
  readonly subresource: string
  /** Resource, name, subresource and whatever follows. */
  readonly parts: readonly string[]
  readonly query: Query
  /** The name a list or watch is narrowed to by `fieldSelector=metadata.name=x`: authorization takes it for the name. */
  readonly selectedName: string
  /** The verb came from the old `/watch/` path prefix. */
  readonly legacyWatch: boolean
  /** What is wrong with the name or namespace in the path, '' if nothing: the verb that serves the resource refuses it. */
  readonly badSegment: string
}

export function parseRequest(method: string, url: string): ApiRequest {
  const start = url.charCodeAt(0) === SLASH ? 0 : originEnd(url)
  const mark = url.indexOf('?', start)
  const rawPath = mark < 0 ? (start === 0 ? url : url.slice(start)) : url.slice(start, mark)
  const query = new Query(mark < 0 ? '' : url.slice(mark + 1))
  const path = rawPath.includes('%') ? decode(rawPath) : rawPath
  const parts = split(path)

  const prefix = parts[0]
  const grouped = prefix === 'apis'
  const depth = grouped ? 3 : 2
  if (!(grouped || prefix === 'api') || parts.length <= depth) return nonResource(method, path, query)

  let verb = verbs.get(method) ?? ''
  let at = depth
  const legacyWatch = parts[at] === 'watch'
  if (legacyWatch) {
    if (++at === parts.length) return nonResource(method, path, query)
    verb = 'watch'
  }
  let namespace = ''
  if (parts[at] === 'namespaces' && parts.length > at + 1) {
    namespace = parts[at + 1] as string
    const next = parts[at + 2]
    if (next !== undefined && next !== 'status' && next !== 'finalize') at += 2
  }
  const own = parts.slice(at)
  const name = own[1] ?? ''
  let selectedName = ''
  if (name === '') {
    if (verb === 'get') {
      verb = truthy(query.get('watch')) ? 'watch' : 'list'
      selectedName = nameIn(query)
    } else if (verb === 'delete') verb = 'deletecollection'
  }
  return {
    method,
    path,
    verb,
    isResource: true,
    group: grouped ? (parts[1] as string) : '',
    version: parts[depth - 1] as string,
    namespace,
    resource: own[0] as string,
    name,
    subresource: own[2] ?? '',
    parts: own,
    query,
    selectedName,
    legacyWatch,
    badSegment: segmentFault('Name', name) || segmentFault('Namespace', namespace),
  }
}

const verbs: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
])

function nonResource(method: string, path: string, query: Query): ApiRequest {
  const verb = method.toLowerCase()
  const none = { group: '', version: '', namespace: '', resource: '', name: '', subresource: '', selectedName: '' }
  return { method, path, verb, isResource: false, ...none, parts: [], query, legacyWatch: false, badSegment: '' }
}

const SLASH = 47

/** The path and query of a request target, also of the form that is meant for proxies: nothing else goes up or is compared. */
export function originForm(target: string): string {
  if (target.charCodeAt(0) === SLASH || !target.includes('://')) return target
  const start = originEnd(target)
  return start === 0 ? '/' : target.charCodeAt(start) === SLASH ? target.slice(start) : `/${target.slice(start)}`
}

/** Where the path begins in `http://host/path`, the form meant for proxies. */
function originEnd(url: string): number {
  const scheme = url.indexOf('://')
  const slash = scheme < 0 ? -1 : url.indexOf('/', scheme + 3)
  // A slash in the query is none of the path.
  const mark = scheme < 0 ? -1 : url.indexOf('?', scheme + 3)
  return mark >= 0 && (slash < 0 || mark < slash) ? mark : Math.max(slash, 0)
}

/** The segments between the first slash and any trailing ones; an empty segment in between stays, and matches nothing. */
function split(path: string): string[] {
  let end = path.length
  while (end > 1 && path.charCodeAt(end - 1) === SLASH) end--
  return path.slice(path.charCodeAt(0) === SLASH ? 1 : 0, end).split('/')
}

/** A name becomes part of a storage key: what could climb out of its place is refused. */
function segmentFault(what: string, segment: string): string {
  const dots = segment === '.' || segment === '..'
  if (!dots && !segment.includes('%')) return ''
  const why = dots ? `may not be '${segment}'` : `may not contain '%'`
  return `${what} parameter invalid: ${quoted(segment)}: ${why}`
}

function nameIn(query: Query): string {
  if (!query.has('fieldSelector')) return ''
  try {
    const name = query.fieldSelector.required('metadata.name') ?? ''
    return name === '.' || name === '..' || name.includes('/') || name.includes('%') ? '' : name
  } catch {
    return '' // The verb itself will refuse the selector, after authorization.
  }
}

/** kube-apiserver's reading of a boolean parameter: present means true, unless it says `false` or `0`. */
export function truthy(value: string | undefined): boolean {
  return value !== undefined && value !== '0' && value.toLowerCase() !== 'false'
}

/** The parameters after `?`, decoded when the first of them is asked for. */
export class Query {
  readonly raw: string
  #pairs: readonly string[] | undefined
  #labels: LabelSelector | StatusError | undefined
  #fields: FieldSelector | StatusError | undefined

  constructor(raw: string) {
    this.raw = raw
  }

  /** The first value of that name. */
  get(name: string): string | undefined {
    if (this.raw === '') return undefined
    const pairs = this.#decoded()
    for (let i = 0; i < pairs.length; i += 2) if (pairs[i] === name) return pairs[i + 1]
    return undefined
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  all(name: string): string[] {
    const pairs = this.#decoded()
    const values: string[] = []
    for (let i = 0; i < pairs.length; i += 2) if (pairs[i] === name) values.push(pairs[i + 1] as string)
    return values
  }

  /** `labelSelector`, parsed once, however many ask: a caller may make it long. Throws what is wrong with it. */
  get labelSelector(): LabelSelector {
    this.#labels ??= parsed(parseLabelSelector, this.get('labelSelector'))
    return unlessWrong(this.#labels)
  }

  get fieldSelector(): FieldSelector {
    this.#fields ??= parsed(parseFieldSelector, this.get('fieldSelector'))
    return unlessWrong(this.#fields)
  }

  #decoded(): readonly string[] {
    this.#pairs ??= pairsOf(this.raw)
    return this.#pairs
  }
}

/** What was parsed, or what is wrong with it. */
function parsed<T>(parse: (text: string) => T, text = ''): T | StatusError {
  try {
    return parse(text)
  } catch (error) {
    if (error instanceof StatusError) return error
    throw error
  }
}

function unlessWrong<T>(one: T | StatusError): T {
  if (one instanceof StatusError) throw one
  return one
}

/**
 * Names and values in turn. kube-apiserver drops a pair it cannot decode, which turns a broken selector into "everything";
 * here such a request is refused instead.
 */
function pairsOf(raw: string): string[] {
  const pairs: string[] = []
  if (raw.includes(';')) throw badRequest('invalid semicolon separator in query')
  const escaped = raw.includes('%') || raw.includes('+')
  // The next one at or after `start`; looked for anew only once it is passed, since thousands of pairs may have none.
  let sign = -1
  for (let start = 0; start < raw.length; ) {
    let end = raw.indexOf('&', start)
    if (end < 0) end = raw.length
    if (end > start) {
      if (sign < start) sign = raw.indexOf('=', start)
      if (sign < 0) sign = raw.length
      const equals = Math.min(sign, end)
      const name = raw.slice(start, equals)
      const value = equals === end ? '' : raw.slice(equals + 1, end)
      if (escaped) pairs.push(decodePlus(name), decodePlus(value))
      else pairs.push(name, value)
    }
    start = end + 1
  }
  return pairs
}

function decodePlus(text: string): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? decode(spaced) : spaced
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw badRequest(`invalid URL escape ${quoted(faulty(text))}`)
  }
}

/** The first escape that is none; where each is well-formed, the bytes are no UTF-8 and all of them are to blame. */
function faulty(text: string): string {
  for (let i = text.indexOf('%'); i >= 0; i = text.indexOf('%', i + 1)) {
    if (!/^%[0-9a-fA-F]{2}/.test(text.slice(i, i + 3))) return text.slice(i, i + 3)
  }
  return text
}
