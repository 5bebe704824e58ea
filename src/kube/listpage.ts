/**
 * One page of a LIST as an API server answers it, cut into its items: each stays the bytes that came, checked to be JSON
 * and otherwise unread. Here is also the form in which an object is kept, whether it came in a list, a frame or alone.
 */
import { eachMember, isKey, ScanFault, skipValue, stringAt } from './json/scan.ts'
import { closeBracket, comma, endOfJson, openBrace, openBracket, quote, skipSpace } from './json/wellformed.ts'

export type ListPage = {
  /** As spelled: `PodList`. */
  readonly kind: string
  readonly apiVersion: string
  readonly version: number
  /** '' on the last page. */
  readonly continueToken: string
  readonly remaining: number | undefined
  /** Views into the page: a reader that keeps one copies it, or the whole page stays in memory. */
  readonly items: readonly Buffer[]
}

/** The bytes are no page of a list. */
export class PageFault extends Error {}

const kindKey = Buffer.from('kind')
const apiVersionKey = Buffer.from('apiVersion')
const metadataKey = Buffer.from('metadata')
const itemsKey = Buffer.from('items')
const versionKey = Buffer.from('resourceVersion')
const continueKey = Buffer.from('continue')
const remainingKey = Buffer.from('remainingItemCount')

type Growing = {
  kind: string
  apiVersion: string
  version: string
  token: string
  remaining: string
  items: Buffer[] | undefined
}

export function readListPage(bytes: Buffer): ListPage {
  const page: Growing = { kind: '', apiVersion: '', version: '', token: '', remaining: '', items: undefined }
  try {
    // The bytes run to their end: a cut page whose tail is lost must not pass for a short one.
    if (skipSpace(bytes, readMembers(bytes, page)) !== bytes.length) throw new PageFault('something follows the list')
  } catch (error) {
    throw error instanceof ScanFault ? new PageFault(error.message) : error
  }
  const { kind, apiVersion, token, items } = page
  if (kind === '' || apiVersion === '' || items === undefined) throw new PageFault('no list of objects')
  const version = count(page.version)
  if (version === 0) throw new PageFault('a list without a version')
  const remaining = page.remaining === '' ? undefined : count(page.remaining)
  return { kind, apiVersion, version, continueToken: token, remaining, items }
}

/**
 * The object as lists of its resource spell it, in memory of its own. A built-in loses the kind and apiVersion that a
 * frame or a GET puts in front; a custom object carries them in lists too, among its other members.
 */
export function listItemForm(object: Buffer, custom: boolean): Buffer {
  const bodyStart = custom ? 1 : startOfBody(object)
  if (bodyStart <= 1) return own(object)
  const form = Buffer.allocUnsafeSlow(object.length - bodyStart + 1)
  form[0] = openBrace
  object.copy(form, 1, bodyStart)
  return form
}

/** Whether this is the object's form, which is not made for it. */
export function isListItemForm(form: Buffer, object: Buffer, custom: boolean): boolean {
  const bodyStart = custom ? 1 : Math.max(1, startOfBody(object))
  if (form.length !== object.length - bodyStart + 1) return false
  return form.compare(object, bodyStart, object.length, 1, form.length) === 0
}

function own(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}

/** Where the members after a leading kind and apiVersion begin. One that no other follows is left where it is. */
function startOfBody(object: Buffer): number {
  if (object[0] !== openBrace) throw new PageFault('no object')
  let body = skipSpace(object, 1)
  while (object[body] === quote) {
    const end = skipValue(object, body)
    if (!isKey(object, body + 1, end - 1, kindKey) && !isKey(object, body + 1, end - 1, apiVersionKey)) break
    const value = skipSpace(object, skipSpace(object, end) + 1)
    const next = skipSpace(object, skipValue(object, value))
    if (object[next] !== comma) break
    body = skipSpace(object, next + 1)
  }
  return body
}

function readMembers(bytes: Buffer, page: Growing): number {
  return eachMember(bytes, skipSpace(bytes, 0), (from, to, at) => {
    if (isKey(bytes, from, to, itemsKey)) {
      if (page.items !== undefined) throw new PageFault('a list with items twice')
      page.items = []
      return readItems(bytes, at, page.items)
    }
    const end = endOfValue(bytes, at)
    if (isKey(bytes, from, to, kindKey)) page.kind = text(bytes, at, end)
    else if (isKey(bytes, from, to, apiVersionKey)) page.apiVersion = text(bytes, at, end)
    else if (isKey(bytes, from, to, metadataKey)) readMetadata(bytes, at, page)
    return end
  })
}

function readMetadata(bytes: Buffer, start: number, page: Growing): void {
  eachMember(bytes, start, (from, to, at) => {
    const end = skipValue(bytes, at)
    if (isKey(bytes, from, to, versionKey)) page.version = text(bytes, at, end)
    else if (isKey(bytes, from, to, continueKey)) page.token = text(bytes, at, end)
    else if (isKey(bytes, from, to, remainingKey)) page.remaining = bytes.toString('latin1', at, end)
    return end
  })
}

function readItems(bytes: Buffer, start: number, items: Buffer[]): number {
  if (bytes[start] !== openBracket) {
    const end = endOfValue(bytes, start)
    if (bytes.toString('latin1', start, end) === 'null') return end
    throw new PageFault('the items are no array')
  }
  let at = skipSpace(bytes, start + 1)
  if (bytes[at] === closeBracket) return at + 1
  for (;;) {
    if (bytes[at] !== openBrace) throw new PageFault(`no item at byte ${at}`)
    const end = endOfValue(bytes, at)
    items.push(bytes.subarray(at, end))
    at = skipSpace(bytes, end)
    if (bytes[at] === closeBracket) return at + 1
    if (bytes[at] !== comma) throw new PageFault(`neither comma nor bracket at byte ${at}`)
    at = skipSpace(bytes, at + 1)
  }
}

/** Checks the value to the letter: it is kept, or relied upon. */
function endOfValue(bytes: Buffer, start: number): number {
  const end = endOfJson(bytes, start)
  if (end < 0) throw new PageFault(`no JSON value at byte ${start}`)
  return end
}

function text(bytes: Buffer, start: number, end: number): string {
  if (bytes[start] !== quote) throw new PageFault(`no string at byte ${start}`)
  return stringAt(bytes, start, end)
}

/** A whole number as an API server prints one. */
function count(digits: string): number {
  const number = /^(0|[1-9][0-9]*)$/.test(digits) ? Number(digits) : -1
  if (!Number.isSafeInteger(number) || number < 0) throw new PageFault('a list whose version or count is no number')
  return number
}
